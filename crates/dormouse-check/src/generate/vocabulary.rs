//! The topics, backoffs and settings of a history: few, so that things meet.

use std::sync::Arc;

use dormouse_core::backoff::{Backoff, Delays};
use dormouse_core::limits::JITTER_PERMILLE_MAX;
use dormouse_core::rate::Rate;
use dormouse_core::topic::{Settings, TopicName};

/// Topics that a history uses: few, so that things meet.
pub(crate) const TOPICS: [&str; 3] = ["a", "b", "c"];
pub(crate) fn pick<T: Copy>(items: &[T], number: u16) -> Option<T> {
    (!items.is_empty()).then(|| items[usize::from(number) % items.len()])
}

/// Mostly one of the last.
pub(crate) fn pick_recent<T: Copy>(items: &[T], number: u16) -> Option<T> {
    let recent = if number % 4 == 0 { items } else { &items[items.len().saturating_sub(10)..] };
    pick(recent, number / 4)
}

/// One of the topics.
pub(crate) fn topic(number: u16) -> TopicName {
    let name = TOPICS[usize::from(number) % TOPICS.len()];
    TopicName::new(name).unwrap_or_else(|_| unreachable!("these names are good"))
}

pub(crate) fn backoff(number: u16) -> Option<Arc<Backoff>> {
    let ms = u64::from(number / 8 % 12);
    let delays = match number % 8 {
        0 | 1 => Delays::Fixed { delay_ms: ms },
        2 => Delays::Exponential { base_ms: ms, factor: 2, cap_ms: 10 },
        3 => Delays::Exponential { base_ms: 1 + ms, factor: 3, cap_ms: u64::from(number) },
        4 => Delays::List { delays_ms: vec![ms, 3, 20] },
        _ => return None,
    };
    let mut backoff = Backoff::from(delays);
    if number / 96 % 3 == 1 {
        backoff.jitter_permille = number / 288 % (JITTER_PERMILLE_MAX + 1);
    }
    Some(Arc::new(backoff))
}

/// Settings about the end of jobs, too, if `ends`.
pub(crate) fn settings(number: u16, value: u16, ends: bool) -> Settings {
    let settings = plain_settings(number, value);
    if !ends || number % 6 == 0 {
        return settings;
    }
    let chosen = number / 6;
    let some = |is_chosen: bool, ms: u16| is_chosen.then_some(u64::from(ms));
    Settings {
        keep_done_ms: some(chosen % 3 != 0, 1 + value % 40),
        expires_after_ms: some(chosen / 3 % 4 == 0, 1 + value / 40 % 20),
        delay_ms: some(chosen / 12 % 6 == 0, value % 10),
        // Sometimes itself or in a circle, which is refused.
        dead_topic: (chosen / 72 % 3 == 0).then(|| topic(value / 7)),
        ..settings
    }
}

/// Adds limits to settings: what is leased at once and how fast, of topics and of groups.
pub(crate) fn limits(settings: Settings, number: u16, value: u16) -> Settings {
    let (number, value) = (number.rotate_left(4) ^ value, value.rotate_left(9));
    let some = |is_chosen: bool, jobs: u16| is_chosen.then_some(u64::from(jobs));
    let rate = |is_chosen: bool, value: u16| {
        is_chosen.then(|| Rate {
            jobs: u64::from(1 + value % 4),
            per_ms: u64::from(1 + value / 4 % 20),
            burst: u64::from(1 + value / 80 % 3),
        })
    };
    Settings {
        leased_max: some(number % 6 == 0, 1 + value % 3),
        rate: rate(number / 6 % 8 == 0, value),
        group_leased_max: some(number / 48 % 2 == 0, 1 + value / 3 % 2),
        group_rate: rate(number / 96 % 4 == 0, value.rotate_left(5)),
        ..settings
    }
}

fn plain_settings(number: u16, value: u16) -> Settings {
    let some = |bit: u16, most: u16| {
        (number >> bit & 1 == 1).then(|| u64::from(value.rotate_left(bit.into()) % most))
    };
    match number % 6 {
        0 | 1 => Settings::default(),
        2 => Settings { dead_max: Some(u64::from(value % 3)), ..Settings::default() },
        3 => Settings { dead_ttl_ms: Some(u64::from(1 + value % 30)), ..Settings::default() },
        4 => Settings {
            jobs_max: Some(u64::from(1 + value % 8)),
            bytes_max: some(8, 60),
            ..Settings::default()
        },
        _ => Settings {
            ttr_ms: some(5, 30).map(|ms| ms + 1),
            attempts_max: some(6, 3).and_then(|number| u32::try_from(number).ok()),
            backoff: backoff(value),
            jobs_max: None,
            bytes_max: some(7, 200),
            dead_ttl_ms: some(9, 20).map(|ms| ms + 1),
            dead_max: some(10, 4),
            ..Settings::default()
        },
    }
}
