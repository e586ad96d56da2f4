//! Calls that fail on demand.

use std::error::Error;
use std::fmt;
use std::io;

/// How a call fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailKind {
    /// EIO: the drive gave up.
    Io,
    /// ENOSPC: no room.
    NoSpace,
}

#[derive(Debug)]
struct PowerOff;

impl fmt::Display for PowerOff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the power is off")
    }
}

impl Error for PowerOff {}

/// Whether a call failed because of [`super::SimDisk::crash_at_call`].
pub fn power_is_off(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|inner| inner.is::<PowerOff>())
}

#[derive(Clone, Debug, Default)]
pub(super) struct Faults {
    fail: Option<(u64, FailKind, bool)>,
    pub(super) power_off_at: Option<u64>,
    pub(super) off: bool,
}

impl Faults {
    pub(super) fn fail_call(&mut self, call: u64, kind: FailKind, forever: bool) {
        self.fail = Some((call, kind, forever));
    }

    /// The fate of this mutating call: `Err` = the power is off, and it does nothing.
    pub(super) fn at_call(&mut self, call: u64) -> io::Result<Option<io::Error>> {
        self.off |= self.power_off_at.is_some_and(|at| call >= at);
        self.check_power()?;
        Ok(match self.fail {
            Some((at, kind, forever)) if call == at || (forever && call > at) => Some(kind.error()),
            _ => None,
        })
    }

    pub(super) fn check_power(&self) -> io::Result<()> {
        if self.off { Err(io::Error::other(PowerOff)) } else { Ok(()) }
    }
}

impl FailKind {
    pub(super) fn error(self) -> io::Error {
        // EIO and ENOSPC on Linux.
        io::Error::from_raw_os_error(match self {
            FailKind::Io => 5,
            FailKind::NoSpace => 28,
        })
    }
}
