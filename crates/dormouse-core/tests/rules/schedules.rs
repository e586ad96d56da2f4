//! Schedules: their ticks come whether or not somebody waits, each once.

use dormouse_core::command::{Command, Reply};
use dormouse_core::error::{Code, Error};
use dormouse_core::job::{JobId, State};
use dormouse_core::op::*;
use dormouse_core::schedule::{Catchup, Overlap, ScheduleName, Template};
use dormouse_core::topic::Settings;

use crate::support::*;

fn name(name: &str) -> ScheduleName {
    ScheduleName::new(name).unwrap()
}

fn every(span_ms: i64) -> PutSchedule {
    let template = Template { body: "work".into(), ..Template::default() };
    let put = PutSchedule::new(topic("t"), name("s"), template);
    PutSchedule { every_ms: Some(span_ms), ..put }
}

impl Rig {
    fn schedule(&mut self, put: PutSchedule) -> Result<PutScheduleReply, Error> {
        match self.run(Command::PutSchedule(Box::new(put)))? {
            Reply::PutSchedule(reply) => Ok(*reply),
            other => panic!("{other:?}"),
        }
    }

    fn look(&mut self) -> Result<ScheduleView, Error> {
        let get = GetSchedule { topic: topic("t"), name: name("s") };
        match self.run(Command::GetSchedule(get))? {
            Reply::Schedule(view) => Ok(*view),
            other => panic!("{other:?}"),
        }
    }

    fn change(&mut self, change: ScheduleChange) -> Result<ScheduleView, Error> {
        let change = ChangeSchedule { topic: topic("t"), name: name("s"), change };
        match self.run(Command::ChangeSchedule(change))? {
            Reply::Schedule(view) => Ok(*view),
            other => panic!("{other:?}"),
        }
    }

    fn counts(&mut self) -> [u64; 4] {
        let counts = self.look().unwrap().counts;
        [counts.given, counts.missed, counts.overlapped, counts.skipped]
    }

    fn waiting(&mut self) -> u64 {
        let stats = self.stats("t").unwrap();
        stats.delayed + stats.ready
    }
}

#[test]
fn a_tick_comes_though_nobody_waits() {
    let mut rig = Rig::new();
    let reply = rig.schedule(every(1_000)).unwrap();
    assert_eq!((reply.outcome, reply.version), (ScheduleOutcome::Created, 1));
    assert_eq!(reply.next_at, Some(WALL_0 + 1_000));
    assert_eq!(reply.words, "every 1s");
    assert_eq!(rig.machine.next_wake(rig.now), Some(1_000));
    rig.pass(999);
    assert_eq!(rig.waiting(), 0);
    rig.pass(1);
    assert_eq!(rig.waiting(), 1);
    let job = rig.take("t");
    assert_eq!((job.body.as_ref(), job.due_at), (b"work".as_ref(), WALL_0 + 1_000));
    let tick = job.tick.unwrap();
    assert_eq!((tick.schedule.clone(), tick.tick_ms, tick.missed), (name("s"), WALL_0 + 1_000, 0));
    assert_eq!(rig.counts(), [1, 0, 0, 0]);
}

#[test]
fn a_waiting_reserve_gets_the_tick() {
    let mut rig = Rig::new();
    rig.schedule(every(1_000)).unwrap();
    let ticket = rig.begin(Command::Reserve(reserve(&["t"], 1, 5_000)));
    rig.pass(1_000);
    let jobs = jobs(rig.answer(ticket).expect("the tick is given"));
    assert_eq!(jobs.len(), 1);
}

#[test]
fn the_same_again_changes_nothing() {
    let mut rig = Rig::new();
    rig.schedule(every(1_000)).unwrap();
    rig.pass(300);
    rig.facts.clear();
    for _ in 0..1_000 {
        let reply = rig.schedule(every(1_000)).unwrap();
        assert_eq!(
            (reply.outcome, reply.next_at),
            (ScheduleOutcome::Unchanged, Some(WALL_0 + 1_000))
        );
    }
    assert!(rig.facts.is_empty());
    let other = PutSchedule { on_conflict: ScheduleConflict::Keep, ..every(2_000) };
    assert_eq!(rig.schedule(other).unwrap().outcome, ScheduleOutcome::Duplicate);
    let other = PutSchedule { on_conflict: ScheduleConflict::Reject, ..every(2_000) };
    assert_eq!(code(rig.schedule(other)), Code::Conflict);
    let other = PutSchedule { if_version: Some(2), ..every(2_000) };
    assert_eq!(code(rig.schedule(other)), Code::Conflict);
    let other = PutSchedule { if_version: Some(1), ..every(2_000) };
    let reply = rig.schedule(other).unwrap();
    assert_eq!((reply.outcome, reply.version), (ScheduleOutcome::Replaced, 2));
    assert_eq!(reply.next_at, Some(WALL_0 + 2_300));
}

