//! What a process used: memory, processor, disk. From /proc, so on Linux only.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use crate::Result;

const QUIET: Duration = Duration::from_secs(2);
const QUIET_MAX: Duration = Duration::from_secs(600);
/// A quiet engine writes nothing, and takes less processor time than this share.
const QUIET_CPU_PERCENT: f64 = 2.0;

/// The most memory this process ever had (VmHWM).
pub(crate) fn peak_mib() -> Result<f64> {
    Ok(field("/proc/self/status", "VmHWM:")? as f64 / 1_024.0)
}

/// What this process holds in memory now.
pub(crate) fn now_mib() -> Result<f64> {
    Ok(field("/proc/self/status", "VmRSS:")? as f64 / 1_024.0)
}

/// Bytes this process gave to the file system to write.
pub(crate) fn written_bytes() -> Result<u64> {
    field("/proc/self/io", "write_bytes:")
}

/// Processor time of all threads of this process.
pub(crate) fn cpu() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// Processor time of this process while it does nothing but wait, of 100 for one processor.
pub(crate) fn cpu_percent_over(time: Duration) -> f64 {
    let (started, before) = (Instant::now(), cpu());
    thread::sleep(time);
    100.0 * (cpu() - before).as_secs_f64() / started.elapsed().as_secs_f64()
}

/// Waits until the background work has ended.
pub(crate) fn wait_until_quiet() -> Result<Duration> {
    let started = Instant::now();
    loop {
        let before = written_bytes()?;
        let busy_percent = cpu_percent_over(QUIET);
        if written_bytes()? == before && busy_percent < QUIET_CPU_PERCENT {
            return Ok(started.elapsed().saturating_sub(QUIET));
        }
        if started.elapsed() > QUIET_MAX {
            return Err(format!("the background work did not end within {QUIET_MAX:?}").into());
        }
    }
}

/// Bytes of all files of a directory, and how many of them are runs.
pub(crate) fn disk_use(dir: &Path) -> Result<(u64, u64)> {
    let (mut bytes, mut runs) = (0, 0);
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        match entry.metadata() {
            Ok(metadata) => bytes += metadata.len(),
            // The engine removed it meanwhile.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error.into()),
        }
        let name = entry.file_name();
        let is_run = name.to_str().and_then(dormouse_disk::manifest::run_number).is_some();
        runs += u64::from(is_run);
    }
    Ok((bytes, runs))
}

/// The number after `name` in a file of /proc.
pub(crate) fn field(path: &str, name: &str) -> Result<u64> {
    let text = std::fs::read_to_string(path)?;
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let number = line.and_then(|rest| rest.split_whitespace().next()?.parse().ok());
    number.ok_or_else(|| format!("{path} has no {name}; this needs Linux").into())
}
