//! Lateness: a job per millisecond comes due one second after it was put, to consumers that wait.
//! ZSET scripts have nothing that waits: there a poller asks each millisecond, and at once again
//! after a job.

use std::io::Write;
use std::thread;
use std::time::Duration;

use super::PeersPlan;
use super::arena::Arena;
use super::caller::Caller;
use super::contender::{Contender, Dialect};
use super::findings::Findings;
use super::load::{ConnectionPool, Work};
use super::server::Server;
use super::wire::{Codec, Puts, Taken};
use crate::Result;
use crate::latency::Latencies;
use crate::pace::{Schedule, sleep_until, wall_us};
use crate::progress::note;
use crate::redis::median;
use crate::redis::table::short;
use crate::redis::zset_scripts::wall_ms;

const DELAY_MS: u64 = 1_000;
/// Workers that wait: a worker that acks does not wait.
const CONSUMERS: usize = 10;
const POLL_EVERY: Duration = Duration::from_millis(1);
const SILENCE_MAX: Duration = Duration::from_secs(30);
/// The contenders take turns; the median of this many rounds counts.
const ROUNDS_MAX: usize = 3;
/// How much the way to the server may take off: a delay counts from when the put arrives there, and
/// a server may count in whole milliseconds.
const EARLY_US: u64 = 1_000;

/// Those that are as quick as they can be made, and the durable ones of this project.
const CONTENDERS: [Contender; 6] = [
    Contender::RedisNo,
    Contender::Beanstalkd,
    Contender::RespSynced,
    Contender::RespRelaxed,
    Contender::BeanstalkSynced,
    Contender::BeanstalkRelaxed,
];

pub(super) fn run(arena: &mut Arena, plan: &PeersPlan, found: &mut Findings) -> Result<()> {
    let takes_part = |contender: &Contender| plan.contenders().contains(contender);
    let mut contenders: Vec<_> = CONTENDERS.into_iter().filter(takes_part).collect();
    let mut all: Vec<(Contender, Lateness)> = Vec::new();
    for round in 1..=plan.rounds.min(ROUNDS_MAX) {
        for &contender in &contenders {
            found.try_it(contender, || {
                let server = arena.enter(contender)?.server;
                let mut late = measure(&server, contender, plan.late_jobs)?;
                let p99 = late.times.percentile(99);
                note(&format!("late {round}: {}: p99 {p99} us", contender.name()));
                all.push((contender, late));
                Ok(())
            })?;
        }
        contenders.reverse();
    }
    report(&mut all, plan, found);
    Ok(())
}

fn report(all: &mut [(Contender, Lateness)], plan: &PeersPlan, found: &mut Findings) {
    let mut rows = Vec::new();
    let mut p99s = Vec::new();
    for contender in CONTENDERS {
        let mut own: Vec<&mut Lateness> =
            all.iter_mut().filter(|(one, _)| *one == contender).map(|(_, late)| late).collect();
        if own.is_empty() {
            continue;
        }
        let mut middle = |figure: fn(&mut Lateness) -> f64| {
            median(own.iter_mut().map(|late| figure(late)).collect())
        };
        let figures = [
            ("late_p50_us", middle(|late| late.times.percentile(50) as f64)),
            ("late_p99_us", middle(|late| late.times.percentile(99) as f64)),
            ("late_max_us", middle(|late| late.times.percentile(100) as f64)),
            ("late_server_us", middle(|late| late.server_us)),
            ("early", own.iter().map(|late| late.early).sum::<u64>() as f64),
        ];
        let mut row = vec![contender.name().to_owned()];
        row.extend(figures.iter().map(|(_, value)| short(*value)));
        rows.push(row);
        p99s.push((contender, figures[1].1));
        for (name, value) in figures {
            found.figure(format!("{}_{name}", contender.key()), value);
        }
    }
    let title = format!(
        "Lateness in us at 1,000 jobs/s, {} jobs: from {DELAY_MS} ms after the put was sent to \
         receipt; {CONSUMERS} waiting consumers, for ZSET scripts a poller each ms",
        plan.late_jobs
    );
    found.table(&title, &["contender", "p50", "p99", "max", "server us per job", "early"], &rows);
    let p99 = |wanted: Contender| {
        p99s.iter().find(|(contender, _)| *contender == wanted).map(|&(_, p99)| p99)
    };
    for ours in [Contender::RespSynced, Contender::BeanstalkSynced] {
        let name = format!("lateness p99 at 1,000 jobs/s, {}, us", ours.name());
        let more = "the bar is beanstalkd's, without log";
        found.at_most(&name, p99(Contender::Beanstalkd).unwrap_or(0.0), p99(ours), more);
    }
}

#[derive(Default)]
struct Lateness {
    times: Latencies,
    early: u64,
    server_us: f64,
}

