//! The reply to INFO.

use std::collections::HashMap;

use redis::{FromRedisValue, RedisError};

use super::node::Node;

/// A replica that has not reported for longer confirms nothing.
const REPLICA_LAG_S_MAX: u64 = 2;

/// The fields of INFO, all sections together.
pub(super) struct Info {
    fields: HashMap<String, String>,
}

impl Info {
    pub(super) async fn of(node: &Node) -> Result<Info, RedisError> {
        let reply = node.query(&redis::cmd("INFO")).await?;
        Ok(Info::parse(&String::from_redis_value(reply)?))
    }

    /// `name:value` lines, sections begin with `#`.
    pub(super) fn parse(text: &str) -> Info {
        let fields = text.lines().filter_map(|line| line.trim_end().split_once(':'));
        let owned = fields.map(|(name, value)| (name.to_owned(), value.to_owned()));
        Info { fields: owned.collect() }
    }

    /// A field; empty if it is missing.
    pub(super) fn text(&self, name: &str) -> &str {
        self.fields.get(name).map_or("", String::as_str)
    }

    /// A numeric field; 0 if it is missing.
    pub(super) fn number(&self, name: &str) -> u64 {
        self.text(name).parse().unwrap_or_default()
    }

    /// Whether a field is 1.
    pub(super) fn is_set(&self, name: &str) -> bool {
        self.text(name) == "1"
    }

    /// Replicas that are connected, up to date, and not frozen: they report every second.
    pub(super) fn replicas(&self) -> u64 {
        let is_replica =
            |name: &str| name.strip_prefix("slave").is_some_and(|no| no.parse::<u32>().is_ok());
        let online = |(name, value): &(&String, &String)| {
            let part = |name: &str| value.split(',').find_map(|part| part.strip_prefix(name));
            let lag_s = part("lag=").and_then(|lag| lag.parse().ok()).unwrap_or(u64::MAX);
            is_replica(name) && part("state=") == Some("online") && lag_s <= REPLICA_LAG_S_MAX
        };
        self.fields.iter().filter(online).count() as u64
    }

    /// Major and minor version of Redis, or of the Redis that this is compatible with.
    pub(super) fn version(&self) -> Option<(u32, u32)> {
        let mut numbers = self.text("redis_version").split('.').map(|number| number.parse().ok());
        Some((numbers.next()??, numbers.next()??))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read() {
        let info = Info::parse(
            "# Server\r\nredis_version:7.0.15\r\n\r\n# Cluster\r\ncluster_enabled:1\r\n\
             maxmemory:1024\r\nexecutable:/a:b\r\n",
        );
        assert_eq!(info.version(), Some((7, 0)));
        assert!(info.is_set("cluster_enabled"));
        assert_eq!(info.number("maxmemory"), 1024);
        assert_eq!(info.text("executable"), "/a:b");
        assert_eq!((info.text("nothing"), info.number("nothing")), ("", 0));
        assert_eq!(Info::parse("redis_version:x").version(), None);
    }
}
