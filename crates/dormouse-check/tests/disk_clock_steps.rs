//! The wall clock stepped by an hour, forth and back, while running and across a restart.
//!
//! Relative delays and leases do not move, absolute times follow, nothing is early.

#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use dormouse_check::faults::disk::{CrashMode, SimDisk};
use dormouse_check::generate::rng::Rng;
use dormouse_core::backend::{Answer, Backend, Request, Sink, Ticket};
use dormouse_core::command::{Command, Reply};
use dormouse_core::job::Token;
use dormouse_core::op::{EndReply, LeasedJob, Put, Reserve, Stats};
use dormouse_core::topic::TopicName;
use dormouse_disk::clock::{TimeSource, VirtualClock};
use dormouse_disk::engine::{Engine, Options};

const HOUR_MS: i64 = 3_600_000;
const STEPS: [i64; 2] = [HOUR_MS, -HOUR_MS];

struct Answers(Mutex<Sender<Answer>>);

impl Sink for Answers {
    fn deliver(&self, answers: &mut Vec<(Ticket, Answer)>) {
        for (_, answer) in answers.drain(..) {
            let _ = self.0.lock().unwrap().send(answer);
        }
    }
}

struct Queue {
    disk: SimDisk,
    clock: VirtualClock,
    engine: Option<Engine>,
    sink: Arc<Answers>,
    answers: Receiver<Answer>,
}

impl Queue {
    fn new() -> Queue {
        let (sender, answers) = channel();
        let sink = Arc::new(Answers(Mutex::new(sender)));
        let (disk, clock) = (SimDisk::new(), VirtualClock::new());
        let mut queue = Queue { disk, clock, engine: None, sink, answers };
        queue.open();
        queue
    }

    fn open(&mut self) {
        let options = Options { clock: Arc::new(self.clock.clone()), ..Options::default() };
        self.engine = Some(Engine::open_on(Arc::new(self.disk.mount()), options).unwrap());
    }

    /// Stops, lets something happen to the clock, starts again.
    fn restart(&mut self, meanwhile: impl FnOnce(&VirtualClock)) {
        self.engine.take().unwrap().close().unwrap();
        meanwhile(&self.clock);
        self.open();
    }

    fn send(&self, command: Command) {
        let sink: Arc<dyn Sink> = self.sink.clone();
        let request = Request::new(Ticket::next(), command);
        self.engine.as_ref().unwrap().submit(vec![request], sink).unwrap();
    }

    fn answer(&self) -> Answer {
        self.answers.recv_timeout(Duration::from_secs(20)).expect("no answer")
    }

    fn put(&self, delay_ms: Option<i64>, at_ms: Option<i64>) {
        let mut put = Put::new(TopicName::new("t").unwrap(), "body");
        (put.delay_ms, put.at_ms, put.ttr_ms) = (delay_ms, at_ms, Some(10_000));
        self.send(Command::Put(vec![put]));
        let Ok(Reply::Put(replies)) = self.answer() else { panic!("put failed") };
        replies[0].as_ref().unwrap();
    }

    fn send_reserve(&self, wait_ms: i64) {
        let topics = vec![TopicName::new("t").unwrap()];
        let session = None;
        self.send(Command::Reserve(Reserve { topics, max: 1, wait_ms, ttr_ms: None, session }));
    }

    fn reserved(&self) -> Option<LeasedJob> {
        let Ok(Reply::Jobs(mut jobs)) = self.answer() else { panic!("reserve failed") };
        jobs.pop()
    }

    /// The jobs of a reserve that does not wait.
    fn reserve(&self) -> Option<LeasedJob> {
        self.send_reserve(0);
        self.reserved()
    }

    fn ack(&self, token: Token) -> EndReply {
        self.send(Command::Ack(vec![token]));
        let Ok(Reply::Ended(ends)) = self.answer() else { panic!("ack failed") };
        *ends[0].as_ref().unwrap()
    }

    fn wall_ms(&self) -> i64 {
        i64::try_from(self.clock.read().wall_ms).unwrap()
    }

    fn advance(&self, ms: u64) {
        self.clock.advance(Duration::from_millis(ms));
    }
}

#[test]
fn a_relative_delay_does_not_move_with_the_wall_clock() {
    for step_ms in STEPS {
        let queue = Queue::new();
        queue.put(Some(10_000), None);
        queue.clock.step_wall_ms(step_ms);
        assert_eq!(queue.reserve(), None);
        queue.advance(9_999);
        assert_eq!(queue.reserve(), None, "early by a ms after a step of {step_ms} ms");
        queue.advance(1);
        assert!(queue.reserve().is_some(), "late after a step of {step_ms} ms");
    }
}

