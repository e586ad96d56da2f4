//! The child: puts, takes and ends jobs until it is killed; or lists all there are.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use dormouse_core::backend::Backend;
use dormouse_core::command::{Command, Reply};
use dormouse_core::error::{Code, Error};
use dormouse_core::job::{State, Token};
use dormouse_core::limits::PAGE_MAX;
use dormouse_core::op::*;
use dormouse_core::schedule::{Catchup, Overlap, ScheduleName, Template};
use dormouse_core::topic::{Settings, TopicName};
use dormouse_disk::engine::Engine;

use super::{Ask, Found, Line, Planned, Told, lines_path};
use crate::generate::body::{body, number_of};
use crate::generate::rng::Rng;
use crate::harness::process::child::Task;
use crate::harness::process::client::{Client, wall_us};

const WORK: &str = "work";
const NEXT: &str = "next";
const MORGUE: &str = "morgue";
const TICKS: &str = "ticks";
const THREADS: u64 = 3;
const EVERY_MS: i64 = 100;
/// Done jobs must still be there at the end.
const KEEP_DONE_MS: u64 = 3_600 * 1_000;
/// Shorter than a round, so that leases run out.
const TTR_MS: i64 = 150;
const SPAN_MS_MAX: u64 = 120;
/// All that must expire has expired by then, on a busy machine, too.
const SETTLED_MAX: Duration = Duration::from_secs(60);

fn topic(name: &str) -> Result<TopicName, Error> {
    TopicName::new(name)
}

/// The state that the threads of a child share.
struct Rig {
    backend: Arc<dyn Backend>,
    lines: Mutex<File>,
    next_call: AtomicU64,
    next_number: AtomicU64,
}

impl Rig {
    fn open(task: &Task, engine: &Engine) -> Result<Rig, String> {
        let mut options = OpenOptions::new();
        let opened = options.create(true).append(true).open(lines_path(&task.dir));
        let first = (task.round + 1) << 32;
        Ok(Rig {
            backend: Arc::new(engine.clone()),
            lines: Mutex::new(opened.map_err(|error| error.to_string())?),
            next_call: AtomicU64::new(first),
            next_number: AtomicU64::new(first),
        })
    }

    /// One write each: a kill cuts the last line at most.
    fn tell(&self, line: &Line) -> Result<(), Error> {
        let written =
            serde_json::to_vec(line).map_err(std::io::Error::from).and_then(|mut text| {
                text.push(b'\n');
                self.lines.lock().unwrap_or_else(PoisonError::into_inner).write_all(&text)
            });
        written.map_err(|error| Error::unavailable(error.to_string()))
    }

    fn asked(&self, ask: Ask) -> Result<u64, Error> {
        let call = self.next_call.fetch_add(1, Ordering::Relaxed);
        self.tell(&Line::Asked { call, at_us: wall_us(), ask })?;
        Ok(call)
    }

    fn told(&self, call: u64, told: Told) -> Result<(), Error> {
        self.tell(&Line::Told { call, at_us: wall_us(), told })
    }

    fn number(&self) -> u64 {
        self.next_number.fetch_add(1, Ordering::Relaxed)
    }
}

/// Works until the process is killed.
pub(in crate::harness::process) fn load(task: &Task, engine: &Engine) -> Result<(), String> {
    let rig = Rig::open(task, engine)?;
    let begun = set_up(&Client::new(&rig.backend));
    let failed = |error: Error| {
        let text = error.to_string();
        // The parent finds it in the file, whatever becomes of this process.
        let _ = rig.tell(&Line::Failed(text.clone()));
        text
    };
    begun.map_err(failed)?;
    thread::scope(|scope| {
        for thread in 1..=THREADS {
            let rig = &rig;
            let rng = Rng::new(task.seed ^ ((task.round * 16 + thread) << 20));
            scope.spawn(move || {
                let worker = Worker { rig, client: Client::new(&rig.backend), rng };
                if let Err(error) = worker.run() {
                    failed(error);
                    std::process::exit(1);
                }
            });
        }
    });
    Err("the load ended".to_owned())
}

