//! The table of options: each is a key of the file, a flag and an environment variable.

use std::path::PathBuf;
use std::time::Duration;

use dormouse_core::limits::{BODY_BYTES_MAX, TTL_MS_MAX, TTR_MS_DEFAULT};
use dormouse_core::topic::TopicName;
use dormouse_disk::engine::Durability;
use dormouse_redis::Level;
use dormouse_redis::limits::PARTITIONS_MAX;
use dormouse_server::UiMode;
use tracing::level_filters::LevelFilter;

use super::address;
use super::raw::{Raw, one_of};
use super::settings::{
    BEANSTALK_ADDR, BackendKind, CONNECTIONS_MAX, DRAIN_MS_MAX, HTTP_PORT, PUSH_CONNECTIONS_MAX,
    RESP_PORT, Settings,
};
use super::values::{
    NONE, backend, beanstalk, durability, level, metrics_topics, network, push_allow, push_ports,
    redis_url, store_bytes, ui_color, ui_name, without_password,
};
use crate::log_line::LogFormat;

/// One option.
pub(super) struct Key {
    /// Its name in a file; a dot separates a table from its key.
    pub(super) name: &'static str,
    /// The name with hyphens.
    pub(super) flag: &'static str,
    /// The name of its value in the help.
    pub(super) value: &'static str,
    /// One line for the help.
    pub(super) about: &'static str,
    /// More lines for the example.
    pub(super) more: &'static [&'static str],
    /// Reads it.
    pub(super) set: fn(&mut Settings, &Raw) -> Result<(), String>,
    /// As in a file; empty if it is not set.
    pub(super) show: fn(&Settings) -> String,
}

impl Key {
    pub(super) fn env(&self) -> String {
        format!("DORMOUSE_{}", self.flag.replace('-', "_").to_uppercase())
    }

    /// It has one good value, so that help and example would only tempt people to change it.
    pub(super) fn is_hidden(&self) -> bool {
        self.name.starts_with("store.")
    }

    /// The backend that it is for, if it is not for all.
    pub(super) fn backend(&self) -> Option<BackendKind> {
        match self.name.split_once('.').map_or(self.name, |(table, _)| table) {
            "data" | "durability" | "store" => Some(BackendKind::Disk),
            "redis" => Some(BackendKind::Redis),
            "test_clock" => Some(BackendKind::Memory),
            _ => None,
        }
    }

    pub(super) fn is_switch(&self) -> bool {
        self.value.is_empty()
    }

    /// The flag's value if none is given, if that is allowed.
    pub(super) fn bare(&self) -> Option<&'static str> {
        match self.name {
            "beanstalk" => Some(BEANSTALK_ADDR),
            _ => self.is_switch().then_some("true"),
        }
    }
}