#[test]
fn a_tick_waits_for_the_job_before() {
    let mut rig = Rig::new();
    rig.schedule(PutSchedule { overlap: Some(Overlap::Wait), ..every(1_000) }).unwrap();
    rig.pass(1_000);
    let first = rig.take("t");
    rig.pass(2_500);
    assert_eq!(rig.look().unwrap().state, ScheduleState::Busy);
    assert_eq!(rig.machine.next_wake(rig.now), Some(57_500), "only the lease matters");
    rig.ack(first.token).unwrap();
    assert_eq!(rig.take("t").tick.unwrap().tick_ms, WALL_0 + 3_000);
    assert_eq!(rig.counts(), [2, 0, 1, 0]);
}

/// However a job ends, the schedule goes on.
#[test]
fn every_end_of_a_job_wakes_its_schedule() {
    type End = fn(&mut Rig, LeasedJob);
    let ends: [(&str, End); 6] = [
        ("ack", |rig, job| assert!(rig.ack(job.token).is_ok())),
        ("cancel", |rig, job| assert!(rig.cancel(Target::Id(job.id)).is_ok())),
        ("kill", |rig, job| assert!(rig.kill(KillTarget::Token(job.token)).is_ok())),
        ("nack", |rig, job| assert_eq!(rig.nack(job.token), Ok(EndReply::Dead))),
        ("expiry", |rig, job| rig.pass(job.ttr_ms)),
        ("purge", |rig, job| {
            rig.release(job.token).unwrap();
            rig.run(Command::Purge(topic("t").into())).unwrap();
        }),
    ];
    for (word, end) in ends {
        let mut rig = Rig::new();
        let mut put = every(100_000);
        put.template.attempts_max = Some(1);
        rig.schedule(put).unwrap();
        rig.pass(100_000);
        let job = rig.take("t");
        rig.pass(10_000);
        rig.extend(job.token, Some(150_000)).unwrap();
        rig.pass(110_000);
        assert_eq!(rig.look().unwrap().state, ScheduleState::Busy, "{word}");
        rig.extend(job.token, Some(60_000)).unwrap();
        end(&mut rig, LeasedJob { ttr_ms: 60_000, ..job });
        rig.pass(0);
        assert_eq!(rig.look().unwrap().state, ScheduleState::Waiting, "{word}");
        rig.pass(100_000);
        assert_eq!(rig.waiting(), 1, "{word}");
    }
}

#[test]
fn the_job_before_is_replaced() {
    let mut rig = Rig::new();
    rig.schedule(PutSchedule { overlap: Some(Overlap::Replace), ..every(1_000) }).unwrap();
    rig.pass(1_000);
    let first = rig.take("t");
    rig.pass(1_000);
    assert_eq!(rig.ack(first.token), Ok(EndReply::Gone));
    assert_eq!(rig.take("t").tick.unwrap().tick_ms, WALL_0 + 2_000);
    assert_eq!(rig.waiting(), 0);
}

#[test]
fn a_gap_counts_from_the_end() {
    let mut rig = Rig::new();
    rig.schedule(PutSchedule { every_ms: None, gap_ms: Some(1_000), ..every(1) }).unwrap();
    rig.pass(1_000);
    let job = rig.take("t");
    rig.pass(30_000);
    rig.ack(job.token).unwrap();
    rig.pass(999);
    assert_eq!(rig.waiting(), 0);
    rig.pass(1);
    assert_eq!(rig.waiting(), 1);
}

#[test]
fn a_full_topic_loses_no_tick() {
    let mut rig = Rig::new();
    rig.set("t", Settings { jobs_max: Some(1), ..Settings::default() });
    let filler = rig.put_in("t", 3_600_000);
    rig.schedule(every(1_000)).unwrap();
    rig.pass(4_200);
    assert_eq!((rig.waiting(), rig.counts()), (1, [0, 0, 0, 0]));
    rig.cancel(Target::Id(filler)).unwrap();
    rig.pass(1_100);
    assert_eq!(rig.take("t").tick.unwrap().missed, 4);
    assert_eq!(rig.counts(), [1, 4, 0, 0]);
}

#[test]
fn a_schedule_is_overdue_until_its_tick_is_given() {
    let mut rig = Rig::new();
    rig.schedule(every(1_000)).unwrap();
    rig.machine.set_full(Some(Error::new(Code::Full, "the disk is full")));
    rig.pass(1_200);
    assert_eq!((rig.waiting(), rig.machine.schedules_overdue()), (0, 1));
    rig.machine.set_full(None);
    rig.pass(5_000);
    assert_eq!((rig.waiting(), rig.machine.schedules_overdue()), (1, 0));
}

