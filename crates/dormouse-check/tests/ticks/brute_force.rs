//! All minutes around all changes of the clock, in all zones.
//!
//! The slow way knows of a zone only its offset at an instant. It walks minute by minute, remembers
//! every local time it has seen, and applies the definition of ticks to each step.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use dormouse_check::generate::rng::Rng;
use dormouse_check::generate::seed::seed;
use jiff::civil::Date;
use jiff::tz::{TimeZone, TimeZoneDatabase};
use jiff::{Timestamp, ToSpan};

use super::cron;
use super::naive::Naive;

const RULES: [&str; 26] = [
    "30 2 * * *",
    "0 2 * * *",
    "10,20 2 * * *",
    "30 2,3 * * *",
    "0 2,3 * * *",
    "*/30 * * * *",
    "*/30 2 * * *",
    "* 2 * * *",
    "0 * * * *",
    "0,30 1 * * *",
    "30 1 * * *",
    "0 1-2 * * *",
    "0 0 * * *",
    "30 23 * * *",
    "15 */2 * * *",
    "0 12 * * *",
    "45 1 * * 0",
    "0 0 1 * *",
    "* * * * *",
    "59 23 31 12 *",
    "7 0-23 * * *",
    "*/7 0,1,2,3 * * 0,6",
    "30 2 * * 7L",
    "0 0,3 LW * *",
    "0 1,2,3 * * SUN#1",
    "15 0-4 1-7 * 6",
];
const MINUTE_S: i64 = 60;
const DAY_S: i64 = 86_400;
/// Around a change: more than the greatest one, which is a day.
const WINDOW_S: i64 = 30 * 3_600;

#[derive(Default, Debug)]
struct Totals {
    zones: usize,
    transitions: usize,
    ticks: usize,
}

/// One instant after the other, and what the clocks of a zone show: seconds of the local calendar.
struct Walk {
    steps: Vec<(i64, i64)>,
    step_s: i64,
}

impl Walk {
    /// From two days earlier on, so that all local times that can come again are known.
    fn new(zone: &TimeZone, from: i64, to: i64, step_s: i64) -> Walk {
        let offset = |at| i64::from(zone.to_offset(Timestamp::from_second(at).unwrap()).seconds());
        let instants = (from - 2 * DAY_S..=to).step_by(step_s as usize);
        Walk { steps: instants.map(|at| (at, at + offset(at))).collect(), step_s }
    }

    /// The ticks after `from`.
    fn ticks(&self, rule: &str, from: i64) -> Vec<i64> {
        let rule = Naive::new(rule);
        let days: HashSet<i64> = self.steps.iter().map(|(_, local)| local / DAY_S).collect();
        let mut chosen_days: HashMap<i64, bool> = HashMap::new();
        let mut is_chosen = |local: i64| {
            let day = local / DAY_S;
            rule.has_time(local % DAY_S)
                && *chosen_days.entry(day).or_insert_with(|| rule.has_date(date(day)))
        };
        // Local times around the first one, which may go back or be left out by a day and more.
        let base = self.steps[0].1 - 4 * DAY_S;
        let index = |local: i64| ((local - base) / self.step_s) as usize;
        let mut seen = vec![false; self.steps.len() + index(self.steps[0].1) * 2];
        let mut ticks = Vec::new();
        let mut expected = self.steps[0].1;
        for &(at, local) in &self.steps {
            let mut is_tick = is_chosen(local) && !(rule.is_clock() && seen[index(local)]);
            // What the clock has jumped over.
            while rule.is_clock() && expected < local {
                let is_left_out = !seen[index(expected)] && days.contains(&(expected / DAY_S));
                is_tick |= is_left_out && is_chosen(expected);
                expected += self.step_s;
            }
            seen[index(local)] = true;
            expected = local + self.step_s;
            if is_tick && at > from {
                ticks.push(at);
            }
        }
        ticks
    }
}

fn date(day: i64) -> Date {
    Date::constant(1970, 1, 1) + day.days()
}

