//! The cost of an operation for Redis: commands, those inside scripts included, and scripts.

use std::thread;
use std::time::Duration;

use dormouse_core::command::{Command, Reply};
use dormouse_core::job::Token;
use dormouse_core::op::{EndReply, Put};
use dormouse_core::topic::TopicName;
use serde::Serialize;

use super::rig::Rig;
use super::{Findings, RedisPlan};
use crate::client::{Client, reserve, unexpected};
use crate::plan::Noise;
use crate::{Result, progress};

/// Operations of each kind; the figures are per operation.
const LIVES: usize = 200;
const BATCH: usize = 100;
const BATCHES: usize = 20;
const WAIT_MS: i64 = 60_000;
/// After this a reserve that found nothing is at rest.
const SETTLE: Duration = Duration::from_millis(20);

#[derive(Default, Serialize)]
struct CostFigures {
    commands_per_life: f64,
    commands_per_life_waiting: f64,
    commands_per_job_batch_100: f64,
    commands_per_job_batch_100_waiting: f64,
    scripts_per_put: f64,
    scripts_per_reserve: f64,
    scripts_per_ack: f64,
    scripts_per_ack_and_reserve: f64,
    scripts_per_life_waiting: f64,
}

pub(super) fn run(rig: &Rig, plan: &RedisPlan, found: &mut Findings) -> Result<()> {
    progress::note("cost: commands and scripts");
    let noise = Noise::new(plan.body, plan.seed);
    let mut user = User { client: rig.client(), topic: TopicName::new("cost")?, noise };
    // Scripts are loaded, the topic has its place, the channel is listened to.
    waiting_lives(&rig.client(), &mut user, 3, 1)?;
    let mut figures = CostFigures::default();
    alone(rig, &mut user, &mut figures)?;
    let counted = count(rig, BATCHES * BATCH, || user.lives(BATCHES, BATCH))?;
    figures.commands_per_job_batch_100 = counted.commands;
    // The first that waits writes since when; after it, that is so already.
    waiting_lives(&rig.client(), &mut user, 1, 1)?;
    let counted = count(rig, LIVES, || waiting_lives(&rig.client(), &mut user, LIVES, 1))?;
    figures.commands_per_life_waiting = counted.commands;
    figures.scripts_per_life_waiting = counted.scripts;
    let jobs = BATCHES * BATCH;
    let counted = count(rig, jobs, || waiting_lives(&rig.client(), &mut user, BATCHES, BATCH))?;
    figures.commands_per_job_batch_100_waiting = counted.commands;
    report(&figures, found);
    found.add(&figures)
}

/// Each operation on its own.
fn alone(rig: &Rig, user: &mut User, figures: &mut CostFigures) -> Result<()> {
    let put = count(rig, LIVES, || (0..LIVES).try_for_each(|_| user.put(1)))?;
    let mut tokens = Vec::new();
    let reserved = count(rig, LIVES, || {
        (0..LIVES).try_for_each(|_| user.reserve(1).map(|token| tokens.extend(token)))
    })?;
    let acked = count(rig, LIVES, || tokens.iter().try_for_each(|&token| user.ack(vec![token])))?;
    figures.commands_per_life = put.commands + reserved.commands + acked.commands;
    figures.scripts_per_put = put.scripts;
    figures.scripts_per_reserve = reserved.scripts;
    figures.scripts_per_ack = acked.scripts;
    user.put(LIVES + 1)?;
    let mut token = user.reserve(1)?;
    let both = count(rig, LIVES, || {
        (0..LIVES).try_for_each(|_| {
            token = user.ack_and_reserve(std::mem::take(&mut token))?;
            Ok(())
        })
    })?;
    figures.scripts_per_ack_and_reserve = both.scripts;
    user.ack(token)
}

