//! File descriptors: every connection needs one.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// For the store's files and everything else that is no connection.
const OTHERS: u64 = 1_024;

/// Asks the operating system for as many file descriptors as may be needed. The limit that programs
/// start with is often far below what it allows.
pub(in crate::command) fn make_room(connections_max: usize) {
    let needed = connections_max as u64 + OTHERS;
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let Some(now) = current.filter(|&now| now < needed) else { return };
    let most = maximum.map_or(needed, |maximum| maximum.min(needed));
    let raised = setrlimit(Resource::Nofile, Rlimit { current: Some(most), maximum });
    let got = if raised.is_ok() { most } else { now };
    if got < needed {
        tracing::warn!(
            "{got} file descriptors are allowed, too few for {connections_max} connections; raise \
             the limit (LimitNOFILE, ulimit -n), or lower connections_max"
        );
    }
}