impl Lateness {
    /// A job arrived that was sent at this time.
    fn add(&mut self, sent_us: u64) {
        let (now_us, due_us) = (wall_us(), sent_us + DELAY_MS * 1_000);
        self.early += u64::from(now_us + EARLY_US < due_us);
        self.times.add_us(now_us.saturating_sub(due_us));
    }
}

fn measure(server: &Server, contender: Contender, jobs: u64) -> Result<Lateness> {
    let schedule = Schedule::begin_in(Duration::from_millis(200));
    let producer = {
        let caller = Caller::connect(server.address, &server.codec, SILENCE_MAX)?;
        thread::spawn(move || produce(caller, jobs, schedule))
    };
    let before = server.process.cpu()?;
    let mut late = Lateness::default();
    if contender.dialect() == Dialect::ZsetScripts {
        let caller = Caller::connect(server.address, &server.codec, SILENCE_MAX)?;
        poll(caller, jobs, &mut late)?;
    } else {
        let mut consumers = Consumers::new(&server.codec, jobs, &mut late);
        ConnectionPool::connect(server.address, CONSUMERS)?.run(&mut consumers)?;
    }
    late.server_us = (server.process.cpu()? - before).as_secs_f64() * 1e6 / jobs as f64;
    producer.join().map_err(|_| "the producer panicked")??;
    Ok(late)
}

/// One put each millisecond, whose body is the time it was sent; answers are read meanwhile.
fn produce(caller: Caller, jobs: u64, schedule: Schedule) -> Result<()> {
    let puts = Puts::new(&caller.codec, 1, DELAY_MS);
    let mut sender = caller.sender()?;
    let checker = thread::spawn(move || check_puts(caller, jobs));
    let mut out = Vec::new();
    for ms in 0..jobs {
        sleep_until(schedule.instant(ms));
        out.clear();
        let now_us = wall_us();
        // Rounded up, so that a job is not due before its time.
        puts.push_one(ms, now_us, now_us.div_ceil(1_000), &mut out);
        sender.write_all(&out)?;
    }
    checker.join().map_err(|_| "the checker panicked")?
}

fn check_puts(mut caller: Caller, jobs: u64) -> Result<()> {
    (0..jobs).try_for_each(|_| caller.receive(Codec::put_reply))
}

/// Wait, ack, wait: each on its own connection.
struct Consumers<'a> {
    codec: &'a Codec,
    /// Waits that may still begin: each ends with a job.
    left: u64,
    taken: Vec<(Taken, bool)>,
    late: &'a mut Lateness,
}

impl Consumers<'_> {
    fn new<'a>(codec: &'a Codec, jobs: u64, late: &'a mut Lateness) -> Consumers<'a> {
        let taken = (0..CONSUMERS).map(|_| Default::default()).collect();
        Consumers { codec, left: jobs, taken, late }
    }
}

impl Work for Consumers<'_> {
    fn ask(&mut self, connection: usize, out: &mut Vec<u8>) -> usize {
        let (taken, is_acking) = &mut self.taken[connection];
        *is_acking = !taken.is_empty();
        if *is_acking {
            return self.codec.push_acks(taken, false, out);
        }
        if self.left == 0 {
            return 0;
        }
        self.left -= 1;
        self.codec.push_wait(wall_ms(), out);
        1
    }

    fn reply(&mut self, connection: usize, input: &[u8]) -> Result<Option<usize>> {
        let (taken, is_acking) = &mut self.taken[connection];
        if *is_acking {
            let len = self.codec.ack_reply(input, 1)?;
            if len.is_some() {
                taken.clear();
            }
            return Ok(len);
        }
        let len = self.codec.take_reply(input, taken)?;
        match (len, taken.numbers.first()) {
            (Some(_), Some(&sent_us)) => self.late.add(sent_us),
            (Some(_), None) => return Err("no job came to a waiting consumer".into()),
            (None, _) => {}
        }
        Ok(len)
    }
}

/// Asks each millisecond whether there is a job.
fn poll(mut caller: Caller, jobs: u64, late: &mut Lateness) -> Result<()> {
    let (mut done, mut out, mut taken) = (0, Vec::new(), Taken::default());
    while done < jobs {
        out.clear();
        caller.codec.push_take(1, wall_ms(), &mut out);
        caller.send(&out)?;
        caller.receive(|codec, input| codec.take_reply(input, &mut taken))?;
        let Some(&sent_us) = taken.numbers.first() else {
            thread::sleep(POLL_EVERY);
            continue;
        };
        late.add(sent_us);
        out.clear();
        caller.codec.push_acks(&taken, false, &mut out);
        caller.send(&out)?;
        caller.receive(|codec, input| codec.ack_reply(input, 1))?;
        taken.clear();
        done += 1;
    }
    Ok(())
}
