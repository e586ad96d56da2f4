//! Totals of a worker's jobs by how they ended.

/// How one job ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum End {
    /// Acked.
    Done,
    /// Nacked, to be tried again.
    Failed,
    /// Nacked because its handler panicked, to be tried again.
    Panicked,
    /// Killed, or failed on its last attempt, in whatever way.
    Dead,
    /// Given back unspent.
    Released,
    /// Cancelled or taken by another consumer meanwhile, or the store had stopped.
    Lost,
}

/// Totals of the jobs a worker took, by how they ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Tally {
    /// Acked.
    pub done: u64,
    /// Nacked, to be tried again.
    pub failed: u64,
    /// Nacked because their handler panicked, to be tried again.
    pub panicked: u64,
    /// Killed, or failed on their last attempt, in whatever way.
    pub dead: u64,
    /// Given back unspent.
    pub released: u64,
    /// Cancelled or taken by another consumer meanwhile, or the store had stopped.
    pub lost: u64,
}

impl Tally {
    pub(crate) fn count(&mut self, end: End) {
        *match end {
            End::Done => &mut self.done,
            End::Failed => &mut self.failed,
            End::Panicked => &mut self.panicked,
            End::Dead => &mut self.dead,
            End::Released => &mut self.released,
            End::Lost => &mut self.lost,
        } += 1;
    }
}