#[test]
fn schedules_are_no_jobs() {
    let mut rig = Rig::new();
    let entry = JobId(rig.put_now("other").0 + 1);
    rig.schedule(every(1_000)).unwrap();
    assert_eq!(rig.state(entry), None);
    assert_eq!(code(rig.cancel(Target::Id(entry))), Code::NotFound);
    assert_eq!(code(rig.cancel(by_key("t", "s"))), Code::NotFound);
    assert_eq!(code(rig.run_now(Target::Id(entry))), Code::NotFound);
    let reserve = ReserveId { id: entry, ttr_ms: None, session: None };
    assert!(rig.run(Command::ReserveId(reserve)).is_err());
    assert_eq!(rig.stats("t").unwrap().delayed, 0);
    rig.run(Command::Purge(topic("t").into())).unwrap();
    rig.pass(1_000);
    assert_eq!(rig.waiting(), 1);
}

#[test]
fn a_topic_lives_as_long_as_its_schedules() {
    let mut rig = Rig::new();
    rig.schedule(every(86_400_000)).unwrap();
    rig.pass(60_000);
    assert!(rig.stats("t").is_ok());
    let remove = RemoveSchedule { topic: topic("t"), name: name("s"), cancel_job: false };
    rig.run(Command::RemoveSchedule(remove.clone())).unwrap();
    assert_eq!(code(rig.run(Command::RemoveSchedule(remove))), Code::NotFound);
    rig.pass(60_000);
    assert_eq!(code(rig.stats("t")), Code::NotFound);
    rig.pass(86_400_000);
    assert_eq!(rig.machine.next_wake(rig.now), None);
}

#[test]
fn a_removed_schedule_leaves_its_job() {
    for cancel_job in [false, true] {
        let mut rig = Rig::new();
        rig.schedule(every(1_000)).unwrap();
        rig.pass(1_000);
        let remove = RemoveSchedule { topic: topic("t"), name: name("s"), cancel_job };
        rig.run(Command::RemoveSchedule(remove)).unwrap();
        assert_eq!(rig.stats("t").is_ok_and(|stats| stats.ready == 1), !cancel_job);
        rig.pass(10_000);
    }
}

#[test]
fn pause_resume_skip_replan_and_run() {
    let mut rig = Rig::new();
    rig.schedule(PutSchedule { overlap: Some(Overlap::Allow), ..every(1_000) }).unwrap();
    let view = rig.change(ScheduleChange::Pause { for_ms: None }).unwrap();
    assert_eq!((view.state, view.next.len()), (ScheduleState::Paused, 0));
    rig.pass(2_500);
    assert_eq!(rig.machine.next_wake(rig.now), None);
    let view = rig.change(ScheduleChange::Resume).unwrap();
    assert_eq!((view.state, view.next[0]), (ScheduleState::Waiting, WALL_0 + 3_000));
    let view = rig.change(ScheduleChange::Skip).unwrap();
    assert_eq!((view.next[0], view.counts.skipped), (WALL_0 + 4_000, 3));
    let view = rig.change(ScheduleChange::Pause { for_ms: Some(5_000) }).unwrap();
    assert_eq!((view.next[0], view.paused_until), (WALL_0 + 8_000, Some(WALL_0 + 7_500)));
    rig.pass(5_500);
    assert_eq!((rig.waiting(), rig.counts()), (1, [1, 0, 0, 7]));
    let run = RunSchedule { topic: topic("t"), name: name("s"), ticks: None };
    rig.run(Command::RunSchedule(run.clone())).unwrap();
    assert_eq!((rig.waiting(), rig.counts()), (2, [1, 0, 0, 7]));
    let ticks = Some((WALL_0 as i64 + 1_000, WALL_0 as i64 + 4_000));
    let Reply::Put(replies) = rig.run(Command::RunSchedule(RunSchedule { ticks, ..run })).unwrap()
    else {
        panic!("no puts")
    };
    assert_eq!(replies.len(), 3);
    let taken = rig.reserve(&["t"], 10);
    let of_ticks = taken.iter().filter_map(|job| job.tick.as_ref());
    let ticks: Vec<u64> = of_ticks.map(|tick| tick.tick_ms - WALL_0).collect();
    assert_eq!((taken.len(), ticks), (5, vec![8_000, 1_000, 2_000, 3_000]));
    let view = rig.change(ScheduleChange::Replan).unwrap();
    assert_eq!(view.next[0], WALL_0 + 9_000);
}

