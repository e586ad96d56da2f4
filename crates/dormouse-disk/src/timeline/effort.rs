//! How much is read for heads of lanes between two ticks: a few milliseconds at most.

/// All that may be read: a thousand tombstones, or a lane in two thousand sources.
const EFFORT: usize = 4_000;
/// An entry that is passed costs so much, and as much again for each so many of its bytes.
const ENTRY: usize = 4;
const ENTRY_BYTES: usize = 1 << 10;
/// A lane that is read costs so much for each source.
const LANE: usize = 2;

/// How much may still be read.
#[derive(Debug)]
pub(super) struct Effort(usize);

impl Effort {
    pub(super) fn new() -> Effort {
        Effort(EFFORT)
    }

    pub(super) fn is_left(&self) -> bool {
        self.0 > 0
    }

    /// An entry with so many bytes was passed.
    pub(super) fn pass(&mut self, bytes: usize) {
        self.0 = self.0.saturating_sub(ENTRY + ENTRY * (bytes / ENTRY_BYTES));
    }

    /// A lane was read in so many sources.
    pub(super) fn read_lane(&mut self, sources: usize) {
        self.0 = self.0.saturating_sub(LANE * sources);
    }
}
