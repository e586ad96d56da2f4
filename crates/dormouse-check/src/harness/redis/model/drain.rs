//! The end of a history: everything is taken out, and the counts must be right.

use dormouse_core::command::Command;
use dormouse_core::job::State;
use dormouse_core::op::*;

use crate::generate::vocabulary::{TOPICS, topic};
use crate::harness::redis::model::keyspace::check_keys;
use crate::harness::redis::model::lockstep::World;

/// Longer than any lease, hold and backoff of a history but the default backoff's later ones, which
/// are kicked.
const LONG_MS: u64 = 70_000;

impl World<'_> {
    /// Compares everything there is, then takes all jobs out and compares again.
    pub(crate) fn finish(&mut self) -> Result<(), String> {
        self.withdraw_all()?;
        self.look_at_all()?;
        check_keys(&self.rig.redis, self.now_ms())?;
        self.remove_schedules()?;
        for _ in 0..3 {
            for number in 0..TOPICS.len() as u16 {
                self.empty(number)?;
            }
            self.advance(LONG_MS)?;
        }
        self.look_at_all()?;
        check_keys(&self.rig.redis, self.now_ms())?;
        self.check_empty()
    }

    fn look_at_all(&mut self) -> Result<(), String> {
        for number in 0..TOPICS.len() as u16 {
            let states = [State::Delayed, State::Ready, State::Leased, State::Dead, State::Done];
            for state in states {
                let list = List {
                    topic: topic(number),
                    state,
                    cursor: None,
                    limit: 3,
                    range: ListRange::default(),
                };
                self.command(0, Command::List(list))?;
            }
            self.command(1, Command::Stats(Stats { topic: Some(topic(number)) }))?;
        }
        self.command(0, Command::Stats(Stats { topic: None }))?;
        self.command(1, Command::Topics(Topics { after: None, limit: 10 }))
    }

    fn empty(&mut self, number: u16) -> Result<(), String> {
        let name = topic(number);
        self.command(
            0,
            Command::from(SetTopic { topic: name.clone(), settings: Default::default() }),
        )?;
        self.command(1, Command::Resume(name.clone()))?;
        self.command(0, Command::ReviveTopic(ReviveTopic { topic: name.clone(), max: 1_000 }))?;
        self.command(1, Command::Kick(Kick { topic: name.clone(), max: 1_000 }))?;
        let topics = vec![name];
        let before = self.source.tokens.len();
        let reserve = Reserve { topics, max: 1_000, wait_ms: 0, ttr_ms: None, session: None };
        self.command(0, Command::Reserve(reserve))?;
        let tokens = self.source.tokens[before..].to_vec();
        self.command(1, Command::Ack(tokens))
    }

    /// P14: what came has gone.
    fn check_empty(&mut self) -> Result<(), String> {
        for number in 0..TOPICS.len() as u16 {
            for state in [State::Delayed, State::Ready, State::Leased, State::Dead] {
                let left = self.oracle.all(&topic(number), state);
                if !left.is_empty() {
                    return Err(format!("the drain leaves {left:?}"));
                }
            }
        }
        let held = self.rig.redis.must(&["KEYS", "dormouse:{[abc]/*}:[jfdztneolgq]*"]);
        if held.list().is_empty() { Ok(()) } else { Err(format!("Redis keeps {held:?}")) }
    }
}