/// Compares all rules around a transition.
fn check_window(name: &str, zone: &TimeZone, at: i64, zones: &TimeZoneDatabase) -> usize {
    let (from, to) = (at - WINDOW_S, at + WINDOW_S);
    let walk = Walk::new(zone, from, to, MINUTE_S);
    let mut number = 0;
    for rule in RULES {
        let expected = walk.ticks(rule, from);
        number += expected.len();
        let cron = cron(rule, name, zones);
        let ms = |second: i64| second as u64 * 1_000;
        let next = |after: i64| cron.next(ms(after)).map(|ms| (ms / 1_000) as i64);
        let found = std::iter::successors(next(from), |&tick| next(tick));
        let found: Vec<i64> = found.take_while(|&tick| tick <= to).collect();
        let around = || format!("{name} {rule:?} around {}", Timestamp::from_second(at).unwrap());
        assert_eq!(found, expected, "{}", around());
        assert_eq!(cron.count(ms(from), ms(to)), expected.len() as u64, "{}", around());
        for (index, pair) in expected.windows(2).enumerate() {
            let middle = pair[0] + (pair[1] - pair[0]) / 2;
            assert_eq!(next(middle), Some(pair[1]), "{}", around());
            assert_eq!(cron.previous(ms(middle)), Some(ms(pair[0])), "{}", around());
            // Of each rule a few: counting from there is the same walk again.
            if index < 3 {
                let rest = (expected.len() - index - 1) as u64;
                assert_eq!(cron.count(ms(middle), ms(to)), rest, "{}", around());
            }
        }
    }
    number
}

/// The changes of a zone's clock, with the offsets from then on.
fn transitions(zone: &TimeZone) -> Vec<(i64, i32)> {
    let first: Timestamp = "1993-01-01T00:00:00Z".parse().unwrap();
    let last: Timestamp = "2041-01-01T00:00:00Z".parse().unwrap();
    let following = zone.following(first).take_while(|it| it.timestamp() < last);
    let change = |at: Timestamp| (at.as_second(), zone.to_offset(at).seconds());
    std::iter::once(change(first)).chain(following.map(|it| change(it.timestamp()))).collect()
}

/// All names that a rule can give.
fn names(zones: &TimeZoneDatabase) -> Vec<String> {
    zones.available().map(|name| name.to_string()).filter(|name| name.contains('/')).collect()
}

#[test]
fn a_sample_of_zones_ticks_as_a_walk_over_all_minutes_does() {
    let seed = seed();
    println!("DORMOUSE_SEED={seed}");
    let mut rng = Rng::new(seed);
    let zones = TimeZoneDatabase::bundled();
    let names = names(&zones);
    let mut totals = Totals::default();
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(8) {
        let name = rng.pick(&names).unwrap();
        let zone = zones.get(name).unwrap();
        totals.zones += 1;
        let changes = transitions(&zone);
        for _ in 0..4 {
            let (at, _) = *rng.pick(&changes).unwrap();
            totals.transitions += 1;
            totals.ticks += check_window(name, &zone, at, &zones);
        }
    }
    println!("{totals:?}");
}

/// Each change of each zone once, however long that takes. Of zones that have had the same clock
/// all the time, the first one.
#[test]
#[ignore = "a campaign"]
fn soak_all_zones_tick_as_a_walk_over_all_minutes_does() {
    let zones = TimeZoneDatabase::bundled();
    let mut totals = Totals::default();
    let mut known = HashSet::new();
    for name in names(&zones) {
        let zone = zones.get(&name).unwrap();
        let changes = transitions(&zone);
        totals.zones += 1;
        if known.insert(changes.clone()) {
            for (at, _) in changes {
                totals.transitions += 1;
                totals.ticks += check_window(&name, &zone, at, &zones);
            }
        }
    }
    println!("{totals:?}, {} zones differ", known.len());
}

/// Second by second, on some days that have a change.
#[test]
fn seconds_tick_as_a_walk_over_all_seconds_does() {
    let zones = TimeZoneDatabase::bundled();
    for (name, around) in [
        ("America/New_York", "2027-03-14T07:00:00Z"),
        ("America/New_York", "2027-11-07T06:00:00Z"),
        ("Australia/Lord_Howe", "2027-10-02T15:30:00Z"),
        ("Pacific/Apia", "2011-12-30T10:00:00Z"),
    ] {
        let zone = zones.get(name).unwrap();
        let at = around.parse::<Timestamp>().unwrap().as_second();
        let (from, to) = (at - 3 * 3_600, at + 3 * 3_600);
        let walk = Walk::new(&zone, from, to, 1);
        for rule in ["*/7 * * * * *", "30 30 2 * * *", "59 59 1,2 * * *", "10,40 * 1-3 * * *"] {
            let cron = cron(rule, name, &zones);
            let next = |after: i64| cron.next(after as u64 * 1_000).map(|ms| (ms / 1_000) as i64);
            let found = std::iter::successors(next(from), |&tick| next(tick));
            let found: Vec<i64> = found.take_while(|&tick| tick <= to).collect();
            assert_eq!(found, walk.ticks(rule, from), "{name} {rule}");
        }
    }
}
