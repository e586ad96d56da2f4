//! Whether two replies are the same but for the listed differences.

use crate::ids::{Ids, Side};
use crate::pair::{Replies, shown};
use crate::setup::Setup;

/// Seconds that may lie between the same command on both sides: one may wait for its disk.
const SKEW_S: u64 = 5;

/// Of `stats`: what is of the process, and not of its clients.
const OF_PROCESS: &[&str] = &[
    "pid",
    "version",
    "rusage-utime",
    "rusage-stime",
    "binlog-oldest-index",
    "binlog-current-index",
    "id",
];
/// Values that change with time alone.
const OF_TIME: &[&str] = &["age", "time-left", "pause-time-left", "uptime"];
/// Of a tube: kept while the original would have forgotten it.
const OF_TUBE: &[&str] = &["total-jobs", "cmd-delete", "cmd-pause-tube"];

/// The state of a round.
pub(crate) struct Compare<'a> {
    pub(crate) ids: &'a Ids,
    pub(crate) setup: &'a Setup,
}

impl Compare<'_> {
    pub(crate) fn all(&self, replies: &Replies) -> Result<(), String> {
        let Replies { ours, original } = replies;
        for (at, (ours, original)) in ours.iter().zip(original).enumerate() {
            self.one(ours, original).map_err(|why| {
                let (ours, original) = (ours.escape_ascii(), original.escape_ascii());
                format!("reply {}: {why}\n    ours: {ours}\noriginal: {original}", at + 1)
            })?;
        }
        if ours.len() == original.len() {
            return Ok(());
        }
        let (ours, original) = (shown(ours), shown(original));
        Err(format!("not as many replies\n    ours: {ours}\noriginal: {original}"))
    }

    fn one(&self, ours: &[u8], original: &[u8]) -> Result<(), String> {
        let (our_words, our_body) = split(ours);
        let (words, body) = split(original);
        let is_same = match (our_words.first().map(String::as_str), our_words.len()) {
            // Its length depends on numbers and quotes.
            (Some("OK"), 2) if words.len() == 2 && words[0] == "OK" => {
                return self.yaml(our_body, body);
            }
            (Some("INSERTED"), 2) | (Some("FOUND" | "RESERVED"), 3) => {
                our_words[0] == words[0]
                    && self.is_same_job(&our_words[1], words.get(1))
                    && our_words[2..] == words[2.min(words.len())..]
                    && our_body == body
            }
            _ => ours == original,
        };
        if is_same { Ok(()) } else { Err("not the same".to_owned()) }
    }

    fn is_same_job(&self, ours: &str, original: Option<&String>) -> bool {
        let number = |id: &str, side| self.ids.number(id.parse().ok()?, side);
        let original = original.and_then(|id| number(id, Side::Original));
        original.is_some() && number(ours, Side::Ours) == original
    }

    fn yaml(&self, ours: &[u8], original: &[u8]) -> Result<(), String> {
        let (ours, original) = (String::from_utf8_lossy(ours), String::from_utf8_lossy(original));
        if original.starts_with("---\n- ") {
            return self.list(&ours, &original);
        }
        let (ours, original) = (fields(&ours), fields(&original));
        if !ours.iter().map(|field| field.0).eq(original.iter().map(|field| field.0)) {
            return Err("not the same keys".to_owned());
        }
        for ((key, our_value), (_, value)) in ours.iter().zip(&original) {
            if !self.is_same_value(key, our_value, value, &original) {
                return Err(format!("{key} is {our_value}, {value} in the original"));
            }
        }
        Ok(())
    }

    /// A tube that nobody uses and that has lost its last job keeps its place here.
    fn list(&self, ours: &str, original: &str) -> Result<(), String> {
        let lines = |text: &str| {
            let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
            if !self.setup.keeps_tubes {
                lines.sort();
            }
            lines
        };
        if lines(ours) == lines(original) { Ok(()) } else { Err("not the same list".to_owned()) }
    }

    fn is_same_value(&self, key: &str, ours: &str, value: &str, all: &[(&str, &str)]) -> bool {
        let find = |key: &str| all.iter().find(|field| field.0 == key).map_or("", |field| field.1);
        let (job, tube) = (find("pri"), find("name"));
        let is_of_job = !job.is_empty();
        match key {
            "id" if is_of_job => self.is_same_job(ours, Some(&value.to_owned())),
            // Only the delay of the put is kept.
            "delay" if is_of_job => {
                let is_fresh = ["reserves", "buries", "kicks"].iter().all(|key| find(key) == "0");
                !is_fresh || ours == value
            }
            _ if OF_TIME.contains(&key) => is_near(ours, value),
            _ if OF_TUBE.contains(&key) && !tube.is_empty() && !self.setup.keeps(tube) => true,
            // One of a job that the connection knows nothing of may be forgotten.
            "cmd-delete" if !tube.is_empty() => number(ours) <= number(value),
            _ if OF_PROCESS.contains(&key) && tube.is_empty() && !is_of_job => true,
            _ => ours == value,
        }
    }
}

/// The words of the line, and the body behind it.
fn split(reply: &[u8]) -> (Vec<String>, &[u8]) {
    let end = reply.windows(2).position(|pair| pair == b"\r\n").unwrap_or(reply.len());
    let (line, body) = reply.split_at(end);
    let words = String::from_utf8_lossy(line).split(' ').map(str::to_owned).collect();
    (words, body)
}

/// Keys and values; newer versions put quotes around names.
fn fields(yaml: &str) -> Vec<(&str, &str)> {
    let lines = yaml.lines().filter_map(|line| line.split_once(": "));
    lines.map(|(key, value)| (key, value.trim_matches('"'))).collect()
}

fn is_near(ours: &str, value: &str) -> bool {
    matches!((number(ours), number(value)), (Some(a), Some(b)) if a.abs_diff(b) <= SKEW_S)
}

fn number(value: &str) -> Option<u64> {
    value.parse().ok()
}