pub(super) const KEYS: &[Key] = &[
    Key {
        name: "data",
        flag: "data",
        value: "DIR",
        about: "Where the disk backend keeps its files; made if it is missing",
        more: &["A path is relative to where dormouse was started."],
        set: |settings, raw| raw.text().map(|text| settings.data = text.into()),
        show: |settings| quoted(&settings.data.to_string_lossy()),
    },
    Key {
        name: "http",
        flag: "http",
        value: "ADDR",
        about: "Where HTTP is served: IP:PORT, or off; port 0 takes a free one",
        more: &["Without a token only loopback addresses are accepted; see insecure."],
        set: |settings, raw| network(raw, HTTP_PORT).map(|value| settings.http = value),
        show: |settings| on_or_off(settings.http.map(|addr| addr.to_string())),
    },
    Key {
        name: "resp",
        flag: "resp",
        value: "ADDR",
        about: "Where RESP, for any Redis client, is served: IP:PORT, or off",
        more: &["Without a token only loopback addresses are accepted; see insecure."],
        set: |settings, raw| network(raw, RESP_PORT).map(|value| settings.resp = value),
        show: |settings| on_or_off(settings.resp.map(|addr| addr.to_string())),
    },
    Key {
        name: "beanstalk",
        flag: "beanstalk",
        value: "ADDR",
        about: "Where beanstalkd's protocol is served: IP:PORT, unix:PATH, or off",
        more: &["It knows no tokens: who reaches it may do everything; see beanstalk_open."],
        set: |settings, raw| beanstalk(raw).map(|value| settings.beanstalk = value),
        show: |settings| on_or_off(settings.beanstalk.as_ref().map(address::shown)),
    },
    Key {
        name: "beanstalk_open",
        flag: "beanstalk-open",
        value: "",
        about: "Serve beanstalkd's protocol on other addresses than loopback, tokens or not",
        more: &["Everybody who reaches the address may then do everything, without a token."],
        set: |settings, raw| raw.bool().map(|value| settings.beanstalk_open = value),
        show: |settings| settings.beanstalk_open.to_string(),
    },
    Key {
        name: "beanstalk_job_bytes_max",
        flag: "beanstalk-job-bytes-max",
        value: "N",
        about: "Largest body that clients of beanstalkd may put, at most 1048576",
        more: &["Many of them think that there cannot be more than 65535."],
        set: |settings, raw| {
            // Bounded far below the range of usize.
            let number = raw.number(1, BODY_BYTES_MAX as u64)?;
            settings.beanstalk_job_bytes_max = number as usize;
            Ok(())
        },
        show: |settings| settings.beanstalk_job_bytes_max.to_string(),
    },
    Key {
        name: "durability",
        flag: "durability",
        value: "MODE",
        about: "What an answer survives: synced (a power cut) or relaxed=MS",
        more: &[
            "relaxed=MS syncs every MS ms, 1 to 60000: a killed process loses nothing, a power",
            "cut what was answered since.",
        ],
        set: |settings, raw| durability(raw.text()?).map(|value| settings.durability = value),
        show: |settings| {
            quoted(&match settings.durability {
                Durability::Synced => "synced".to_owned(),
                Durability::Relaxed { ms } => format!("relaxed={ms}"),
            })
        },
    },
    Key {
        name: "backend",
        flag: "backend",
        value: "KIND",
        about: "Where jobs are kept: disk, redis, or memory (gone with the process)",
        more: &["For redis see the table [redis] below."],
        set: |settings, raw| backend(raw.text()?).map(|value| settings.backend = value),
        show: |settings| {
            quoted(match settings.backend {
                BackendKind::Disk => "disk",
                BackendKind::Memory => "memory",
                BackendKind::Redis => "redis",
            })
        },
    },
    Key {
        name: "insecure",
        flag: "insecure",
        value: "",
        about: "Serve other addresses than loopback without any token",
        more: &["Everybody who reaches the address may then do everything."],
        set: |settings, raw| raw.bool().map(|value| settings.insecure = value),
        show: |settings| settings.insecure.to_string(),
    },
    Key {
        name: "test_clock",
        flag: "test-clock",
        value: "",
        about: "For tests: time stands still until POST /v1/test/advance moves it",
        more: &["Only with backend = \"memory\"."],
        set: |settings, raw| raw.bool().map(|value| settings.test_clock = value),
        show: |settings| settings.test_clock.to_string(),
    },
    Key {
        name: "strict",
        flag: "strict",
        value: "",
        about: "Do not start if other users can read or change the files of this server",
        more: &[
            "Those are this file, the data directory, token files and the private key. Without it",
            "their modes are warned about.",
        ],
        set: |settings, raw| raw.bool().map(|value| settings.strict = value),
        show: |settings| settings.strict.to_string(),
    },
    Key {
        name: "hosts",
        flag: "hosts",
        value: "NAMES",
        about: "Names accepted in the Host header, besides loopback names and the address",
        more: &[
            "Set it to the names under which clients reach this server; others are refused, so",
            "that no web page can talk to it through a name of its own.",
        ],
        set: |settings, raw| raw.list().map(|names| settings.hosts = names),
        show: |settings| list(settings.hosts.iter().map(String::as_str)),
    },
    Key {
        name: "ui",
        flag: "ui",
        value: "MODE",
        about: "The web console at /ui/: on, view (it may change nothing) or off",
        more: &["It is served with HTTP; what it may do is decided by the token of its user."],
        set: |settings, raw| one_of(raw.text()?, UiMode::ALL).map(|mode| settings.ui.mode = mode),
        show: |settings| quoted(settings.ui.mode.as_str()),
    },
    Key {
        name: "ui_name",
        flag: "ui-name",
        value: "NAME",
        about: "The name of this installation in the console, such as production, or none",
        more: &[],
        set: |settings, raw| ui_name(raw.text()?).map(|name| settings.ui.name = name),
        show: |settings| quoted(settings.ui.name.as_ref().map_or(NONE, |name| name.as_str())),
    },
    Key {
        name: "ui_color",
        flag: "ui-color",
        value: "COLOR",
        about: "Its colour there, so that nobody mistakes one installation for another",
        more: &["red, orange, yellow, green, teal, blue, violet, pink, gray, or none."],
        set: |settings, raw| ui_color(raw.text()?).map(|color| settings.ui.color = color),
        show: |settings| quoted(settings.ui.color.map_or(NONE, |color| color.as_str())),
    },
    Key {
        name: "metrics_topics",
        flag: "metrics-topics",
        value: "TOPICS",
        about: "Topics that always have series of their own in the metrics, at most 200",
        more: &["Of the others those are shown that are most late, most ready or most dead."],
        set: |settings, raw| metrics_topics(raw).map(|names| settings.metrics_topics = names),
        show: |settings| list(settings.metrics_topics.iter().map(TopicName::as_str)),
    },
    Key {
        name: "connections_max",
        flag: "connections-max",
        value: "N",
        about: "Connections at once; each needs a file descriptor",
        more: &[],
        set: |settings, raw| {
            // Bounded far below the range of usize.
            let number = raw.number(1, CONNECTIONS_MAX)?;
            settings.connections_max = number as usize;
            Ok(())
        },
        show: |settings| settings.connections_max.to_string(),
    },
    Key {
        name: "ttr_max",
        flag: "ttr-max",
        value: "SPAN",
        about: "The longest ttr of a job and ttl of a lock for tokens without `set_topic`",
        more: &[
            "Leases and locks are limited for all together: so nobody but an operator holds them",
            "for longer. Without tokens everybody is one. At least 60s, the usual ttr.",
        ],
        set: |settings, raw| {
            let (span, least) = (raw.span(TTL_MS_MAX)?, Duration::from_millis(TTR_MS_DEFAULT));
            if span < least {
                let (span, least) = (span.as_millis(), least.as_secs());
                return Err(format!("{span} ms is too short; at least {least}s, the usual ttr"));
            }
            settings.ttr_max = span;
            Ok(())
        },
        show: |settings| span(settings.ttr_max),
    },
    Key {
        name: "drain",
        flag: "drain",
        value: "SPAN",
        about: "How long a stop waits for requests that are under way, at most 1h",
        more: &[],
        set: |settings, raw| raw.span(DRAIN_MS_MAX).map(|span| settings.drain = span),
        show: |settings| span(settings.drain),
    },
    Key {
        name: "log",
        flag: "log",
        value: "LEVEL",
        about: "What is logged to stderr: error, warn, info or debug",
        more: &[],
        set: |settings, raw| one_of(raw.text()?, LEVELS).map(|level| settings.log = level),
        show: |settings| quoted(&settings.log.to_string()),
    },
    Key {
        name: "log_format",
        flag: "log-format",
        value: "FORMAT",
        about: "How the log is written: text, or json with one object per line",
        more: &[],
        set: |settings, raw| {
            one_of(raw.text()?, LOG_FORMATS).map(|format| settings.log_format = format)
        },
        show: |settings| {
            let same = |(_, format): &&(&str, LogFormat)| *format == settings.log_format;
            LOG_FORMATS.iter().find(same).map(|(word, _)| quoted(word)).unwrap_or_default()
        },
    },
    Key {
        name: "tls.cert",
        flag: "tls-cert",
        value: "FILE",
        about: "HTTP and RESP over TLS: the certificate chain, PEM",
        more: &[],
        set: |settings, raw| raw.text().map(|text| settings.tls_cert = Some(text.into())),
        show: |settings| path(settings.tls_cert.as_ref()),
    },
    Key {
        name: "tls.key",
        flag: "tls-key",
        value: "FILE",
        about: "HTTP and RESP over TLS: the private key, PEM",
        more: &[],
        set: |settings, raw| raw.text().map(|text| settings.tls_key = Some(text.into())),
        show: |settings| path(settings.tls_key.as_ref()),
    },
    Key {
        name: "redis.url",
        flag: "redis-url",
        value: "URL",
        about: "Redis for --backend redis: redis://[user:password@]host:port, or rediss://",
        more: &[
            "Nodes of a cluster with commas between them;",
            "for Sentinel redis+sentinel://host,host/service.",
        ],
        set: |settings, raw| redis_url(raw).map(|url| settings.redis_url = Some(url)),
        show: |settings| settings.redis_url.as_deref().map(without_password).unwrap_or_default(),
    },
    Key {
        name: "redis.level",
        flag: "redis-level",
        value: "LEVEL",
        about: "What an answer survives on Redis: applied (the default) or replicated=N",
        more: &["replicated=N waits until N replicas have it, else the answer is unconfirmed."],
        set: |settings, raw| level(raw.text()?).map(|value| settings.redis_level = Some(value)),
        show: |settings| match settings.redis_level {
            None => String::new(),
            Some(Level::Applied) => quoted("applied"),
            Some(Level::Replicated(replicas)) => quoted(&format!("replicated={replicas}")),
        },
    },
    Key {
        name: "redis.partitions",
        flag: "redis-partitions",
        value: "N",
        about: "Partitions of new topics on Redis; 1 on a single server, 8 on a cluster",
        more: &["The topics that are there keep what they have."],
        set: |settings, raw| {
            // Bounded far below the range of u16.
            let number = raw.number(1, PARTITIONS_MAX.into())?;
            settings.redis_partitions = Some(number as u16);
            Ok(())
        },
        show: |settings| shown(settings.redis_partitions.map(u64::from)),
    },
    Key {
        name: "push.on",
        flag: "push",
        value: "",
        about: "Deliver the jobs of topics with push to their URLs",
        more: &["docs/push.md says which addresses are called, and how requests are signed."],
        set: |settings, raw| raw.bool().map(|value| settings.push.is_on = value),
        show: |settings| if settings.push.is_on { "true".to_owned() } else { String::new() },
    },
    Key {
        name: "push.key",
        flag: "push-key",
        value: "FILE",
        about: "The key that secrets of pushes are derived from: 64 hexadecimal digits",
        more: &[
            "On disk it is made in `<data>/push.key` if there is none; on Redis all servers",
            "need the same. It is not part of a backup: keep a copy elsewhere.",
        ],
        set: |settings, raw| raw.text().map(|text| settings.push.key = Some(text.into())),
        show: |settings| path(settings.push.key.as_ref()),
    },
    Key {
        name: "push.allow",
        flag: "push-allow",
        value: "RANGES",
        about: "Addresses besides those of the internet that are pushed to",
        more: &["Ranges, addresses, or `host:name` for whatever a name stands for."],
        set: |settings, raw| push_allow(raw).map(|texts| settings.push.allow = texts),
        show: |settings| given(&settings.push.allow),
    },
    Key {
        name: "push.ports",
        flag: "push-ports",
        value: "PORTS",
        about: "Ports that are pushed to; 443, 80 and 1024-65535 unless given",
        more: &[],
        set: |settings, raw| push_ports(raw).map(|texts| settings.push.ports = texts),
        show: |settings| given(&settings.push.ports),
    },
    Key {
        name: "push.ca_file",
        flag: "push-ca-file",
        value: "FILE",
        about: "Authorities that receivers may have certificates of, besides the system's, PEM",
        more: &[],
        set: |settings, raw| raw.text().map(|text| settings.push.ca_file = Some(text.into())),
        show: |settings| path(settings.push.ca_file.as_ref()),
    },
    Key {
        name: "push.http",
        flag: "push-http",
        value: "",
        about: "Push to http URLs, too: bodies and headers are then not encrypted",
        more: &[],
        set: |settings, raw| raw.bool().map(|value| settings.push.http = value),
        show: |settings| if settings.push.http { "true".to_owned() } else { String::new() },
    },
    Key {
        name: "push.connections_max",
        flag: "push-connections-max",
        value: "N",
        about: "Pushes at once, of all topics together",
        more: &["One topic has at most half of them."],
        set: |settings, raw| {
            // Bounded far below the range of usize.
            let number = raw.number(1, PUSH_CONNECTIONS_MAX)?;
            settings.push.connections_max = Some(number as usize);
            Ok(())
        },
        show: |settings| shown(settings.push.connections_max.map(|number| number as u64)),
    },
    Key {
        name: "store.memtable_bytes",
        flag: "store-memtable-bytes",
        value: "N",
        about: "Jobs kept in memory before they become a run; for tests of the store",
        more: &[],
        set: |settings, raw| store_bytes(raw).map(|bytes| settings.memtable_bytes = Some(bytes)),
        show: |settings| shown(settings.memtable_bytes),
    },
    Key {
        name: "store.segment_bytes",
        flag: "store-segment-bytes",
        value: "N",
        about: "Journal written before a new segment begins; for tests of the store",
        more: &[],
        set: |settings, raw| store_bytes(raw).map(|bytes| settings.segment_bytes = Some(bytes)),
        show: |settings| shown(settings.segment_bytes),
    },
];