#[test]
fn a_relative_delay_does_not_move_across_a_restart_on_the_same_boot() {
    for step_ms in STEPS {
        let mut queue = Queue::new();
        queue.put(Some(10_000), None);
        queue.restart(|clock| {
            clock.step_wall_ms(step_ms);
            clock.advance(Duration::from_millis(4_000));
        });
        queue.advance(5_999);
        assert_eq!(queue.reserve(), None, "early by a ms after a step of {step_ms} ms");
        queue.advance(1);
        assert!(queue.reserve().is_some(), "late after a step of {step_ms} ms");
    }
}

#[test]
fn on_another_boot_the_time_off_counts_by_the_wall_clock_and_never_backwards() {
    let mut queue = Queue::new();
    queue.put(Some(10_000), None);
    queue.restart(|clock| clock.reboot(Duration::from_millis(4_000)));
    queue.advance(5_999);
    assert_eq!(queue.reserve(), None, "early by a ms");
    queue.advance(1);
    assert!(queue.reserve().is_some(), "late");

    let mut queue = Queue::new();
    queue.put(Some(10_000), None);
    queue.restart(|clock| {
        clock.reboot(Duration::from_millis(4_000));
        clock.step_wall_ms(-HOUR_MS);
    });
    queue.advance(9_999);
    assert_eq!(queue.reserve(), None, "a clock that went back made it early");
    queue.advance(1);
    assert!(queue.reserve().is_some(), "a clock that went back made it late");
}

/// The step itself is written down: else a power cut would make time of it.
#[test]
fn a_step_before_a_power_cut_does_not_count_as_time() {
    for step_ms in STEPS {
        let mut queue = Queue::new();
        queue.put(Some(2 * HOUR_MS), None);
        queue.clock.step_wall_ms(step_ms);
        // Answered after all that was written before it, the step included.
        queue.send(Command::Stats(Stats { topic: None }));
        assert!(queue.answer().is_ok());
        queue.disk.crash(CrashMode::LoseUnsynced, &mut Rng::new(1));
        queue.engine.take();
        queue.clock.reboot(Duration::from_millis(HOUR_MS as u64));
        queue.open();
        queue.advance(HOUR_MS as u64 - 1);
        assert_eq!(queue.reserve(), None, "early after a step of {step_ms} ms");
        queue.advance(1);
        assert!(queue.reserve().is_some(), "late after a step of {step_ms} ms");
    }
}

#[test]
fn an_absolute_time_follows_the_wall_clock() {
    let queue = Queue::new();
    queue.put(None, Some(queue.wall_ms() + HOUR_MS / 2));
    assert_eq!(queue.reserve(), None);
    queue.clock.step_wall_ms(HOUR_MS);
    assert!(queue.reserve().is_some(), "the clock shows a later time");

    let queue = Queue::new();
    queue.put(None, Some(queue.wall_ms() + HOUR_MS / 2));
    queue.clock.step_wall_ms(-HOUR_MS);
    queue.advance(HOUR_MS as u64);
    assert_eq!(queue.reserve(), None, "the clock shows an earlier time");
    queue.advance(HOUR_MS as u64 / 2 - 1);
    assert_eq!(queue.reserve(), None, "early by a ms");
    queue.advance(1);
    assert!(queue.reserve().is_some());
}

#[test]
fn an_absolute_time_follows_the_wall_clock_across_restarts() {
    for reboots in [false, true] {
        let mut queue = Queue::new();
        queue.put(None, Some(queue.wall_ms() + HOUR_MS / 2));
        queue.restart(|clock| {
            if reboots {
                clock.reboot(Duration::from_millis(1));
            }
            clock.step_wall_ms(HOUR_MS);
        });
        assert!(queue.reserve().is_some(), "reboots: {reboots}");
    }
}

#[test]
fn a_waiting_reserve_wakes_when_the_wall_clock_steps_over_the_due_time() {
    let queue = Queue::new();
    queue.put(None, Some(queue.wall_ms() + HOUR_MS / 2));
    queue.send_reserve(60_000);
    queue.clock.step_wall_ms(HOUR_MS);
    assert!(queue.reserved().is_some());
}

#[test]
fn a_lease_does_not_move_with_the_wall_clock() {
    for step_ms in STEPS {
        let queue = Queue::new();
        queue.put(None, None);
        let first = queue.reserve().unwrap();
        queue.clock.step_wall_ms(step_ms);
        queue.advance(9_999);
        assert_eq!(queue.reserve(), None, "the lease ended early");
        queue.advance(1);
        let second = queue.reserve().expect("the lease ended late");
        assert!(second.token.fence > first.token.fence);
        assert_eq!(queue.ack(second.token), EndReply::Done);
    }
}

#[test]
fn a_lease_has_its_full_time_again_after_a_restart() {
    for step_ms in STEPS {
        let mut queue = Queue::new();
        queue.put(None, None);
        let lease = queue.reserve().unwrap();
        queue.advance(9_000);
        queue.restart(|clock| clock.step_wall_ms(step_ms));
        queue.advance(9_999);
        assert_eq!(queue.reserve(), None, "the lease ended early");
        assert_eq!(queue.ack(lease.token), EndReply::Done);
    }
}
