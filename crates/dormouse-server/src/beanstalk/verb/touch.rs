//! touch: begins the time to run of a reservation again.

use bytes::BytesMut;
use dormouse_core::error::{Code, Error};
use dormouse_core::job::JobId;
use dormouse_core::op::{Extend, ExtendReply};

use super::PendingReply;
use crate::beanstalk::{Beanstalk, clock, reply};
use crate::pipeline::{Request, Turn};

impl Beanstalk {
    pub(super) fn touch(&mut self, id: JobId, turn: &mut Turn<PendingReply>) {
        let Some(reservation) = self.reservations.get(id, clock::now()) else {
            return turn.reply_now().extend_from_slice(reply::NOT_FOUND);
        };
        let extend = Extend { token: reservation.token, ttr_ms: None };
        turn.send(Request::new(extend, PendingReply::Touched(id)));
    }

    pub(super) fn touched(
        &mut self,
        id: JobId,
        extended: Result<ExtendReply, Error>,
        out: &mut BytesMut,
    ) {
        match extended {
            Ok(_) => {
                self.reservations.renew(id, clock::now());
                out.extend_from_slice(reply::TOUCHED);
            }
            Err(error) => {
                if matches!(error.code, Code::NotFound | Code::LeaseLost) {
                    self.reservations.drop(id);
                }
                reply::error(&error, out);
            }
        }
    }
}
