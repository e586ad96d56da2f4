//! Requests over HTTP.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use hyper::{Method, StatusCode};

use super::histogram::{Drawn, Histogram};

/// Upper ends in microseconds.
const BOUNDS_US: &[u64] = &[
    250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000,
    5_000_000, 60_000_000,
];
/// Each with figures of its own; the last stands for all others.
const METHODS: [&str; 6] = ["GET", "POST", "PUT", "DELETE", "PATCH", "other"];
const STATUSES: [&str; 19] = [
    "200", "201", "204", "400", "401", "403", "404", "405", "408", "409", "413", "415", "421",
    "422", "500", "503", "504", "507", "other",
];
/// Paths that a request may wait at: how long, its client decides.
const WAITING: [&str; 3] = ["/reserve", "/ack", "/acquire"];

/// Where a request went that no path took.
const NOWHERE: &str = "none";

/// What the listener sees.
pub(super) struct Traffic {
    routes: RwLock<HashMap<String, Arc<Route>>>,
    prompt: Histogram,
    waiting: Histogram,
}

/// One path, as a template.
struct Route {
    waits: bool,
    answers: [[AtomicU64; STATUSES.len()]; METHODS.len()],
}

/// What was seen up to some moment.
#[derive(Debug)]
pub(super) struct Seen {
    /// Requests of a route, a method and a status.
    pub(super) requests: Vec<(String, &'static str, &'static str, u64)>,
    /// How long requests took that do not wait.
    pub(super) prompt: Drawn,
    /// How long requests took that may wait.
    pub(super) waiting: Drawn,
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
    /// A request was answered; `route` is the template of its path, if one took it.
    pub(super) fn answered(
        &self,
        route: Option<&str>,
        method: &Method,
        status: StatusCode,
        took: Duration,
    ) {
        let route = self.route(route.unwrap_or(NOWHERE));
        let methods = &route.answers[place(&METHODS, method.as_str())];
        methods[place(&STATUSES, status.as_str())].fetch_add(1, Relaxed);
        let histogram = if route.waits { &self.waiting } else { &self.prompt };
        histogram.note(std::iter::once(u64::try_from(took.as_micros()).unwrap_or(u64::MAX)));
    }

    /// There are as many as the router has paths, and one.
    fn route(&self, path: &str) -> Arc<Route> {
        let routes = self.routes.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(route) = routes.get(path) {
            return Arc::clone(route);
        }
        drop(routes);
        let mut routes = self.routes.write().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(routes.entry(path.to_owned()).or_insert_with(|| Arc::new(Route::new(path))))
    }

    pub(super) fn seen(&self) -> Seen {
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
        Seen { requests, prompt: self.prompt.draw(), waiting: self.waiting.draw() }
    }
}

impl Route {
    fn new(path: &str) -> Route {
        let waits = WAITING.iter().any(|end| path.ends_with(end));
        let none = || std::array::from_fn(|_| AtomicU64::new(0));
        Route { waits, answers: std::array::from_fn(|_| none()) }
    }
}

/// Where this one stands in the list; the last place is for all that are not there.
fn place(list: &[&str], wanted: &str) -> usize {
    list.iter().position(|known| *known == wanted).unwrap_or(list.len() - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_listed_is_counted_all_the_same() {
        let traffic = Traffic::default();
        let teapot = StatusCode::IM_A_TEAPOT;
        traffic.answered(Some("/v1/reserve"), &Method::POST, StatusCode::OK, Duration::ZERO);
        traffic.answered(None, &Method::TRACE, teapot, Duration::from_millis(1));
        let seen = traffic.seen();
        assert_eq!(
            seen.requests,
            [
                ("/v1/reserve".to_owned(), "POST", "200", 1),
                ("none".to_owned(), "other", "other", 1)
            ]
        );
        assert_eq!((seen.prompt.count, seen.waiting.count), (1, 1));
        assert_eq!(seen.prompt.sum, 0.001);
    }
}
