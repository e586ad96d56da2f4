//! touch: the time of a reservation begins anew.

use bytes::BytesMut;
use dormouse_core::backend::Answer;
use dormouse_core::command::{Command, Reply};
use dormouse_core::error::Code;
use dormouse_core::job::JobId;
use dormouse_core::op::Extend;

use super::{Then, one};
use crate::beanstalk::{Beanstalk, clock, words};
use crate::pipeline::{Step, Turn};

impl Beanstalk {
    pub(super) fn touch(&mut self, id: JobId, turn: &mut Turn<Then>) {
        let Some(hold) = self.holds.get(id, clock::now()) else {
            return turn.say().extend_from_slice(words::NOT_FOUND);
        };
        let extend = Extend { token: hold.token, ttr_ms: None };
        turn.ask(Step::new(Command::Extend(vec![extend]), Then::Touched(id)));
    }

    pub(super) fn touched(&mut self, id: JobId, answer: Answer, out: &mut BytesMut) {
        match one!(answer, Extended) {
            Ok(_) => {
                self.holds.renew(id, clock::now());
                out.extend_from_slice(words::TOUCHED);
            }
            Err(error) => {
                if matches!(error.code, Code::NotFound | Code::LeaseLost) {
                    self.holds.drop(id);
                }
                words::error(&error, out);
            }
        }
    }
}
