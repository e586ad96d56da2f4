//! The law of ticks over random lives of schedules, and single cases by hand.

use std::hash::{BuildHasher, RandomState};

use super::*;
use crate::backoff::Delays;

/// Random numbers that a seed repeats.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        crate::backoff::mix(self.0) % bound
    }
}

const START: Now = Now { steady_ms: 1_000_000, wall_ms: 1_794_787_200_000, fraction: false };

fn name() -> ScheduleName {
    ScheduleName::new("nightly").unwrap()
}

fn definition(spec: RuleSpec) -> Definition {
    let recurrence = Recurrence { spec, jitter_ms: 0, start_at: None, end_at: None };
    Definition {
        recurrence,
        template: Template::default(),
        overlap: Overlap::Skip,
        catchup: Catchup::One,
        late_max_ms: None,
        ticks_max: None,
    }
}

fn every(span_ms: u64) -> Definition {
    definition(RuleSpec::Every { span_ms })
}

/// A schedule with a clock to move.
struct Life {
    schedule: Schedule,
    now_ms: u64,
    is_alive: bool,
    given: Vec<TickPut>,
}

impl Life {
    fn new(definition: Definition) -> Life {
        let schedule = Schedule::new(definition, START);
        let now_ms = START.on(schedule.definition.clock());
        Life { schedule, now_ms, is_alive: false, given: Vec::new() }
    }

    fn rule(&self) -> Rule {
        self.schedule.rule(&TimeZoneDatabase::bundled()).unwrap()
    }

    /// Does what is to be done now; gives where that ends.
    fn settle(&mut self) -> Plan {
        let rule = self.rule();
        loop {
            let plan = self.schedule.plan(&name(), &rule, self.now_ms, self.is_alive);
            let Plan::Give(tick) = plan else { return plan };
            assert!(tick.tick_ms <= self.now_ms && tick.due_ms <= self.now_ms);
            if let Some(before) = self.given.last() {
                assert!(before.tick_ms < tick.tick_ms, "{before:?}, {tick:?}");
            }
            self.given.push(tick);
            self.is_alive = true;
        }
    }

    fn at(&mut self, ms: u64) -> Plan {
        self.now_ms = START.on(self.schedule.definition.clock()) + ms;
        self.settle()
    }

    fn end_job(&mut self) -> Plan {
        self.is_alive = false;
        self.settle()
    }

    /// Ticks given so far, in ms since the start.
    fn ticks(&self) -> Vec<u64> {
        let start_ms = START.on(self.schedule.definition.clock());
        self.given.iter().map(|tick| tick.tick_ms - start_ms).collect()
    }

    fn counts(&self) -> [u64; 4] {
        let TickCounts { given, missed, overlapped, skipped } = self.schedule.progress.counts;
        [given, missed, overlapped, skipped]
    }
}

fn wait(ms: u64) -> Plan {
    Plan::Wait(START.steady_ms + ms)
}

#[test]
fn a_tick_is_given_at_its_time_and_not_before() {
    let mut life = Life::new(every(1_000));
    assert_eq!(life.at(0), wait(1_000));
    assert_eq!(life.at(999), wait(1_000));
    assert_eq!(life.at(1_000), wait(2_000));
    assert_eq!(life.ticks(), [1_000]);
}

#[test]
fn ticks_pass_while_the_job_before_lives() {
    let mut life = Life::new(every(1_000));
    life.at(1_000);
    assert_eq!(life.at(2_000), Plan::Park);
    assert_eq!(life.at(4_500), Plan::Park);
    assert_eq!(life.end_job(), wait(5_000));
    assert_eq!((life.ticks(), life.counts()), (vec![1_000], [1, 0, 3, 0]));
}

#[test]
fn a_skip_while_the_job_before_lives_leaves_out_the_first_after_now() {
    let mut life = Life::new(every(1_000));
    life.at(1_000);
    assert_eq!(life.at(3_500), Plan::Park);
    let (rule, now_ms) = (life.rule(), life.now_ms);
    assert_eq!(life.schedule.skip(&rule, now_ms), Some(START.steady_ms + 4_000));
    assert_eq!(life.end_job(), wait(5_000));
    life.at(5_000);
    assert_eq!((life.counts(), life.given[1].missed), ([2, 0, 2, 1], 3));
}