#[test]
fn a_page_is_in_the_order_of_the_next_ticks() {
    let mut rig = Rig::new();
    for (word, span_ms) in [("c", 3_000), ("a", 1_000), ("b", 2_000)] {
        rig.schedule(PutSchedule { name: name(word), ..every(span_ms) }).unwrap();
    }
    let cron = Some("*/10 * * * * *".to_owned());
    rig.schedule(PutSchedule { name: name("d"), cron, every_ms: None, ..every(1) }).unwrap();
    rig.schedule(PutSchedule { name: name("s"), ..every(1_500) }).unwrap();
    rig.change(ScheduleChange::Pause { for_ms: None }).unwrap();
    for limit in [1, 2, 100] {
        let (mut cursor, mut names, mut pages) = (None, Vec::new(), 0);
        loop {
            let page = Schedules { topic: topic("t"), state: None, cursor, limit };
            let Reply::Schedules(page) = rig.run(Command::Schedules(page)).unwrap() else {
                panic!("no page")
            };
            pages += 1;
            assert!(page.schedules.len() <= limit && pages < 20);
            names.extend(page.schedules.iter().map(|view| view.name.to_string()));
            cursor = page.cursor;
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!(names, ["a", "b", "c", "d", "s"], "{limit}");
    }
    let cursor = Some("x".to_owned());
    let page = Schedules { topic: topic("t"), state: None, cursor, limit: 1 };
    assert_eq!(code(rig.run(Command::Schedules(page))), Code::Invalid);
}

#[test]
fn the_clock_is_stepped() {
    let mut rig = Rig::new();
    let cron = Some("0 0 * * *".to_owned());
    rig.schedule(PutSchedule { cron, every_ms: None, ..every(1) }).unwrap();
    rig.schedule(PutSchedule { name: name("e"), ..every(3_600_000) }).unwrap();
    rig.now.wall_ms += 86_400_000;
    rig.pass(0);
    assert_eq!(rig.waiting(), 1, "the calendar's tick has come, the other has not");
    // Back again: no tick twice.
    let job = rig.take("t");
    rig.ack(job.token).unwrap();
    rig.now.wall_ms -= 86_400_000;
    rig.pass(3_600_000);
    assert_eq!(rig.take("t").tick.unwrap().schedule, name("e"));
    rig.now.wall_ms += 86_400_000;
    rig.pass(0);
    assert_eq!(rig.waiting(), 0);
}

#[test]
fn what_is_wrong_is_refused_and_nothing_is_stored() {
    let cases: [(PutSchedule, &str); 9] = [
        (PutSchedule { every_ms: None, ..every(1) }, "give one of cron, every and gap"),
        (PutSchedule { gap_ms: Some(1_000), ..every(1_000) }, "every and gap are given"),
        (every(99), "every is 99 ms; give 100 ms to 100 years"),
        (PutSchedule { zone: Some("UTC".to_owned()), ..every(1_000) }, "zone goes with cron"),
        (PutSchedule { catchup: Some(Catchup::All), ..every(1_000) }, "catchup all goes with"),
        (PutSchedule { start_at_ms: Some(5), end_at_ms: Some(5), ..every(1_000) }, "end_at"),
        (PutSchedule { end_at_ms: Some(5), ..every(1_000) }, "would never tick"),
        (PutSchedule { jitter_ms: Some(86_400_001), ..every(1_000) }, "jitter is 86400001 ms"),
        (PutSchedule { ticks_max: Some(0), ..every(1_000) }, "ticks_max is 0"),
    ];
    let mut rig = Rig::new();
    for (put, part) in cases {
        let error = rig.schedule(put).unwrap_err();
        assert_eq!(error.code, Code::Invalid);
        assert!(error.text.contains(part), "{part}: {}", error.text);
        assert!(rig.facts.is_empty());
    }
    assert_eq!(rig.state(JobId(1)), None::<State>);
}

/// Alarms may be early, by different spans over different timelines. Topics whose ticks are late
/// were asked in the order of their alarms, so the same commands gave other ids.
#[test]
fn late_ticks_of_several_topics_are_given_in_the_order_of_their_instants() {
    let mut rig = Rig::new();
    let in_topic = |place: &str, schedule: &str, span_ms| {
        let template = Template { body: "work".into(), ..Template::default() };
        let put = PutSchedule::new(topic(place), name(schedule), template);
        PutSchedule { every_ms: Some(span_ms), ..put }
    };
    for (place, span_ms) in [("a", 2_000), ("b", 2_000), ("c", 1_900)] {
        rig.schedule(in_topic(place, "s", span_ms)).unwrap();
    }
    // Its alarm stays, though nothing comes then.
    rig.schedule(in_topic("b", "early", 500)).unwrap();
    let early = RemoveSchedule { topic: topic("b"), name: name("early"), cancel_job: false };
    rig.run(Command::RemoveSchedule(early)).unwrap();
    rig.pass(2_000);
    let mut first = |place: &str| rig.take(place).token.id;
    let (a, b, c) = (first("a"), first("b"), first("c"));
    assert!(c < a && a < b, "c {c} was due first, then a {a} and b {b}");
}
