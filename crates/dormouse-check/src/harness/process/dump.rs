//! All jobs of a store, and the drain that accounts for each.

use std::collections::BTreeMap;
use std::sync::Arc;

use dormouse_core::backend::Backend;
use dormouse_core::command::{Command, Reply};
use dormouse_core::error::Error;
use dormouse_core::job::State;
use dormouse_core::limits::PAGE_MAX;
use dormouse_core::op::{JobView, Kick, List, ListRange, ReviveTopic, Stats};
use dormouse_core::topic::TopicName;

use crate::checker::event::{Ask, Dumped, Event, Verb};
use crate::generate::body::number_of;
use crate::harness::process::client::Client;
use crate::harness::process::load::TOPICS;
use crate::harness::process::recorder::Recorder;

/// The order matters: who changes its state between two pages is then found twice, not missed.
const STATES: [State; 4] = [State::Leased, State::Delayed, State::Ready, State::Dead];

/// Lists all jobs and reads the counts.
///
/// Long lists are read in portions, each of a later instant. Nobody adds or removes a job
/// meanwhile, so that the sum is sure; but of two lists that are read at the same time, the one may
/// pass a place before a job comes to it, the other after it left. So one state is listed after the
/// other.
pub fn dump(backend: &Arc<dyn Backend>) -> Result<Event, Error> {
    let client = Client::new(backend);
    let mut jobs = BTreeMap::new();
    let mut counted = 0;
    for answer in client.call(vec![Command::Stats(Stats { topic: None })])? {
        match answer? {
            Reply::Stats(stats) => {
                counted = stats.counts.waiting + stats.counts.leased + stats.counts.dead;
            }
            other => return Err(Error::unavailable(format!("stats answered {other:?}"))),
        }
    }
    for state in STATES {
        let firsts: Result<Vec<_>, _> =
            TOPICS.iter().map(|topic| list(topic, state, None)).collect();
        let mut pages = firsts?;
        while !pages.is_empty() {
            let asked = std::mem::take(&mut pages);
            for (command, answer) in asked.clone().into_iter().zip(client.call(asked)?) {
                let (Command::List(asked), Reply::Page(page)) = (command, answer?) else {
                    return Err(Error::unavailable("a list is not answered by a page"));
                };
                jobs.extend(page.jobs.iter().map(|view| (view.job.id.0, dumped(view))));
                if page.cursor.is_some() {
                    pages.push(Command::List(List { cursor: page.cursor, ..asked }));
                }
            }
        }
    }
    Ok(Event::Dump { jobs: jobs.into_values().collect(), counts: [counted, 0, 0] })
}

fn list(topic: &str, state: State, cursor: Option<String>) -> Result<Command, Error> {
    let topic = TopicName::new(topic)?;
    Ok(Command::List(List { topic, state, cursor, limit: PAGE_MAX, range: ListRange::default() }))
}

fn dumped(view: &JobView) -> Dumped {
    Dumped {
        id: view.job.id.0,
        topic: view.topic.as_str().to_owned(),
        key: view.job.key().map(|key| String::from_utf8_lossy(key).into_owned()),
        number: number_of(&view.job.content.body),
        dead: view.state == State::Dead,
        fence: view.job.progress.fence,
    }
}

/// Takes and acks everything, the dead as well, until nothing is left. `kicks` = those that are not
/// due are made so; else the clock is ahead.
pub fn drain(mut recorder: Recorder<'_>, client: &Client, kicks: bool) -> Result<(), Error> {
    loop {
        for topic in TOPICS {
            let (topic, max) = (TopicName::new(topic)?, 1_000);
            if kicks {
                client.call_one(Command::Kick(Kick { topic: topic.clone(), max }))?;
            }
            client.call_one(Command::ReviveTopic(ReviveTopic { topic, max }))?;
        }
        let taken = recorder.reserve(1_000, 100)?;
        let acks = taken.iter().map(|job| Ask::Token {
            verb: Verb::Ack,
            token: (job.id, job.fence),
            forged: false,
            delay_ms: None,
        });
        let acks: Vec<Ask> = acks.collect();
        if !acks.is_empty() {
            recorder.call(acks)?;
            continue;
        }
        // Leases that are still on end by themselves.
        match client.call_one(Command::Stats(Stats { topic: None }))? {
            Reply::Stats(stats) if stats.counts.waiting + stats.counts.leased == 0 => {
                if stats.counts.dead == 0 {
                    return Ok(());
                }
            }
            Reply::Stats(_) => {}
            other => return Err(Error::unavailable(format!("stats answered {other:?}"))),
        }
    }
}
