//! release: makes a reserved job ready or delayed.

use dormouse_core::job::JobId;
use dormouse_core::limits::DELAY_MS_MAX;
use dormouse_core::op::Release;

use super::{PendingReply, ms};
use crate::beanstalk::{Beanstalk, clock, reply};
use crate::pipeline::{Request, Turn};

impl Beanstalk {
    pub(super) fn release(
        &mut self,
        id: JobId,
        priority: u32,
        delay_s: u32,
        turn: &mut Turn<PendingReply>,
    ) {
        let Some(reservation) = self.reservations.take(id, clock::now()) else {
            return turn.reply_now().extend_from_slice(reply::NOT_FOUND);
        };
        let delay_ms = (delay_s > 0).then(|| ms(delay_s, DELAY_MS_MAX));
        let release = Release { token: reservation.token, delay_ms, priority: Some(priority) };
        let then = PendingReply::Released(reservation);
        turn.send(Request::new(release, then));
    }
}
