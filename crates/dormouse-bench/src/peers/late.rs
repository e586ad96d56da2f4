//! Lateness: a job per millisecond comes due one second after it was put, to consumers that wait.
//! The seeds have nothing that waits: there a poller asks each millisecond, and at once again after
//! a job.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use super::PeersPlan;
use super::arena::Arena;
use super::contender::{Contender, Dialect};
use super::findings::Findings;
use super::load::{Crowd, Work};
use super::server::Server;
use super::wire::{Puts, Speech, Taken};
use crate::Result;
use crate::latency::Latencies;
use crate::pace::{Schedule, sleep_until, wall_us};
use crate::progress::note;
use crate::redis::seeds::wall_ms;
use crate::redis::table::short;

const DELAY_MS: u64 = 1_000;
/// Workers that wait: a worker that acks does not wait.
const CONSUMERS: usize = 10;
const POLL_EVERY: Duration = Duration::from_millis(1);
/// What the way to the server may take off: a delay counts from when the put arrives there, and a
/// server may count in whole milliseconds.
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
    let mut rows = Vec::new();
    let mut p99s = Vec::new();
    for contender in CONTENDERS {
        if !plan.contenders().contains(&contender) {
            continue;
        }
        let mut late = Lateness::default();
        let there = found.try_it(contender, || {
            note(&format!("late: {}", contender.name()));
            late = measure(&arena.enter(contender)?.server, contender, plan.late_jobs)?;
            Ok(())
        })?;
        if there {
            p99s.push((contender, late.times.percentile(99) as f64));
            rows.push(late.row(contender, found));
        }
    }
    let title = format!(
        "Lateness in us at 1,000 jobs/s, {} jobs: from {DELAY_MS} ms after the put was sent to \
         receipt; {CONSUMERS} waiting consumers, for the seeds a poller each ms",
        plan.late_jobs
    );
    found.table(&title, &["contender", "p50", "p99", "max", "early", "server us per job"], &rows);
    let p99 = |wanted: Contender| {
        p99s.iter().find(|(contender, _)| *contender == wanted).map(|&(_, p99)| p99)
    };
    for ours in [Contender::RespSynced, Contender::BeanstalkSynced] {
        let name = format!("lateness p99 at 1,000 jobs/s, {}, us", ours.name());
        if let Some(theirs) = p99(Contender::Beanstalkd) {
            found.at_most(&name, theirs, p99(ours), "the bar is beanstalkd's, without log");
        }
    }
    Ok(())
}

#[derive(Default)]
struct Lateness {
    times: Latencies,
    early: u64,
    server_us: f64,
}

impl Lateness {
    /// A job came that was sent at this time.
    fn add(&mut self, sent_us: u64) {
        let (now_us, due_us) = (wall_us(), sent_us + DELAY_MS * 1_000);
        self.early += u64::from(now_us + EARLY_US < due_us);
        self.times.add_us(now_us.saturating_sub(due_us));
    }

    fn row(&mut self, contender: Contender, found: &mut Findings) -> Vec<String> {
        let mut row = vec![contender.name().to_owned()];
        for (name, percent) in [("p50", 50), ("p99", 99), ("max", 100)] {
            let us = self.times.percentile(percent);
            found.figure(format!("{}_late_{name}_us", contender.key()), us);
            row.push(short(us as f64));
        }
        found.figure(format!("{}_early", contender.key()), self.early);
        found.figure(format!("{}_late_server_us", contender.key()), self.server_us);
        row.extend([self.early.to_string(), format!("{:.1}", self.server_us)]);
        row
    }
}

fn measure(server: &Server, contender: Contender, jobs: u64) -> Result<Lateness> {
    let schedule = Schedule::begin_in(Duration::from_millis(200));
    let producer = {
        let (stream, speech) = (TcpStream::connect(server.address)?, server.speech.clone());
        thread::spawn(move || produce(stream, &speech, jobs, schedule))
    };
    let before = server.process.cpu()?;
    let mut late = Lateness::default();
    if contender.dialect() == Dialect::Seeds {
        let mut poller = Poller::connect(server)?;
        poller.poll(jobs, &mut late)?;
    } else {
        let mut consumers = Consumers::new(&server.speech, jobs, &mut late);
        Crowd::connect(server.address, CONSUMERS)?.run(&mut consumers)?;
    }
    late.server_us = (server.process.cpu()? - before).as_secs_f64() * 1e6 / jobs as f64;
    producer.join().map_err(|_| "the producer panicked")??;
    Ok(late)
}