fn set_up(client: &Client) -> Result<(), Error> {
    let kept = Settings { keep_done_ms: Some(KEEP_DONE_MS), ..Settings::default() };
    let work = Settings { dead_topic: Some(topic(MORGUE)?), ..kept.clone() };
    for (name, settings) in [(WORK, work), (NEXT, kept)] {
        client.call_one(Command::from(SetTopic { topic: topic(name)?, settings }))?;
    }
    let put = PutSchedule::new(topic(TICKS)?, ScheduleName::new("s")?, Template::default());
    let put = PutSchedule {
        every_ms: Some(EVERY_MS),
        overlap: Some(Overlap::Allow),
        catchup: Some(Catchup::All),
        ..put
    };
    client.call_one(Command::PutSchedule(Box::new(put)))?;
    Ok(())
}

struct Worker<'r> {
    rig: &'r Rig,
    client: Client,
    rng: Rng,
}

impl Worker<'_> {
    fn run(mut self) -> Result<(), Error> {
        loop {
            for _ in 0..1 + self.rng.below(3) {
                self.put()?;
            }
            for (token, number) in self.reserve()? {
                match self.rng.below(10) {
                    0 => self.nack(token, number)?,
                    1 => self.kill(token, number)?,
                    // Its lease runs out.
                    2 => {}
                    _ => self.chain(token, number)?,
                }
            }
        }
    }

    fn plan(&mut self) -> Planned {
        let expires_after_ms =
            if self.rng.chance(50) { 1 + self.rng.below(SPAN_MS_MAX) } else { 0 };
        let delay_ms = if self.rng.chance(50) { 0 } else { self.rng.below(60) };
        Planned { number: self.rig.number(), delay_ms, expires_after_ms }
    }

    fn put(&mut self) -> Result<(), Error> {
        let planned = self.plan();
        let call = self.rig.asked(Ask::Put(planned))?;
        match self.client.call_one(Command::Put(vec![put_of(WORK, planned)?]))? {
            Reply::Put(mut items) => items.pop().unwrap_or_else(|| Err(odd("no put")))?,
            other => return Err(odd(&other)),
        };
        self.rig.told(call, Told::Done)
    }

    fn reserve(&mut self) -> Result<Vec<(Token, u64)>, Error> {
        let call = self.rig.asked(Ask::Reserve)?;
        let topics = vec![topic(WORK)?, topic(NEXT)?];
        let max = 1 + self.rng.below(4) as usize;
        let reserve = Reserve { topics, max, wait_ms: 5, ttr_ms: None, session: None };
        let Reply::Jobs(jobs) = self.client.call_one(Command::Reserve(reserve))? else {
            return Err(odd("a reserve"));
        };
        let number = |job: &LeasedJob| number_of(&job.body).ok_or_else(|| odd("a body"));
        let taken = jobs.iter().map(|job| Ok((job.token, number(job)?)));
        let taken: Vec<(Token, u64)> = taken.collect::<Result<_, Error>>()?;
        let attempts = jobs.iter().map(|job| job.attempt);
        let told = taken.iter().map(|(_, number)| *number).zip(attempts).collect();
        self.rig.told(call, Told::Jobs(told))?;
        Ok(taken)
    }

    fn chain(&mut self, token: Token, number: u64) -> Result<(), Error> {
        let count = 1 + self.rng.below(3);
        // Fewer come than go, so that their number is bounded.
        let planned: Vec<Planned> = (0..count).map(|_| self.plan()).collect();
        let call = self.rig.asked(Ask::Chain { number, puts: planned.clone() })?;
        let name = |at: usize| if at == 0 { NEXT } else { WORK };
        let puts = planned.iter().enumerate().map(|(at, planned)| put_of(name(at), *planned));
        let puts = puts.collect::<Result<Vec<Put>, Error>>()?;
        let told = match self.client.call_one(Command::Chain(Chain { token, puts })) {
            Ok(Reply::Chain(reply)) if reply.end == EndReply::Done => Told::Done,
            Ok(Reply::Chain(_)) => Told::Gone,
            Ok(other) => return Err(odd(&other)),
            Err(error) => refused(error)?,
        };
        self.rig.told(call, told)
    }

    fn nack(&mut self, token: Token, number: u64) -> Result<(), Error> {
        let call = self.rig.asked(Ask::Nack { number })?;
        let error = Some("failed".into());
        let nack = Nack { token, delay_ms: Some(5), priority: None, error };
        let told = self.ended(Command::Nack(vec![nack]))?;
        self.rig.told(call, told)
    }

    fn kill(&mut self, token: Token, number: u64) -> Result<(), Error> {
        let call = self.rig.asked(Ask::Kill { number })?;
        let target = KillTarget::Token(token);
        let told = self.ended(Command::Kill(vec![Kill { target, error: None, priority: None }]))?;
        self.rig.told(call, told)
    }

    fn ended(&self, command: Command) -> Result<Told, Error> {
        match self.client.call_one(command)? {
            Reply::Ended(mut items) => match items.pop() {
                Some(Ok(EndReply::Gone)) => Ok(Told::Gone),
                Some(Ok(_)) => Ok(Told::Done),
                Some(Err(error)) => refused(error),
                None => Err(odd("no answer")),
            },
            other => Err(odd(&other)),
        }
    }
}