#[test]
fn the_latest_tick_waits_for_the_job_before() {
    let mut life = Life::new(Definition { overlap: Overlap::Wait, ..every(1_000) });
    life.at(1_000);
    assert_eq!(life.at(4_500), Plan::Park);
    assert_eq!(life.end_job(), wait(5_000));
    assert_eq!((life.ticks(), life.counts()), (vec![1_000, 4_000], [2, 0, 2, 0]));
}

#[test]
fn each_tick_waits_for_the_job_before() {
    let (overlap, catchup) = (Overlap::Wait, Catchup::All);
    let mut life = Life::new(Definition { overlap, catchup, ..every(1_000) });
    life.at(3_500);
    assert_eq!(life.ticks(), [1_000]);
    assert_eq!(life.end_job(), Plan::Park);
    assert_eq!(life.end_job(), wait(4_000));
    assert_eq!((life.ticks(), life.counts()), (vec![1_000, 2_000, 3_000], [3, 0, 0, 0]));
}

#[test]
fn jobs_live_beside_each_other_if_allowed() {
    let mut life = Life::new(Definition { overlap: Overlap::Allow, ..every(1_000) });
    life.at(1_000);
    life.at(2_000);
    assert_eq!(life.ticks(), [1_000, 2_000]);
}

#[test]
fn the_latest_of_the_ticks_that_passed_unseen_is_given() {
    let mut life = Life::new(every(1_000));
    assert_eq!(life.at(5_200), wait(6_000));
    assert_eq!((life.ticks(), life.counts()), (vec![5_000], [1, 4, 0, 0]));
    assert_eq!(life.given[0].missed, 4);
}

#[test]
fn a_tick_that_is_too_late_is_missed() {
    let late_max_ms = Some(500);
    let mut life = Life::new(Definition { late_max_ms, ..every(1_000) });
    assert_eq!(life.at(1_501), wait(2_000));
    assert_eq!(life.counts(), [0, 1, 0, 0]);
    assert_eq!(life.at(2_500), wait(3_000));
    assert_eq!((life.ticks(), life.counts()), (vec![2_000], [1, 1, 0, 0]));
    let (overlap, catchup) = (Overlap::Allow, Catchup::All);
    let mut life = Life::new(Definition { overlap, catchup, late_max_ms, ..every(200) });
    life.at(1_000);
    assert_eq!((life.ticks(), life.counts()), (vec![600, 800, 1_000], [3, 2, 0, 0]));
}

#[test]
fn a_gap_counts_from_the_end_of_the_job() {
    let mut life = Life::new(definition(RuleSpec::Gap { span_ms: 1_000 }));
    assert_eq!(life.at(0), wait(1_000));
    assert_eq!(life.at(1_700), Plan::Park);
    assert_eq!(life.at(9_000), Plan::Park);
    assert_eq!(life.end_job(), wait(10_000));
    life.at(10_000);
    assert_eq!((life.ticks(), life.counts()), (vec![1_000, 10_000], [2, 0, 0, 0]));
}

#[test]
fn a_gap_whose_tick_is_too_late_begins_anew() {
    let definition = definition(RuleSpec::Gap { span_ms: 1_000 });
    let mut life = Life::new(Definition { late_max_ms: Some(5_000), ..definition });
    assert_eq!(life.at(86_400_000), wait(86_401_000));
    assert_eq!(life.counts(), [0, 1, 0, 0]);
}

#[test]
fn ticks_of_a_pause_are_skipped() {
    let mut life = Life::new(every(1_000));
    life.at(1_500);
    life.is_alive = false;
    let (rule, now_ms) = (life.rule(), life.now_ms);
    life.schedule.pause(Pause::Open, &rule, now_ms);
    assert_eq!(life.at(3_500), Plan::Park);
    assert_eq!(life.schedule.progress.parked, Parked::Paused);
    let (rule, now_ms) = (life.rule(), life.now_ms);
    life.schedule.resume(&rule, now_ms);
    assert_eq!(life.settle(), wait(4_000));
    life.schedule.pause(Pause::Until(now_ms + 2_000), &rule, now_ms);
    assert_eq!(life.settle(), wait(6_000));
    life.at(6_000);
    assert_eq!((life.ticks(), life.counts()), (vec![1_000, 6_000], [2, 0, 0, 4]));
}

