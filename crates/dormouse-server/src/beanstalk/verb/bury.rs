//! bury: a kill of a job that the connection holds.

use dormouse_core::command::Command;
use dormouse_core::job::JobId;
use dormouse_core::op::{Kill, KillTarget};

use super::Then;
use crate::beanstalk::{Beanstalk, clock, words};
use crate::pipeline::{Step, Turn};

impl Beanstalk {
    pub(super) fn bury(&mut self, id: JobId, priority: u32, turn: &mut Turn<Then>) {
        let Some(hold) = self.holds.take(id, clock::now()) else {
            return turn.say().extend_from_slice(words::NOT_FOUND);
        };
        let target = KillTarget::Token(hold.token);
        let kill = Kill { target, error: None, priority: Some(priority) };
        turn.ask(Step::new(Command::Kill(vec![kill]), Then::Buried(Box::new(hold))));
    }
}