fn put_of(name: &str, planned: Planned) -> Result<Put, Error> {
    Ok(Put {
        delay_ms: Some(planned.delay_ms as i64),
        expires_after_ms: Some(planned.expires_after_ms as i64),
        ttr_ms: Some(TTR_MS),
        attempts_max: Some(2),
        ..Put::new(topic(name)?, body(planned.number))
    })
}

fn refused(error: Error) -> Result<Told, Error> {
    match error.code {
        Code::LeaseLost => Ok(Told::Refused(error.code.as_str().to_owned())),
        _ => Err(error),
    }
}

fn odd(what: impl std::fmt::Debug) -> Error {
    Error::unavailable(format!("an odd answer: {what:?}"))
}

/// Lists everything, once nothing more expires by itself.
pub(in crate::harness::process) fn list_all(task: &Task, engine: &Engine) -> Result<(), String> {
    let rig = Rig::open(task, engine)?;
    let client = Client::new(&rig.backend);
    list(&rig, &client).map_err(|error| error.to_string())?;
    engine.close().map_err(|error| error.to_string())
}

fn list(rig: &Rig, client: &Client) -> Result<(), Error> {
    set_up(client)?;
    let (ticks, name) = (topic(TICKS)?, ScheduleName::new("s")?);
    let pause = ScheduleChange::Pause { for_ms: None };
    let change = ChangeSchedule { topic: ticks, name, change: pause };
    let before = match client.call_one(Command::ChangeSchedule(change))? {
        Reply::Schedule(view) => view,
        other => return Err(odd(&other)),
    };
    // While it is paused no tick is given; the one that was under way has been.
    let began = Instant::now();
    let expires = |found: &Found| found.state == "Ready" || found.state == "Leased";
    let mut jobs = all(client)?;
    while jobs.iter().any(|job| job.topic != TICKS && job.topic != MORGUE && expires(job))
        && began.elapsed() < SETTLED_MAX / 20
    {
        thread::sleep(Duration::from_millis(50));
        jobs = all(client)?;
    }
    let (anchor_ms, counts) = (before.anchor_at, before.counts);
    let (given, total) = (counts.given, counts.total());
    let next_ms = before.next.first().copied().unwrap_or(0);
    rig.tell(&Line::Ticked { anchor_ms, next_ms, given, total })?;
    rig.tell(&Line::Found { at_us: wall_us(), jobs })
}

fn all(client: &Client) -> Result<Vec<Found>, Error> {
    let mut found = Vec::new();
    for name in [WORK, NEXT, MORGUE, TICKS] {
        for state in [State::Leased, State::Delayed, State::Ready, State::Dead, State::Done] {
            let mut cursor = None;
            loop {
                let list = List {
                    topic: topic(name)?,
                    state,
                    cursor,
                    limit: PAGE_MAX,
                    range: ListRange::default(),
                };
                let Reply::Page(page) = client.call_one(Command::List(list))? else {
                    return Err(odd("a list"));
                };
                found.extend(page.jobs.iter().map(|view| found_of(name, view)));
                cursor = page.cursor;
                if cursor.is_none() {
                    break;
                }
            }
        }
    }
    // One that changed its state between two pages was met twice: it is as it was met last.
    let mut last = std::collections::BTreeMap::new();
    found.into_iter().for_each(|one| drop(last.insert(one.id, one)));
    Ok(last.into_values().collect())
}

fn found_of(name: &str, view: &JobView) -> Found {
    let content = &view.job.content;
    let headers = content.headers.iter().flat_map(|headers| headers.iter());
    let origin = headers.filter(|(name, _)| name == "dead-id").find_map(|(_, id)| id.parse().ok());
    Found {
        number: number_of(&content.body),
        id: view.job.id.0,
        topic: name.to_owned(),
        state: format!("{:?}", view.state),
        origin,
        tick_ms: content.tick.as_ref().map(|tick| tick.tick_ms),
    }
}