#[test]
fn a_schedule_ends_with_its_last_job() {
    let mut life = Life::new(Definition { ticks_max: Some(2), ..every(1_000) });
    life.at(1_000);
    life.is_alive = false;
    assert_eq!(life.at(2_000), Plan::Park);
    assert_eq!(life.end_job(), Plan::End);
    let mut definition = every(1_000);
    definition.recurrence.end_at = Some(START.wall_ms + 2_500);
    let mut life = Life::new(Definition { overlap: Overlap::Allow, ..definition });
    life.at(2_000);
    life.is_alive = false;
    assert_eq!(life.at(3_000), Plan::End);
    assert_eq!((life.ticks(), life.counts()), (vec![2_000], [1, 1, 0, 0]));
}

#[test]
fn a_start_is_the_first_tick() {
    for spec in [RuleSpec::Every { span_ms: 1_000 }, RuleSpec::Gap { span_ms: 1_000 }] {
        let mut definition = definition(spec);
        definition.recurrence.start_at = Some(START.wall_ms + 300);
        assert_eq!(Life::new(definition).at(0), wait(300));
    }
    let mut definition = every(1_000);
    definition.recurrence.start_at = Some(START.wall_ms - 300);
    assert_eq!(Life::new(definition).at(0), wait(700));
    let (text, zone) = ("0 12 * * *".to_owned(), "UTC".to_owned());
    let mut definition = super::tests::definition(RuleSpec::Cron { text, zone });
    let noon_ms = START.wall_ms - START.wall_ms % 86_400_000 + 86_400_000 * 3 / 2;
    definition.recurrence.start_at = Some(noon_ms);
    assert_eq!(Life::new(definition).at(0), Plan::Wait(noon_ms));
}

#[test]
fn a_job_is_late_by_jitter_but_before_the_next_tick() {
    let mut definition = every(1_000);
    definition.recurrence.jitter_ms = 5_000;
    let mut life = Life::new(Definition { overlap: Overlap::Allow, ..definition });
    for ms in 0..20_000 {
        life.at(ms);
    }
    assert_eq!(
        life.ticks(),
        (1..life.given.len() as u64 + 1).map(|k| k * 1_000).collect::<Vec<_>>()
    );
    assert!(life.given.len() >= 19);
    let spread: std::collections::BTreeSet<_> =
        life.given.iter().map(|tick| tick.due_ms - tick.tick_ms).collect();
    assert!(spread.len() > 10 && spread.iter().all(|ms| *ms < 1_000), "{spread:?}");
}

#[test]
fn a_new_recurrence_gives_no_tick_of_the_past() {
    let mut life = Life::new(every(60_000));
    life.now_ms += 90_000;
    let now = Now { steady_ms: life.now_ms, ..START };
    let rule = life.rule();
    life.schedule.redefine(every(30_000), Some(&rule), now);
    assert_eq!(life.settle(), wait(120_000));
    assert_eq!((life.counts(), life.schedule.version), ([0, 1, 0, 0], 2));
    // A change of the rest keeps the tick, even one that is overdue.
    life.now_ms += 40_000;
    let rule = life.rule();
    let definition = Definition { overlap: Overlap::Allow, ..every(30_000) };
    life.schedule.redefine(definition, Some(&rule), Now { steady_ms: life.now_ms, ..START });
    life.settle();
    assert_eq!(life.ticks(), [120_000]);
}

