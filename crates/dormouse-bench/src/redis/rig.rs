//! A Redis and the backend on it, and what both have spent.

use std::sync::Arc;
use std::time::Duration;

use dormouse::Queue;
use dormouse_check::harness::redis::{RedisConfig, RedisServer};
use dormouse_redis::{Options, RedisBackend};

use super::RedisPlan;
use crate::Result;
use crate::client::Client;
use crate::rss;

/// Scripts at least this slow are looked at.
const SLOW_MICROS: u64 = 1_000;
/// The bar: no script takes longer.
pub(super) const SCRIPT_MICROS_MAX: u64 = 5_000;

/// The backend ends before its server.
pub(super) struct Rig {
    backend: Arc<RedisBackend>,
    pub(super) server: RedisServer,
}

/// A script that took long.
pub(super) struct SlowScript {
    pub(super) verb: String,
    pub(super) micros: u64,
}

impl Rig {
    /// A server that keeps nothing on disk: the contenders write the same bytes there or more, and
    /// a disk would only make them more alike.
    pub(super) fn start(plan: &RedisPlan) -> Result<Rig> {
        let extra = vec![
            format!("slowlog-log-slower-than {SLOW_MICROS}"),
            // Every one of them is kept.
            "slowlog-max-len 1000000".to_owned(),
        ];
        let server = RedisServer::start(RedisConfig { extra, ..RedisConfig::default() });
        let options = Options { partitions: plan.partitions, ..Options::default() };
        let backend = Arc::new(RedisBackend::open(&server.url(), options)?);
        Ok(Rig { backend, server })
    }

    /// For a thread that speaks to the backend.
    pub(super) fn client(&self) -> Client {
        Client::over(self.backend.clone())
    }

    /// The library on the backend.
    pub(super) fn queue(&self) -> Queue {
        Queue::from_backend(self.backend.clone())
    }

    /// Processor time spent since the start.
    pub(super) fn spent(&self) -> Spent {
        let stats = self.server.info_all("commandstats");
        let evalsha = stats.get("cmdstat_evalsha").map_or("", String::as_str);
        let number = |name: &str| -> u64 {
            let field = evalsha.split(',').find_map(|field| field.strip_prefix(name));
            field.and_then(|text| text.parse().ok()).unwrap_or(0)
        };
        Spent {
            redis: self.server.cpu(),
            own: rss::cpu(),
            in_scripts: Duration::from_micros(number("usec=")),
            scripts: number("calls="),
        }
    }

    /// The slow scripts since the statistics were reset, slowest first. The reset itself is in the
    /// log that it begins, and slow after a million puts; commands of scripts are in it once more.
    pub(super) fn slow_scripts(&self) -> Vec<SlowScript> {
        let is_script =
            |word: &String| ["EVALSHA", "SCRIPT"].contains(&word.to_uppercase().as_str());
        let calls = self.server.slowlog().into_iter();
        let mut slow: Vec<SlowScript> = calls
            .filter(|call| call.words.first().is_some_and(is_script))
            .map(|call| SlowScript { verb: verb_of(&call.words), micros: call.micros })
            .collect();
        slow.sort_by_key(|script| std::cmp::Reverse(script.micros));
        slow
    }
}

/// The first operation of a script: after its name come the keys, fifteen words for all operations,
/// then the verb. Anything else is named by its own first word.
fn verb_of(words: &[String]) -> String {
    const COMMON: usize = 15;
    let keys = words.get(2).and_then(|count| count.parse::<usize>().ok());
    let verb = keys.and_then(|keys| words.get(3 + keys + COMMON));
    verb.or(words.first()).cloned().unwrap_or_default()
}

/// Processor time, time in scripts, and how many.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Spent {
    pub(super) redis: Duration,
    pub(super) own: Duration,
    pub(super) in_scripts: Duration,
    pub(super) scripts: u64,
}

impl Spent {
    pub(super) fn since(self, before: Spent) -> Spent {
        Spent {
            redis: self.redis.saturating_sub(before.redis),
            own: self.own.saturating_sub(before.own),
            in_scripts: self.in_scripts.saturating_sub(before.in_scripts),
            scripts: self.scripts.saturating_sub(before.scripts),
        }
    }
}

/// The middle one; of an even number, the lower.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len().saturating_sub(1) / 2;
    values.get(middle).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!(median(vec![5.0, 1.0, 3.0]), 3.0);
        assert_eq!(median(vec![4.0, 1.0]), 1.0);
    }

    #[test]
    fn a_script_is_named_by_its_first_verb() {
        let mut words: Vec<String> = ["EVALSHA", "abc", "2", "k1", "k2"].map(String::from).into();
        words.extend((0..15).map(|index| index.to_string()));
        words.push("put".to_owned());
        assert_eq!(verb_of(&words), "put");
        assert_eq!(verb_of(&["KEYS".to_owned(), "*".to_owned()]), "KEYS");
    }
}