fn report(figures: &CostFigures, found: &mut Findings) {
    let table = &mut found.table;
    let life = "commands per job life (put, reserve, ack)";
    table.at_most(&format!("{life}, alone"), 20.0, figures.commands_per_life, "");
    let waiting = format!("{life}, alone, to a waiting consumer");
    table.at_most(&waiting, 20.0, figures.commands_per_life_waiting, "");
    table.at_most(&format!("{life}, batch 100"), 1.5, figures.commands_per_job_batch_100, "");
    let waiting = format!("{life}, batch 100, to a waiting consumer");
    table.at_most(&waiting, 1.5, figures.commands_per_job_batch_100_waiting, "");
    table.at_most("round trips: put", 1.0, figures.scripts_per_put, "");
    table.at_most("round trips: reserve", 1.0, figures.scripts_per_reserve, "");
    table.at_most("round trips: ack", 1.0, figures.scripts_per_ack, "");
    table.at_most("round trips: ack + reserve", 1.0, figures.scripts_per_ack_and_reserve, "");
    let waiting = format!("{:.2}", figures.scripts_per_life_waiting);
    table.note("round trips: reserve that waits, put, ack together", waiting);
}

/// Per operation.
struct Counted {
    commands: f64,
    scripts: f64,
}

fn count(rig: &Rig, operations: usize, work: impl FnOnce() -> Result<()>) -> Result<Counted> {
    rig.server.reset_stats();
    work()?;
    let per = |calls: u64| calls as f64 / operations as f64;
    Ok(Counted { commands: per(rig.server.commands_run()), scripts: per(rig.server.scripts_run()) })
}

/// A consumer waits, jobs are put, it has them and acks.
fn waiting_lives(consumer: &Client, user: &mut User, lives: usize, batch: usize) -> Result<()> {
    for _ in 0..lives {
        consumer.send(reserve(vec![user.topic.clone()], batch, WAIT_MS))?;
        thread::sleep(SETTLE);
        user.put(batch)?;
        let mut left = batch;
        loop {
            // It may get what there is room for beside the puts, and asks again.
            let Reply::Jobs(jobs) = consumer.receive()?.reply else {
                return Err("a waiting reserve was answered with something else".into());
            };
            left -= jobs.len();
            user.ack(jobs.iter().map(|job| job.token).collect())?;
            if left == 0 {
                break;
            }
            consumer.send(reserve(vec![user.topic.clone()], left, WAIT_MS))?;
        }
    }
    Ok(())
}

/// Does one thing after another.
struct User {
    client: Client,
    topic: TopicName,
    noise: Noise,
}

impl User {
    fn lives(&mut self, lives: usize, batch: usize) -> Result<()> {
        for _ in 0..lives {
            self.put(batch)?;
            let tokens = self.reserve(batch)?;
            self.ack(tokens)?;
        }
        Ok(())
    }

    fn put(&mut self, batch: usize) -> Result<()> {
        let mut put = |number| Put::new(self.topic.clone(), self.noise.body(number as u64));
        match self.client.call(Command::Put((0..batch).map(&mut put).collect()))? {
            Reply::Put(items) if items.iter().all(std::result::Result::is_ok) => Ok(()),
            other => Err(unexpected("put", &other)),
        }
    }

    fn reserve(&self, batch: usize) -> Result<Vec<Token>> {
        tokens(&self.client.call(reserve(vec![self.topic.clone()], batch, 0))?, batch)
    }

    fn ack(&self, tokens: Vec<Token>) -> Result<()> {
        done(&self.client.call(Command::Ack(tokens))?)
    }

    fn ack_and_reserve(&self, acked: Vec<Token>) -> Result<Vec<Token>> {
        let next = reserve(vec![self.topic.clone()], acked.len(), 0);
        let batch = acked.len();
        let (_, ticket) = self.client.send_both(Command::Ack(acked), next)?;
        let mut taken = Vec::new();
        for _ in 0..2 {
            let answer = self.client.receive()?;
            if answer.ticket == ticket {
                taken = tokens(&answer.reply, batch)?;
            } else {
                done(&answer.reply)?;
            }
        }
        Ok(taken)
    }
}

fn done(reply: &Reply) -> Result<()> {
    match reply {
        Reply::Ended(ended) if ended.iter().all(|item| *item == Ok(EndReply::Done)) => Ok(()),
        other => Err(unexpected("ack", other)),
    }
}

fn tokens(reply: &Reply, expected: usize) -> Result<Vec<Token>> {
    match reply {
        Reply::Jobs(jobs) if jobs.len() == expected => {
            Ok(jobs.iter().map(|job| job.token).collect())
        }
        other => Err(unexpected("reserve", other)),
    }
}
