//! delete: acks a job that the connection has reserved, cancels one that is not reserved.

use bytes::BytesMut;
use dormouse_core::error::Error;
use dormouse_core::job::JobId;
use dormouse_core::op::{Cancel, ChangeReply, EndReply, Target};
use dormouse_core::topic::TopicName;

use super::PendingReply;
use crate::beanstalk::reservations::Reservation;
use crate::beanstalk::shared::up;
use crate::beanstalk::{Beanstalk, clock, reply};
use crate::pipeline::{Request, Turn};

/// A client may watch thousands of tubes; only the first ones are compared.
const WATCHED_LOOKED_AT: usize = 4;

impl Beanstalk {
    pub(super) fn delete(&mut self, id: JobId, turn: &mut Turn<PendingReply>) {
        if let Some(reservation) = self.reservations.take(id, clock::now()) {
            return turn.ack(reservation.token, PendingReply::Deleted(reservation));
        }
        let cancel = Cancel { target: Target::Id(id), unless_leased: true };
        turn.send(Request::new(cancel, PendingReply::Cancelled(id)));
    }

    pub(super) fn deleted(
        &mut self,
        reservation: Reservation,
        ended: Result<EndReply, Error>,
        out: &mut BytesMut,
    ) {
        match ended {
            Ok(EndReply::Gone) => out.extend_from_slice(reply::NOT_FOUND),
            Ok(EndReply::Done | EndReply::Retry { .. } | EndReply::Dead) => {
                self.count_delete(&reservation.topic);
                out.extend_from_slice(reply::DELETED);
            }
            Err(error) => self.keep(reservation, &error, out),
        }
    }

    pub(super) fn cancelled(
        &mut self,
        id: JobId,
        changed: Result<ChangeReply, Error>,
        out: &mut BytesMut,
    ) {
        match changed {
            Ok(_) => {
                self.recent.topic_of(id).iter().for_each(|topic| self.count_delete(topic));
                out.extend_from_slice(reply::DELETED);
            }
            Err(error) => reply::error(&error, out),
        }
    }

    fn count_delete(&self, topic: &TopicName) {
        // Most deletes are of a tube that this connection watches: then nothing is locked.
        let watched = self.watched.iter().take(WATCHED_LOOKED_AT).find(|tube| tube.name == *topic);
        match watched {
            Some(tube) => up(&tube.deletes),
            None => self.shared.tubes.find(topic).iter().for_each(|tube| up(&tube.deletes)),
        }
    }
}
