//! Memory: what a server takes for jobs that wait, and for connections that say nothing.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use super::PeersPlan;
use super::arena::Arena;
use super::contender::{Contender, Dialect, Maker};
use super::findings::Findings;
use super::load::{ConnectionPool, Limits, PutWork};
use super::server::{Extras, Server};
use crate::Result;
use crate::progress::note;
use crate::redis::table::short;

const DELAY: Duration = Duration::from_secs(3_600);
const PIPELINE: usize = 100;
/// No contender needs longer to take its jobs.
const FILL_MAX: Duration = Duration::from_secs(600);
const IDLE: usize = 10_000;
const IDLE_MIB_MAX: f64 = 150.0;
/// Share of the peers' memory.
const BAR: f64 = 0.1;
const MIB: f64 = 1_048_576.0;

/// Durability makes no difference to them here; one of each dialect.
const CONTENDERS: [Contender; 3] =
    [Contender::RedisNo, Contender::Beanstalkd, Contender::RespSynced];

/// A server's memory before and with jobs, and the most it ever was.
#[derive(Clone, Copy, Default)]
struct Memory {
    before: f64,
    with_jobs: f64,
    peak: f64,
}

impl Memory {
    fn per_job(&self, jobs: u64) -> f64 {
        (self.with_jobs - self.before) / jobs as f64
    }
}

pub(super) fn run(arena: &mut Arena, plan: &PeersPlan, found: &mut Findings) -> Result<()> {
    let mut rows = Vec::new();
    // What the peers would take for as many jobs as this project's server has.
    let mut scaled = Vec::new();
    for contender in CONTENDERS {
        if !plan.contenders().contains(&contender) {
            continue;
        }
        let jobs = plan.memory_jobs;
        let Some(memory) = filled(arena, contender, jobs, found)? else { continue };
        rows.push(row(contender, jobs, memory, found));
        if contender.maker() != Maker::Dormouse {
            let whole = memory.before + memory.per_job(jobs) * plan.jobs_memory as f64;
            scaled.push((contender, whole));
        }
    }
    let ours = Contender::RespSynced;
    let mut whole = None;
    if plan.contenders().contains(&ours)
        && let Some(memory) = filled(arena, ours, plan.jobs_memory, found)?
    {
        rows.push(row(ours, plan.jobs_memory, memory, found));
        whole = Some(memory.peak);
    }
    let title = "Memory of the server, all jobs due in an hour, bodies of 100 bytes";
    found.table(title, &["contender", "jobs", "before, MiB", "with, MiB", "peak", "B/job"], &rows);
    for (peer, theirs) in scaled {
        let name = format!("server memory with {} jobs, to {}", plan.jobs_memory, peer.name());
        let more = format!("{} MiB to {} MiB, scaled", mib(whole), mib(Some(theirs)));
        found.at_most(&name, BAR, whole.map(|ours| ours / theirs), &more);
    }
    Ok(())
}

fn mib(bytes: Option<f64>) -> String {
    bytes.map_or_else(|| "?".to_owned(), |bytes| short(bytes / MIB))
}

fn row(contender: Contender, jobs: u64, memory: Memory, found: &mut Findings) -> Vec<String> {
    let name = |what| format!("{}_{jobs}_{what}", contender.key());
    found.figure(name("memory_mib"), memory.with_jobs / MIB);
    found.figure(name("memory_peak_mib"), memory.peak / MIB);
    found.figure(name("bytes_per_job"), memory.per_job(jobs));
    let [before, with_jobs, peak] =
        [memory.before, memory.with_jobs, memory.peak].map(|bytes| mib(Some(bytes)));
    let per_job = format!("{:.1}", memory.per_job(jobs));
    vec![contender.name().to_owned(), short(jobs as f64), before, with_jobs, peak, per_job]
}

/// Puts the jobs into a fresh server; nothing if it cannot take part.
fn filled(
    arena: &mut Arena,
    contender: Contender,
    jobs: u64,
    found: &mut Findings,
) -> Result<Option<Memory>> {
    let mut memory = Memory::default();
    let there = found.try_it(contender, || {
        note(&format!("memory: {}, {} jobs", contender.name(), short(jobs as f64)));
        memory = fill(&arena.enter(contender)?.server, jobs)?;
        Ok(())
    })?;
    Ok(there.then_some(memory))
}

fn fill(server: &Server, jobs: u64) -> Result<Memory> {
    let before = server.process.memory_bytes()? as f64;
    let limits = Limits { jobs, time: FILL_MAX };
    let mut work = PutWork::new(&server.codec, PIPELINE, DELAY, 0, limits);
    ConnectionPool::connect(server.address, 10)?.run(&mut work)?;
    if work.done < jobs {
        return Err(format!("{} of {jobs} jobs were put in {FILL_MAX:?}", work.done).into());
    }
    let with_jobs = server.process.memory_bytes()? as f64;
    let peak = server.process.memory_peak_bytes()? as f64;
    Ok(Memory { before, with_jobs, peak })
}

/// Connections that asked once and then say nothing, over each dialect of this project's server.
pub(super) fn idle(arena: &mut Arena, plan: &PeersPlan, found: &mut Findings) -> Result<()> {
    let room = make_room()?;
    let count = IDLE.min(room);
    for contender in [Contender::RespSynced, Contender::BeanstalkSynced] {
        if !plan.contenders().contains(&contender) {
            continue;
        }
        let mut grown = 0.0;
        let there = found.try_it(contender, || {
            note(&format!("idle connections: {}, {count}", contender.name()));
            let extras = Extras {
                dormouse: vec!["--connections-max".to_owned(), (2 * IDLE).to_string()],
                ..Extras::default()
            };
            let entered = arena.enter_with(contender, &extras)?;
            grown = idle_growth(&entered.server, contender.dialect(), count)? / MIB;
            Ok(())
        })?;
        let name = format!("memory of {count} idle connections, {}, MiB", contender.name());
        if there {
            found.figure(format!("{}_idle_mib", contender.key()), grown);
        }
        found.at_most(&name, IDLE_MIB_MAX, there.then_some(grown), "");
    }
    Ok(())
}

fn idle_growth(server: &Server, dialect: Dialect, count: usize) -> Result<f64> {
    let before = server.process.memory_bytes()?;
    let mut connections = Vec::with_capacity(count);
    for number in 0..count {
        let connected = connect(server.address, dialect);
        connections.push(connected.map_err(|error| format!("connection {number}: {error}"))?);
    }
    Ok(server.process.memory_bytes()?.saturating_sub(before) as f64)
}

fn connect(address: SocketAddr, dialect: Dialect) -> std::io::Result<TcpStream> {
    let mut stream = TcpStream::connect(address)?;
    let (ask, reply_len): (&[u8], usize) = match dialect {
        Dialect::ZsetScripts | Dialect::Verbs => (b"*1\r\n$4\r\nPING\r\n", "+PONG\r\n".len()),
        Dialect::Beanstalk => (b"list-tube-used\r\n", "USING default\r\n".len()),
    };
    stream.write_all(ask)?;
    stream.read_exact(&mut vec![0; reply_len])?;
    Ok(stream)
}

/// Raises the limit of open files for this process and its children; returns the connections it
/// allows.
fn make_room() -> Result<usize> {
    use rustix::process::{Resource, getrlimit, setrlimit};
    const OTHER_FILES: u64 = 100;
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit)?;
    let most = limit.maximum.unwrap_or(u64::MAX).saturating_sub(OTHER_FILES);
    Ok(usize::try_from(most).unwrap_or(usize::MAX))
}