const LEVELS: &[(&str, LevelFilter)] = &[
    ("error", LevelFilter::ERROR),
    ("warn", LevelFilter::WARN),
    ("info", LevelFilter::INFO),
    ("debug", LevelFilter::DEBUG),
];

const LOG_FORMATS: &[(&str, LogFormat)] = &[("text", LogFormat::Text), ("json", LogFormat::Json)];

/// A text as TOML has it.
pub(super) fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

/// A list of texts as TOML has it.
fn list<'a>(texts: impl Iterator<Item = &'a str>) -> String {
    format!("[{}]", texts.map(quoted).collect::<Vec<_>>().join(", "))
}

/// The same of an option that is shown only if it is given.
fn given(texts: &[String]) -> String {
    if texts.is_empty() { String::new() } else { list(texts.iter().map(String::as_str)) }
}

fn span(span: Duration) -> String {
    match span.subsec_millis() {
        0 => quoted(&format!("{}s", span.as_secs())),
        _ => quoted(&format!("{}ms", span.as_millis())),
    }
}

fn path(path: Option<&PathBuf>) -> String {
    path.map(|path| quoted(&path.to_string_lossy())).unwrap_or_default()
}

/// Where a protocol is served.
fn on_or_off(addr: Option<String>) -> String {
    quoted(&addr.unwrap_or_else(|| "off".to_owned()))
}

