//! The same command to the store and to the oracle, and what is learnt from the answers.

use dormouse_core::backend::{Answer, Ticket};
use dormouse_core::command::{Command, Reply};
use dormouse_core::fact::{Cause, Destination, Fact};
use dormouse_core::machine::When;
use dormouse_core::op::Reserve;
use dormouse_core::place::Class;
use dormouse_core::time::Now;
use dormouse_core::timeline::Timeline;

use crate::generate::op::Op;
use crate::harness::disk::driver::Trouble;
use crate::harness::disk::simulation::World;

/// The most due times that are remembered of a job.
const DUES_MAX: usize = 8;

impl World {
    pub(crate) fn ask(&mut self, op: &Op, now: Now) -> Result<(), Trouble> {
        let Some(mut command) = self.source.command(op, now) else { return Ok(()) };
        if let Command::Reserve(reserve) = &mut command {
            self.wait_in_line(reserve);
        }
        self.tickets += 1;
        let ticket = Ticket(self.tickets);
        self.do_command(now, ticket, command)?;
        if op.args[4] % 4 != 0 {
            self.tick(now)?;
        }
        Ok(())
    }

    /// The order in which topics are polled for waiting requests depends on lower bounds that each
    /// timeline chooses for itself. So while somebody waits, others wait for the same topic only.
    fn wait_in_line(&mut self, reserve: &mut Reserve) {
        if reserve.wait_ms == 0 {
            return;
        }
        match &self.watched {
            Some(topic) if self.oracle.machine.waiting_requests() > 0 => {
                reserve.topics = vec![topic.clone()];
            }
            _ => self.watched = reserve.topics.first().cloned(),
        }
    }

    /// Gives a command to both, ticks and compares.
    pub fn command(&mut self, command: Command) -> Result<(), String> {
        self.tickets += 1;
        let (now, ticket) = (self.now(), Ticket(self.tickets));
        let done = self.do_command(now, ticket, command).and_then(|()| self.tick(now));
        done.map_err(|trouble| format!("{trouble:?}"))?;
        self.check(false)
    }

    /// Tokens that were given, in order.
    pub fn tokens(&self) -> &[dormouse_core::job::Token] {
        &self.source.tokens
    }

    fn do_command(&mut self, now: Now, ticket: Ticket, command: Command) -> Result<(), Trouble> {
        let prompt_is_safe = self.may_be_prompt(&command);
        let facts = self.oracle.open_facts().len();
        // A store with many runs needs more portions than the oracle: it may do them at once.
        self.driver.store.machine().timeline_mut().renew();
        let mut have = self.driver.step(now, ticket, command.clone())?;
        have.extend(self.driver.finish_long(now)?);
        let stepped = self.oracle.step(now, ticket, command.clone());
        stepped.map_err(|error| Trouble::Bug(error.to_string()))?;
        self.checker.asked(ticket, &command);
        if let Command::Chain(_) = &command {
            self.count("chain");
        }
        self.take_answers(now, have, facts, prompt_is_safe)?;
        if matches!(command, Command::Reserve(_) | Command::Lock(_)) {
            self.source.tickets.push(ticket);
        }
        Ok(())
    }

    /// Whether the answer to taking a job by id may leave at once: its put is durable.
    fn may_be_prompt(&mut self, command: &Command) -> bool {
        let Command::ReserveId(reserve) = command else { return true };
        let found = self.oracle.machine.timeline_mut().find(reserve.id);
        found.is_ok_and(|found| found.is_none_or(|found| found.put_batch <= self.driver.reported))
    }

    pub(crate) fn tick(&mut self, now: Now) -> Result<(), Trouble> {
        let facts = self.oracle.open_facts().len();
        let have = self.driver.tick(now)?;
        self.oracle.tick(now).map_err(|error| Trouble::Bug(error.to_string()))?;
        self.take_answers(now, have, facts, true)
    }

    fn take_answers(
        &mut self,
        now: Now,
        have: Vec<(Ticket, Answer, When)>,
        facts: usize,
        prompt_is_safe: bool,
    ) -> Result<(), Trouble> {
        let want = self.oracle.answers();
        let bare = |answers: &[(Ticket, Answer, When)]| {
            answers.iter().map(|(ticket, answer, _)| (*ticket, answer.clone())).collect::<Vec<_>>()
        };
        if bare(&have) != bare(&want) {
            return Err(Trouble::Bug(format!("answers {have:?}, should be {want:?}")));
        }
        for ((_, answer, have), (.., want)) in have.iter().zip(&want) {
            // The store may know that a put is durable where the oracle does not say so.
            let fits = have == want || (*have == When::Prompt && prompt_is_safe);
            if !fits {
                let what = format!("{answer:?} leaves {have:?}, should {want:?}");
                return Err(Trouble::Bug(what));
            }
        }
        let learnt: Vec<Fact> = self.oracle.open_facts()[facts..].to_vec();
        learnt.iter().for_each(|fact| self.learn(fact));
        let batch = self.sealed + 1;
        for (ticket, answer, _) in have {
            self.learn_answer(&answer).map_err(Trouble::Bug)?;
            let checked = self.checker.answered(now, ticket, &answer, batch);
            checked.map_err(Trouble::Bug)?;
        }
        Ok(())
    }

    fn learn(&mut self, fact: &Fact) {
        if let Fact::Move { to, cause, .. } = fact {
            match to {
                Destination::Rest(place) if place.class == Class::DONE => self.count("done"),
                Destination::Gone if cause.is_death() => self.count("letter"),
                _ => {}
            }
            if *cause == Cause::TooLate {
                self.count("expired");
            }
        }
        let place = match fact {
            Fact::Put { at, .. } => *at,
            Fact::Move { to: Destination::Rest(place), .. } if place.class.is_waiting() => *place,
            _ => return,
        };
        if !self.source.ids.contains(&place.id) {
            self.source.ids.push(place.id);
        }
        let dues = self.source.dues.entry(place.id).or_default();
        if dues.len() < DUES_MAX {
            dues.push((place.class.clock(), place.due_at));
        }
    }

    fn learn_answer(&mut self, answer: &Answer) -> Result<(), String> {
        match answer {
            Ok(Reply::Jobs(jobs)) => {
                for job in jobs {
                    self.source.tokens.push(job.token);
                    if !self.fences.insert(job.token.fence) {
                        return Err(format!("fence of token {} was given before", job.token));
                    }
                }
            }
            Ok(Reply::Session(session)) => self.source.sessions.push(*session),
            _ => {}
        }
        Ok(())
    }
}
