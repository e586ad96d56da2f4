//! bury: kills a job that the connection has reserved.

use dormouse_core::job::JobId;
use dormouse_core::op::{Kill, KillTarget};

use super::PendingReply;
use crate::beanstalk::{Beanstalk, clock, reply};
use crate::pipeline::{Request, Turn};

impl Beanstalk {
    pub(super) fn bury(&mut self, id: JobId, priority: u32, turn: &mut Turn<PendingReply>) {
        let Some(reservation) = self.reservations.take(id, clock::now()) else {
            return turn.reply_now().extend_from_slice(reply::NOT_FOUND);
        };
        let target = KillTarget::Token(reservation.token);
        let kill = Kill { target, error: None, priority: Some(priority) };
        turn.send(Request::new(kill, PendingReply::Buried(reservation)));
    }
}
