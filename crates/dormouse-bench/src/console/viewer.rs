//! What an open console asks for.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use super::http::Http;
use crate::Result;
use crate::latency::Latencies;
use crate::pace::sleep_until;

/// Times by the name of the call.
pub(super) type Times = BTreeMap<&'static str, Latencies>;

/// Time between two looks.
const EVERY: Duration = Duration::from_secs(2);
/// Topics whose forecasts the overview sums up.
const FORECAST_TOPICS: u64 = 5;

pub(super) fn topic_name(number: u64) -> String {
    format!("t{number:06}")
}

fn of_overview(topics: u64) -> Vec<(&'static str, String)> {
    let names = (0..FORECAST_TOPICS.min(topics)).map(topic_name);
    let query: Vec<String> = names.map(|name| format!("topic={name}")).collect();
    vec![
        ("stats", "/v1/stats".to_owned()),
        ("history", "/v1/history?step=10s".to_owned()),
        ("sorted_ready", "/v1/topics?sort=ready&limit=20".to_owned()),
        ("sorted_dead", "/v1/topics?sort=dead&limit=20".to_owned()),
        ("forecast", format!("/v1/forecast?{}&step=12m", query.join("&"))),
    ]
}

fn of_topic(topic: &str) -> Vec<(&'static str, String)> {
    let under = |rest: &str| format!("/v1/topics/{topic}{rest}");
    vec![
        ("topic", under("")),
        ("topic_lateness", under("/lateness")),
        ("topic_history", format!("/v1/history?topic={topic}")),
        ("topic_forecast", under("/forecast?step=12m")),
        ("list_delayed", under("/jobs?state=delayed&limit=50&bodies=false")),
        ("list_ready", under("/jobs?state=ready&limit=50&bodies=false")),
        ("dead_groups", under("/dead/groups?look_at=5000")),
        ("consumers", under("/consumers")),
    ]
}

/// What a browser asks for that opens the overview.
pub(super) fn first_calls(topics: u64) -> Vec<(&'static str, String)> {
    let mut calls = vec![("page", "/ui/".to_owned()), ("whoami", "/v1/whoami".to_owned())];
    calls.extend(of_overview(topics));
    calls
}

/// Looks until this instant: every second viewer at the large topic, the others at any.
pub(super) fn look(addr: SocketAddr, number: usize, topics: u64, end: Instant) -> Result<Times> {
    let (mut http, mut times) = (Http::open(addr)?, Times::new());
    // They did not open their consoles at the same instant.
    let mut next = Instant::now() + EVERY / 16 * u32::try_from(number % 16).unwrap_or(0);
    let mut looks = number as u64;
    while next < end {
        sleep_until(next);
        looks += 1;
        let topic = if number % 2 == 0 { 0 } else { looks * 7_919 % topics };
        for (name, path) in of_overview(topics).into_iter().chain(of_topic(&topic_name(topic))) {
            times.entry(name).or_default().add(http.get(&path)?.all);
        }
        next = (next + EVERY).max(Instant::now());
    }
    Ok(times)
}