#[test]
fn every_tick_is_accounted_for_once() {
    let seed = std::env::var("DORMOUSE_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or_else(|| RandomState::new().hash_one("seed"));
    println!("DORMOUSE_SEED={seed}");
    let mut random = Random(seed);
    for _ in 0..2_000 {
        random_life(&mut random);
    }
}

fn random_life(random: &mut Random) {
    let (text, zone) = ("*/7 2-4 * * *".to_owned(), "Europe/Berlin".to_owned());
    let spec = match random.below(3) {
        0 => RuleSpec::Cron { text, zone },
        1 => RuleSpec::Every { span_ms: 1 + random.below(2_000_000) },
        _ => RuleSpec::Every { span_ms: 1 + random.below(1_000) },
    };
    let mut definition = definition(spec);
    definition.recurrence.jitter_ms = [0, 1, 700, 1_000_000][random.below(4) as usize];
    definition.overlap =
        [Overlap::Skip, Overlap::Wait, Overlap::Allow, Overlap::Replace][random.below(4) as usize];
    let may_catch_up = matches!(definition.overlap, Overlap::Wait | Overlap::Allow);
    if may_catch_up
        && random.below(2) == 0
        && !matches!(definition.recurrence.spec, RuleSpec::Every { span_ms } if span_ms < 100_000)
    {
        definition.catchup = Catchup::All;
    }
    definition.late_max_ms = [None, Some(0), Some(5_000)][random.below(3) as usize];
    definition.ticks_max = [None, None, Some(1 + random.below(9))][random.below(3) as usize];
    if random.below(4) == 0 {
        definition.recurrence.end_at = Some(START.wall_ms + random.below(100_000_000));
    }
    let mut life = Life::new(definition);
    let began_ms = life.schedule.progress.last_ms;
    for _ in 0..random.below(40) {
        let rule = life.rule();
        life.now_ms += [0, 1, 999, 500_000, 30_000_000][random.below(5) as usize];
        match random.below(10) {
            0 => life.schedule.pause(Pause::Open, &rule, life.now_ms),
            1 => {
                let pause = Pause::Until(life.now_ms + random.below(9_000_000));
                life.schedule.pause(pause, &rule, life.now_ms);
            }
            2 => life.schedule.resume(&rule, life.now_ms),
            3 => drop(life.schedule.skip(&rule, life.now_ms)),
            4 => life.schedule.replan(&rule, life.now_ms),
            5..8 => life.is_alive = false,
            _ => {}
        }
        let record = life.schedule.encode();
        assert_eq!(Schedule::decode(&record).as_ref(), Some(&life.schedule));
        let plan = life.settle();
        let progress = &life.schedule.progress;
        let end_ms = progress.end_ms.unwrap_or(u64::MAX).min(progress.last_ms);
        let passed = rule.count(began_ms, end_ms);
        assert_eq!(progress.counts.total(), passed, "{:?}", life.schedule);
        assert_eq!(progress.counts.given, life.given.len() as u64);
        match plan {
            Plan::Wait(ms) => assert!(ms > life.now_ms),
            Plan::Park => assert_ne!(progress.parked, Parked::No),
            Plan::End => return,
            Plan::Give(_) => unreachable!("settled"),
        }
    }
}

#[test]
fn a_record_comes_back_whole() {
    let (text, zone) = ("0 3 * * *".to_owned(), "Europe/Berlin".to_owned());
    let recurrence = Recurrence {
        spec: RuleSpec::Cron { text, zone },
        jitter_ms: 1,
        start_at: Some(2),
        end_at: Some(3),
    };
    let template = Template {
        body: "body".into(),
        body_kind: BodyKind::Json,
        headers: Some(Arc::new(vec![("a".to_owned(), "b".to_owned())])),
        priority: Some(4),
        ttr_ms: Some(5),
        attempts_max: Some(6),
        backoff: Some(Arc::new(Backoff::from(Delays::List { delays_ms: vec![7, 8_000_000] }))),
        expires_after_ms: Some(20),
        group: Some("group".into()),
    };
    let (overlap, catchup) = (Overlap::Allow, Catchup::All);
    let (late_max_ms, ticks_max) = (Some(9), Some(10));
    let definition = Definition { recurrence, template, overlap, catchup, late_max_ms, ticks_max };
    let progress = TickProgress {
        anchor_ms: 11,
        end_ms: Some(12),
        last_ms: u64::MAX,
        counts: TickCounts { given: 13, missed: 14, overlapped: 15, skipped: 16 },
        without_job: 21,
        last_job: Some(LastJob { id: JobId(u64::MAX), tick_ms: 17, put_at: 18 }),
        pause: Some(Pause::Until(19)),
        parked: Parked::Broken,
    };
    let schedule = Schedule { definition, version: 20, progress };
    let record = schedule.encode();
    assert_eq!(Schedule::decode(&record), Some(schedule));
    // A cut record is refused, or is one with a shorter body.
    for end in 0..record.len() {
        let _ = Schedule::decode(&record.slice(..end));
    }
    assert_eq!(Schedule::decode(&Bytes::from_static(b"\x02")), None);
}