fn shown(bytes: Option<u64>) -> String {
    bytes.map(|bytes| bytes.to_string()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sets one key and returns the value it shows, or the error.
    fn set(name: &str, value: &str) -> Result<String, String> {
        let key = KEYS.iter().find(|key| key.name == name).unwrap();
        let mut settings = Settings::default();
        (key.set)(&mut settings, &Raw::Loose(value.to_owned()))?;
        Ok((key.show)(&settings))
    }

    #[test]
    fn good_values_are_shown_as_a_file_has_them() {
        let check = |name: &str, value: &str, shown: &str| {
            assert_eq!(set(name, value).as_deref(), Ok(shown), "{name}");
        };
        check("data", "/var/lib/x", "\"/var/lib/x\"");
        check("http", "0.0.0.0:80", "\"0.0.0.0:80\"");
        check("http", "[::1]:0", "\"[::1]:0\"");
        check("http", "localhost:7", "\"127.0.0.1:7\"");
        check("http", "off", "\"off\"");
        check("resp", "127.0.0.1:0", "\"127.0.0.1:0\"");
        check("resp", "off", "\"off\"");
        check("beanstalk", "localhost:11300", "\"127.0.0.1:11300\"");
        check("beanstalk", "unix:/run/d.sock", "\"unix:/run/d.sock\"");
        check("beanstalk", "off", "\"off\"");
        check("beanstalk_open", "true", "true");
        check("beanstalk_job_bytes_max", "1048576", "1048576");
        check("durability", "synced", "\"synced\"");
        check("durability", "relaxed=60000", "\"relaxed=60000\"");
        check("backend", "memory", "\"memory\"");
        check("backend", "redis", "\"redis\"");
        check("redis.url", "redis://h:1,h:2", "\"redis://h:1,h:2\"");
        check("redis.url", "redis://u:p%40@h:1/2", "\"redis://u:(secret)@h:1/2\"");
        check("redis.url", "redis://:p@h", "\"redis://:(secret)@h\"");
        check("redis.level", "applied", "\"applied\"");
        check("redis.level", "replicated=2", "\"replicated=2\"");
        check("redis.partitions", "16", "16");
        check("insecure", "true", "true");
        check("test_clock", "true", "true");
        check("strict", "true", "true");
        check("hosts", "a.example,b", "[\"a.example\", \"b\"]");
        check("metrics_topics", "a.b,c", "[\"a.b\", \"c\"]");
        check("connections_max", "1", "1");
        check("ttr_max", "1h", "\"3600s\"");
        check("drain", "1m", "\"60s\"");
        check("drain", "1500", "\"1500ms\"");
        check("log", "debug", "\"debug\"");
        check("log_format", "json", "\"json\"");
        check("tls.cert", "c.pem", "\"c.pem\"");
        check("tls.key", "k.pem", "\"k.pem\"");
        check("push.on", "true", "true");
        check("push.key", "k", "\"k\"");
        check("push.allow", "10.0.0.0/8,host:a.b", "[\"10.0.0.0/8\", \"host:a.b\"]");
        check("push.ports", "443,8000-8999", "[\"443\", \"8000-8999\"]");
        check("push.ca_file", "c.pem", "\"c.pem\"");
        check("push.http", "true", "true");
        check("push.connections_max", "7", "7");
        check("store.memtable_bytes", "65536", "65536");
        check("store.segment_bytes", "65536", "65536");
    }

    #[test]
    fn errors_show_a_good_value() {
        let check = |name: &str, value: &str, part: &str| {
            let error = set(name, value).unwrap_err();
            assert!(error.contains(part), "{name}: {error}");
        };
        check("data", " ", "is empty");
        check("metrics_topics", "a b", "topic");
        check("metrics_topics", &["a"; 201].join(","), "names 201 topics, at most 200");
        check("http", "7788", "write IP:PORT");
        check("http", "example.org:7788", "write IP:PORT");
        check("http", "localhost:99999", "write IP:PORT");
        check("http", "unix:/x", "127.0.0.1:7788");
        check("resp", "7789", "127.0.0.1:7789, or off");
        check("resp", "unix:/x", "write IP:PORT");
        check("beanstalk", "11300", "127.0.0.1:11300, unix:PATH, or off");
        check("beanstalk", "/run/d.sock", "unix:PATH");
        check("beanstalk", "unix:", "unix:/run/dormouse.sock");
        check("beanstalk", &format!("unix:/{}", "x".repeat(107)), "at most 107 bytes");
        check("beanstalk_job_bytes_max", "1048577", "from 1 to 1048576");
        check("durability", "relaxed", "relaxed=MS");
        check("durability", "relaxed=0", "1 to 60000");
        check("durability", "relaxed=60001", "1 to 60000");
        check("durability", "relaxed=-1", "1 to 60000");
        check("redis.url", "127.0.0.1:6379", "no `://`");
        check("redis.url", "http://127.0.0.1:6379", "its scheme is not");
        check("redis.url", "redis://:6379", "names no host");
        check("redis.url", "redis://h:99999", "from 1 to 65535");
        check("redis.url", "redis://h/abc", "is not a number");
        check("redis.level", "replicated", "replicated=N");
        check("redis.level", "replicated=0", "1 to 16");
        check("redis.partitions", "257", "from 1 to 256");
        check("backend", "dsik", "did you mean `disk`?");
        check("insecure", "maybe", "neither true nor false");
        check("connections_max", "0", "from 1 to");
        check("connections_max", "many", "from 1 to");
        check("drain", "2h", "at most 3600s");
        check("push.allow", "10.0.0.0/33", "10.0.0.0/33");
        check("push.ports", "0", "443 or 8000-8999");
        check("push.ports", "9-1", "443 or 8000-8999");
        check("push.connections_max", "0", "from 1 to");
        check("store.memtable_bytes", "1", "from 16384 to");
        check("ui", "maybe", "on, view, off");
        check("ui_name", &"x".repeat(41), "1 to 40");
        check("ui_color", "mauve", "red, orange");
        check("log", "verbose", "error, warn, info, debug");
        check("log_format", "xml", "text, json");
    }

    #[test]
    fn names_of_flags_and_variables_follow_from_the_key() {
        for key in KEYS {
            // A switch of a table has the table's name.
            let name = key.name.strip_suffix(".on").unwrap_or(key.name);
            assert_eq!(key.flag, name.replace(['.', '_'], "-"));
            let env = format!("DORMOUSE_{}", key.flag.replace('-', "_").to_uppercase());
            assert_eq!(key.env(), env);
        }
    }
}
