//! Memory, descriptors and start time of this process, from /proc; absent where there is none.

use std::fs;

/// Ticks per second of the times in /proc, the same on every Linux.
const TICKS_PER_S: u64 = 100;

/// Each value is absent if it cannot be read.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Process {
    /// Memory in use, in bytes.
    pub(super) resident_bytes: Option<u64>,
    /// Open descriptors.
    pub(super) fds: Option<u64>,
    /// When it started, in seconds since 1970.
    pub(super) start_s: Option<f64>,
}

impl Process {
    /// Reads files, so it may block.
    pub(super) fn read() -> Process {
        Process { resident_bytes: resident_bytes(), fds: fds(), start_s: start_s() }
    }
}

/// From the field that is in kB, because that needs no page size.
fn resident_bytes() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1_024)
}

fn fds() -> Option<u64> {
    // Since Linux 6.2 the directory's size is their number; before it was 0.
    match fs::metadata("/proc/self/fd").ok()?.len() {
        0 => fs::read_dir("/proc/self/fd").ok().map(|entries| entries.count() as u64),
        count => Some(count),
    }
}

fn start_s() -> Option<f64> {
    let boot = fs::read_to_string("/proc/stat").ok()?;
    let boot_s: u64 =
        boot.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()?;
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    // The name before it may hold anything, spaces and parentheses too.
    let (_, fields) = stat.rsplit_once(')')?;
    // Field 22 of proc(5); the first after the name is the third.
    let ticks: u64 = fields.split_whitespace().nth(22 - 3)?.parse().ok()?;
    Some(boot_s as f64 + ticks as f64 / TICKS_PER_S as f64)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_running_process_is_known() {
        let process = Process::read();
        assert!(process.resident_bytes.unwrap() > 100_000);
        assert!(process.fds.unwrap() >= 3);
        assert!(process.start_s.unwrap() > 1.6e9);
    }
}
