//! Counts and durations of HTTP requests.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use hyper::{Method, StatusCode};

use super::histogram::{Histogram, HistogramCounts};

/// Upper ends in microseconds.
const BOUNDS_US: &[u64] = &[
    250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000,
    5_000_000, 60_000_000,
];
/// Methods with counters of their own; the last one counts all others.
const METHODS: [&str; 6] = ["GET", "POST", "PUT", "DELETE", "PATCH", "other"];
const STATUSES: [&str; 21] = [
    "200", "201", "204", "303", "304", "400", "401", "403", "404", "405", "408", "409", "413",
    "415", "421", "422", "500", "503", "504", "507", "other",
];
/// Ends of paths whose requests may wait for as long as the client asked.
const WAITING: [&str; 3] = ["/reserve", "/ack", "/acquire"];

/// The label of requests that matched no route.
const NO_ROUTE: &str = "none";

/// Counts requests by route, method and status, and their durations.
pub(super) struct Traffic {
    routes: RwLock<HashMap<String, Arc<Route>>>,
    prompt: Histogram,
    waiting: Histogram,
}

/// The counters of one route.
struct Route {
    waits: bool,
    answers: [[AtomicU64; STATUSES.len()]; METHODS.len()],
}

/// A copy of the counters.
#[derive(Debug)]
pub(super) struct TrafficCounts {
    /// Route, method, status and number of requests; without zeros.
    pub(super) requests: Vec<(String, &'static str, &'static str, u64)>,
    /// Durations of requests that cannot wait.
    pub(super) prompt: HistogramCounts,
    /// Durations of requests that may wait.
    pub(super) waiting: HistogramCounts,
}

impl Default for Traffic {
    fn default() -> Traffic {
        Traffic {
            routes: RwLock::default(),
            prompt: Histogram::new(BOUNDS_US, 1_000_000),
            waiting: Histogram::new(BOUNDS_US, 1_000_000),
        }
    }
}

impl Traffic {
    /// Counts a request; `route` is the template of its path, `None` if no route matched.
    pub(super) fn answered(
        &self,
        route: Option<&str>,
        method: &Method,
        status: StatusCode,
        took: Duration,
    ) {
        let route = self.route(route.unwrap_or(NO_ROUTE));
        let methods = &route.answers[index_of(&METHODS, method.as_str())];
        methods[index_of(&STATUSES, status.as_str())].fetch_add(1, Relaxed);
        let histogram = if route.waits { &self.waiting } else { &self.prompt };
        histogram.note(std::iter::once(u64::try_from(took.as_micros()).unwrap_or(u64::MAX)));
    }

    /// The counters of a path's template. The router has a fixed number of them, so the map is
    /// bounded.
    fn route(&self, path: &str) -> Arc<Route> {
        let routes = self.routes.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(route) = routes.get(path) {
            return Arc::clone(route);
        }
        drop(routes);
        let mut routes = self.routes.write().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(routes.entry(path.to_owned()).or_insert_with(|| Arc::new(Route::new(path))))
    }

    pub(super) fn counts(&self) -> TrafficCounts {
        let mut requests = Vec::new();
        for (path, route) in self.routes.read().unwrap_or_else(PoisonError::into_inner).iter() {
            for (method, answers) in METHODS.iter().zip(&route.answers) {
                for (status, count) in STATUSES.iter().zip(answers) {
                    let count = count.load(Relaxed);
                    if count > 0 {
                        requests.push((path.clone(), *method, *status, count));
                    }
                }
            }
        }
        requests.sort();
        TrafficCounts { requests, prompt: self.prompt.counts(), waiting: self.waiting.counts() }
    }
}

impl Route {
    fn new(path: &str) -> Route {
        let waits = WAITING.iter().any(|end| path.ends_with(end));
        let none = || std::array::from_fn(|_| AtomicU64::new(0));
        Route { waits, answers: std::array::from_fn(|_| none()) }
    }
}

/// The index of a word in the list; of an unknown word, the last index.
fn index_of(list: &[&str], wanted: &str) -> usize {
    list.iter().position(|known| *known == wanted).unwrap_or(list.len() - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unlisted_methods_and_statuses_are_counted_as_other() {
        let traffic = Traffic::default();
        let teapot = StatusCode::IM_A_TEAPOT;
        traffic.answered(Some("/v1/reserve"), &Method::POST, StatusCode::OK, Duration::ZERO);
        traffic.answered(None, &Method::TRACE, teapot, Duration::from_millis(1));
        let counts = traffic.counts();
        assert_eq!(
            counts.requests,
            [
                ("/v1/reserve".to_owned(), "POST", "200", 1),
                ("none".to_owned(), "other", "other", 1)
            ]
        );
        assert_eq!((counts.prompt.count, counts.waiting.count), (1, 1));
        assert_eq!(counts.prompt.sum, 0.001);
    }
}
