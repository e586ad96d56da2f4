//! How servers answer when their disk fails: puts that were confirmed and are gone after a
//! restart. The disk is filled up, or it dies: from one moment on nothing is written any more, and
//! what was not synced is lost.

mod volume;
mod writers;

use std::thread;
use std::time::{Duration, Instant};

use super::PeersPlan;
use super::arena::Arena;
use super::caller::Caller;
use super::contender::Contender;
use super::findings::Findings;
use super::server::{Extras, Server};
use super::wire::Taken;
use crate::Result;
use crate::progress::note;
use crate::redis::zset_scripts::wall_ms;
use volume::{Fault, Volume};
use writers::{Outcome, Writers};

const BEFORE: Duration = Duration::from_millis(500);
const AFTER: Duration = Duration::from_secs(1);
const SILENCE_MAX: Duration = Duration::from_secs(10);
const PIPELINE: usize = 100;
/// Logs of beanstalkd's default size would take all puts of the run: they are made in advance.
const BEANSTALKD_LOG: &str = "1048576";

/// Puts that were answered well, and how many of them are gone.
#[derive(Clone, Copy, Default)]
struct Count {
    answered: u64,
    lost: u64,
}

/// Counts of puts: answered before the disk began to fail, sent after it had failed, and what was
/// under way in between.
#[derive(Clone, Copy, Default)]
struct Counts {
    before: Count,
    meanwhile: Count,
    after: Count,
    refused: u64,
}

pub(super) fn run(arena: &mut Arena, plan: &PeersPlan, found: &mut Findings) -> Result<()> {
    for fault in [Fault::Full, Fault::Dead] {
        // A first try tells whether this computer lets us.
        if let Err(error) = Volume::new(&arena.places().0, fault) {
            note(&format!("disk: left out, {}: {error}", fault.name()));
            continue;
        }
        found.begin();
        one_fault(arena, plan, fault, found)?;
    }
    Ok(())
}

fn one_fault(
    arena: &mut Arena,
    plan: &PeersPlan,
    fault: Fault,
    found: &mut Findings,
) -> Result<()> {
    let mut rows = Vec::new();
    // Without a log nothing is promised.
    for contender in plan.contenders().into_iter().filter(|&one| one != Contender::Beanstalkd) {
        let mut counts = Counts::default();
        let there = found.try_it(contender, || {
            counts = measure(arena, contender, fault)?;
            Ok(())
        })?;
        if !there {
            continue;
        }
        rows.push(report(contender, fault, counts, found));
    }
    let title = format!("Answers while the disk is {}", fault.name());
    let columns =
        ["contender", "before", "lost", "meanwhile", "lost", "answered after", "lost", "refused"];
    found.table(&title, &columns, &rows);
    Ok(())
}

fn report(contender: Contender, fault: Fault, counts: Counts, found: &mut Findings) -> Vec<String> {
    let Counts { before, meanwhile, after, refused } = counts;
    let (name, disk) = (contender.name(), fault.name());
    note(&format!("disk {disk}: {name}: {} answered after, {} lost", after.answered, after.lost));
    let mut row = vec![name.to_owned()];
    for (when, count) in [("before", before), ("meanwhile", meanwhile), ("after", after)] {
        row.extend([count.answered.to_string(), count.lost.to_string()]);
        let figure = |what| format!("{}_{}_{when}{what}", contender.key(), fault.key());
        found.figure(figure(""), count.answered);
        found.figure(figure("_lost"), count.lost);
    }
    row.push(refused.to_string());
    if matches!(contender, Contender::RespSynced | Contender::BeanstalkSynced) {
        // A sync that is under way when a file system is shut down may succeed and keep nothing,
        // so what was answered meanwhile proves nothing about the server.
        let lost = (before.lost + after.lost) as f64;
        let measure = format!("answered puts lost, disk {disk}, {name}");
        found.at_most(&measure, 0.0, Some(lost), &format!("meanwhile {}", meanwhile.lost));
    }
    row
}

fn measure(arena: &mut Arena, contender: Contender, fault: Fault) -> Result<Counts> {
    let (place, log) = arena.places();
    let volume = Volume::new(&place, fault)?;
    let data = volume.path().join("data");
    let extras = Extras {
        under: volume.under(),
        beanstalkd: ["-s", BEANSTALKD_LOG].map(str::to_owned).into(),
        ..Extras::default()
    };
    volume.make_dir("data")?;
    let mut server = Server::start(&arena.programs, contender, &data, &log, &extras)?;
    let writers = Writers::start(&server)?;
    thread::sleep(BEFORE);
    let begun = Instant::now();
    volume.fail()?;
    let failed = Instant::now();
    thread::sleep(AFTER);
    let outcome = writers.stop()?;
    server.process.kill();
    volume.mend()?;
    // One that does not start again has lost everything.
    let left = match Server::start(&arena.programs, contender, &data, &log, &extras) {
        Ok(server) => numbers_left(&server)?,
        Err(error) => {
            note(&format!("disk {}: after the restart: {error}", fault.name()));
            Vec::new()
        }
    };
    Ok(count(&outcome, begun, failed, &left))
}

/// Takes all jobs that are there.
fn numbers_left(server: &Server) -> Result<Vec<u64>> {
    let mut caller = Caller::connect(server.address, &server.codec, SILENCE_MAX)?;
    let (mut taken, mut out) = (Taken::default(), Vec::new());
    loop {
        let before = taken.len();
        out.clear();
        for _ in 0..PIPELINE {
            caller.codec.push_take(1, wall_ms(), &mut out);
        }
        caller.send(&out)?;
        for _ in 0..PIPELINE {
            caller.receive(|codec, input| codec.take_reply(input, &mut taken))?;
        }
        if taken.len() == before {
            let mut numbers = taken.numbers;
            numbers.sort_unstable();
            return Ok(numbers);
        }
    }
}

fn count(outcome: &Outcome, begun: Instant, failed: Instant, left: &[u64]) -> Counts {
    let mut counts = Counts { refused: outcome.refused, ..Counts::default() };
    for put in &outcome.answered {
        let count = if put.answered < begun {
            &mut counts.before
        } else if put.sent > failed {
            &mut counts.after
        } else {
            &mut counts.meanwhile
        };
        count.answered += 1;
        count.lost += u64::from(left.binary_search(&put.number).is_err());
    }
    counts
}
