//! touch: the time of a reservation begins anew.

use bytes::BytesMut;
use dormouse_core::backend::Answer;
use dormouse_core::command::{Command, Reply};
use dormouse_core::error::Code;
use dormouse_core::job::JobId;
use dormouse_core::op::Extend;

use super::{PendingReply, one};
use crate::beanstalk::{Beanstalk, clock, reply};
use crate::pipeline::{Step, Turn};

impl Beanstalk {
    pub(super) fn touch(&mut self, id: JobId, turn: &mut Turn<PendingReply>) {
        let Some(reservation) = self.reservations.get(id, clock::now()) else {
            return turn.say().extend_from_slice(reply::NOT_FOUND);
        };
        let extend = Extend { token: reservation.token, ttr_ms: None };
        turn.ask(Step::new(Command::Extend(vec![extend]), PendingReply::Touched(id)));
    }

    pub(super) fn touched(&mut self, id: JobId, answer: Answer, out: &mut BytesMut) {
        match one!(answer, Extended) {
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
