//! Tables of rules and what they mean.

mod changes_of_the_clock;
mod docs;
mod refused;
mod searching;
mod syntax;
mod words;

use jiff::Timestamp;
use jiff::tz::TimeZoneDatabase;

use super::Cron;

fn cron(text: &str, zone: &str) -> Cron {
    Cron::new(text, zone, &TimeZoneDatabase::bundled()).unwrap()
}

fn ms(instant: &str) -> u64 {
    instant.parse::<Timestamp>().unwrap().as_millisecond() as u64
}

/// The local times of the ticks after `from`, before `to`.
fn locals(cron: &Cron, from: &str, to: &str) -> Vec<String> {
    let to_ms = ms(to);
    let ticks = std::iter::successors(cron.next(ms(from)), |&tick_ms| cron.next(tick_ms));
    ticks.take_while(|&tick_ms| tick_ms < to_ms).map(|tick_ms| local(cron, tick_ms)).collect()
}

/// `2027-03-14T03:00-04` of an instant.
fn local(cron: &Cron, at_ms: u64) -> String {
    let at = Timestamp::from_millisecond(at_ms as i64).unwrap();
    let offset = cron.zone.rules.to_offset(at);
    let text = offset.to_datetime(at).to_string();
    format!("{}{offset}", text.strip_suffix(":00").unwrap_or(&text))
}