/// One put each millisecond, whose body is the time it was sent; answers are read meanwhile.
fn produce(stream: TcpStream, speech: &Speech, jobs: u64, schedule: Schedule) -> Result<()> {
    stream.set_nodelay(true)?;
    let (mut sender, mut receiver) = (stream.try_clone()?, stream);
    let puts = Puts::new(speech, 1, DELAY_MS);
    let checker = {
        let speech = speech.clone();
        thread::spawn(move || check_puts(&mut receiver, &speech, jobs))
    };
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

fn check_puts(receiver: &mut TcpStream, speech: &Speech, jobs: u64) -> Result<()> {
    let (mut input, mut piece) = (Vec::new(), [0; 4_096]);
    for _ in 0..jobs {
        let len = loop {
            if let Some(len) = speech.put_reply(&input)? {
                break len;
            }
            let read = receiver.read(&mut piece)?;
            if read == 0 {
                return Err("the server closed the producer's connection".into());
            }
            input.extend_from_slice(&piece[..read]);
        };
        input.drain(..len);
    }
    Ok(())
}

/// Wait, ack, wait: each on its own connection.
struct Consumers<'a> {
    speech: &'a Speech,
    /// Waits that may still begin: each ends with a job.
    left: u64,
    taken: Vec<(Taken, bool)>,
    late: &'a mut Lateness,
}

impl Consumers<'_> {
    fn new<'a>(speech: &'a Speech, jobs: u64, late: &'a mut Lateness) -> Consumers<'a> {
        let taken = (0..CONSUMERS).map(|_| Default::default()).collect();
        Consumers { speech, left: jobs, taken, late }
    }
}

impl Work for Consumers<'_> {
    fn ask(&mut self, connection: usize, out: &mut Vec<u8>) -> usize {
        let (taken, is_acking) = &mut self.taken[connection];
        *is_acking = !taken.is_empty();
        if *is_acking {
            return self.speech.push_acks(taken, false, out);
        }
        if self.left == 0 {
            return 0;
        }
        self.left -= 1;
        self.speech.push_wait(wall_ms(), out);
        1
    }

    fn reply(&mut self, connection: usize, input: &[u8]) -> Result<Option<usize>> {
        let (taken, is_acking) = &mut self.taken[connection];
        if *is_acking {
            let len = self.speech.ack_reply(input, 1)?;
            if len.is_some() {
                taken.clear();
            }
            return Ok(len);
        }
        let len = self.speech.take_reply(input, taken)?;
        match (len, taken.numbers.first()) {
            (Some(_), Some(&sent_us)) => self.late.add(sent_us),
            (Some(_), None) => return Err("no job came to a waiting consumer".into()),
            (None, _) => {}
        }
        Ok(len)
    }
}

/// Asks each millisecond whether there is a job.
struct Poller<'a> {
    speech: &'a Speech,
    stream: TcpStream,
    input: Vec<u8>,
}

impl Poller<'_> {
    fn connect(server: &Server) -> Result<Poller<'_>> {
        let stream = TcpStream::connect(server.address)?;
        stream.set_nodelay(true)?;
        Ok(Poller { speech: &server.speech, stream, input: Vec::new() })
    }

    fn poll(&mut self, jobs: u64, late: &mut Lateness) -> Result<()> {
        let (mut done, mut out, mut taken) = (0, Vec::new(), Taken::default());
        while done < jobs {
            out.clear();
            self.speech.push_take(1, wall_ms(), &mut out);
            self.call(&out, |speech, input| speech.take_reply(input, &mut taken))?;
            let Some(&sent_us) = taken.numbers.first() else {
                thread::sleep(POLL_EVERY);
                continue;
            };
            late.add(sent_us);
            out.clear();
            self.speech.push_acks(&taken, false, &mut out);
            self.call(&out, |speech, input| speech.ack_reply(input, 1))?;
            taken.clear();
            done += 1;
        }
        Ok(())
    }

    fn call(
        &mut self,
        request: &[u8],
        mut reply: impl FnMut(&Speech, &[u8]) -> Result<Option<usize>>,
    ) -> Result<()> {
        self.stream.write_all(request)?;
        let mut piece = [0; 4_096];
        loop {
            let read = self.stream.read(&mut piece)?;
            if read == 0 {
                return Err("the server closed the poller's connection".into());
            }
            self.input.extend_from_slice(&piece[..read]);
            if let Some(len) = reply(self.speech, &self.input)? {
                self.input.drain(..len);
                return Ok(());
            }
        }
    }
}
