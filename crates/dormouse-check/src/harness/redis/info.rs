//! Reports of a server about itself.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::harness::redis::server::RedisServer;

/// Not work of their own: they run scripts, whose commands are counted.
const SCRIPTS: [&str; 6] = ["eval", "evalsha", "eval_ro", "evalsha_ro", "fcall", "fcall_ro"];
/// The sections of INFO that the harness reads.
const OWN: [&str; 5] = ["ping", "info", "config|resetstat", "slowlog|get", "slowlog|reset"];

/// A call that the server found slow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlowCall {
    /// How long it ran.
    pub micros: u64,
    /// Its words, cut short by the server.
    pub words: Vec<String>,
}

impl RedisServer {
    /// A field of INFO; panics if there is none.
    pub fn info(&self, section: &str, field: &str) -> String {
        let fields = self.info_all(section);
        match fields.get(field) {
            Some(value) => value.clone(),
            None => panic!("INFO {section} has no {field}: {fields:?}"),
        }
    }

    /// A section of INFO.
    pub fn info_all(&self, section: &str) -> BTreeMap<String, String> {
        fields(&self.must(&["INFO", section]).text())
    }

    /// How often each command ran since the start or [`reset_stats`](Self::reset_stats), those
    /// inside scripts included.
    pub fn commandstats(&self) -> BTreeMap<String, u64> {
        let command = |(name, value): (String, String)| {
            let name = name.strip_prefix("cmdstat_")?.to_owned();
            let calls = value.strip_prefix("calls=")?.split(',').next()?.parse().ok()?;
            Some((name, calls))
        };
        self.info_all("commandstats").into_iter().filter_map(command).collect()
    }

    /// How many commands ran, those inside scripts included, without the calls of scripts and
    /// without what this rig asks itself.
    pub fn commands_run(&self) -> u64 {
        let counts = |name: &str| !SCRIPTS.contains(&name) && !OWN.contains(&name);
        self.commandstats().iter().filter(|(name, _)| counts(name)).map(|(_, calls)| calls).sum()
    }

    /// How many scripts were called.
    pub fn scripts_run(&self) -> u64 {
        let stats = self.commandstats();
        SCRIPTS.iter().filter_map(|name| stats.get(*name)).sum()
    }

    /// Processor time of the thread that runs commands, by the kernel: unlike the durations of
    /// SLOWLOG and commandstats it does not count waiting for a processor.
    pub fn cpu(&self) -> Duration {
        let cpu = self.info_all("cpu");
        let fields = ["used_cpu_user_main_thread", "used_cpu_sys_main_thread"];
        let seconds = |field: &str| cpu.get(field).and_then(|text| text.parse::<f64>().ok());
        Duration::from_secs_f64(fields.into_iter().filter_map(seconds).sum())
    }

    /// Counts from zero again, slow calls too.
    pub fn reset_stats(&self) {
        self.must(&["CONFIG", "RESETSTAT"]);
        self.must(&["SLOWLOG", "RESET"]);
    }

    /// From now on, calls that take as long are slow.
    pub fn slow_from_micros(&self, micros: u64) {
        self.must(&["CONFIG", "SET", "slowlog-log-slower-than", &micros.to_string()]);
    }

    /// The slow calls, newest first.
    pub fn slowlog(&self) -> Vec<SlowCall> {
        let reply = self.must(&["SLOWLOG", "GET", "-1"]);
        let call = |entry: &crate::harness::redis::Reply| {
            let entry = entry.list();
            let micros = u64::try_from(entry[2].int()).expect("no call takes less than nothing");
            SlowCall {
                micros,
                words: entry[3].list().iter().map(crate::harness::redis::Reply::text).collect(),
            }
        };
        reply.list().iter().map(call).collect()
    }

    /// Bytes that the data and the server's own structures take.
    pub fn memory_used(&self) -> u64 {
        self.info("memory", "used_memory").parse().expect("used_memory is a number")
    }
}

/// `name:value` lines.
pub(crate) fn fields(text: &str) -> BTreeMap<String, String> {
    let field = |line: &str| {
        let (name, value) = line.split_once(':')?;
        Some((name.to_owned(), value.trim_end().to_owned()))
    };
    text.lines().filter_map(field).collect()
}
