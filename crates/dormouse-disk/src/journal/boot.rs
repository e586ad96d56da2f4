//! The first record of the segment that a start opens.

use crate::codec::{Reader, put_varint};

/// A start of the store, and the batch it was built on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Boot {
    /// The new boot epoch, high bits of every fence given from now on.
    pub epoch: u32,
    /// The last good batch that this start built on.
    pub last_batch: u64,
    /// The operating system's boot, by which CLOCK_BOOTTIME is comparable or not.
    pub boot_id: [u8; 16],
    /// CLOCK_BOOTTIME at this start.
    pub boottime_ms: u64,
    /// The steady clock at this start.
    pub steady_ms: u64,
    /// The wall clock at this start.
    pub wall_ms: u64,
}

impl Boot {
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        put_varint(u64::from(self.epoch), out);
        put_varint(self.last_batch, out);
        out.extend_from_slice(&self.boot_id);
        put_varint(self.boottime_ms, out);
        put_varint(self.steady_ms, out);
        put_varint(self.wall_ms, out);
    }

    pub(super) fn decode(reader: &mut Reader<'_>) -> Option<Boot> {
        Some(Boot {
            epoch: reader.varint_u32()?,
            last_batch: reader.varint()?,
            boot_id: reader.array()?,
            boottime_ms: reader.varint()?,
            steady_ms: reader.varint()?,
            wall_ms: reader.varint()?,
        })
    }
}
