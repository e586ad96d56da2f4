//! The figures of `stats` about the host and the process.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};

/// Ticks per second in /proc, the same on every Linux.
const TICKS_PER_S: u64 = 100;

/// Facts that do not change while the process lives.
#[derive(Debug)]
pub(super) struct Host {
    /// 16 random hexadecimal digits, new at every start.
    pub(super) id: String,
    pub(super) hostname: String,
    pub(super) os: String,
    pub(super) platform: String,
}

/// Processor time of the process so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Usage {
    pub(super) user_ms: u64,
    pub(super) system_ms: u64,
}

impl Host {
    pub(super) fn read() -> Host {
        let names = rustix::system::uname();
        let text = |name: &std::ffi::CStr| quotable(&name.to_string_lossy());
        Host {
            id: id(),
            hostname: text(names.nodename()),
            os: text(names.version()),
            platform: text(names.machine()),
        }
    }
}

/// The first digit is a letter other than `e`: otherwise YAML may read the id as a number.
fn id() -> String {
    let random = RandomState::new().build_hasher().finish();
    let first = ['a', 'b', 'c', 'd', 'f'][(random % 5) as usize];
    format!("{first}{:015x}", random >> 4)
}

/// Removes characters that would end a quoted string.
fn quotable(text: &str) -> String {
    text.chars().filter(|c| !c.is_control() && !matches!(c, '"' | '\\')).collect()
}

impl Usage {
    /// Zero where there is no /proc.
    pub(super) fn read() -> Usage {
        Usage::parse(&std::fs::read_to_string("/proc/self/stat").unwrap_or_default())
            .unwrap_or_default()
    }

    /// Fields 14 and 15 of proc(5); the first field behind the name is the third.
    fn parse(stat: &str) -> Option<Usage> {
        let (_, fields) = stat.rsplit_once(')')?;
        let mut fields = fields.split_whitespace().skip(14 - 3);
        let mut ms = || Some(fields.next()?.parse::<u64>().ok()? * 1_000 / TICKS_PER_S);
        Some(Usage { user_ms: ms()?, system_ms: ms()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_no_number() {
        for _ in 0..100 {
            let id = id();
            assert_eq!(id.len(), 16);
            assert!(id.starts_with(['a', 'b', 'c', 'd', 'f']), "{id}");
            assert!(id.bytes().all(|byte| byte.is_ascii_hexdigit()), "{id}");
        }
    }

    #[test]
    fn processor_time_is_read_whatever_the_name() {
        let stat = "7 (a) b (c) S 1 7 7 0 -1 4194560 1 0 0 0 12 34 0 0 20 0";
        let usage = Usage::parse(stat).unwrap();
        assert_eq!((usage.user_ms, usage.system_ms), (120, 340));
        assert!(Usage::parse("").is_none());
    }

    #[test]
    fn quotes_cannot_be_ended() {
        assert_eq!(quotable("#1 \"x\"\\\n"), "#1 x");
    }
}
