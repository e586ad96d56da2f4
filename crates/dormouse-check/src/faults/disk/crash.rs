//! The content of the disk after a crash.

use super::fault::Faults;
use super::node::{Node, SECTOR_BYTES, Write, copy_into};
use super::state::{State, apply};
use crate::generate::rng::Rng;

/// How the machine stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CrashMode {
    /// Only the process dies: all it wrote is still there to be read, and still not durable.
    Kill,
    /// Power cut: nothing survives that was not synced.
    LoseUnsynced,
    /// Power cut: of the unsynced writes the first ones survive, in the order they were made over
    /// all files; the next one perhaps in part.
    Prefix,
    /// Power cut: any of the unsynced sectors survive, some torn, with holes in between, and the
    /// file's length is one that it may have had.
    Sectors,
}

impl CrashMode {
    /// All modes.
    pub const ALL: [CrashMode; 4] =
        [CrashMode::Kill, CrashMode::LoseUnsynced, CrashMode::Prefix, CrashMode::Sectors];

    /// One of them.
    pub fn random(rng: &mut Rng) -> CrashMode {
        CrashMode::ALL[rng.below(4) as usize]
    }
}

impl State {
    pub(super) fn crash(&mut self, mode: CrashMode, rng: &mut Rng) {
        self.boot += 1;
        self.faults = Faults::default();
        self.nodes.values_mut().for_each(|node| node.handles = 0);
        if mode != CrashMode::Kill {
            self.cut_names(mode, rng);
            match mode {
                CrashMode::Prefix => self.cut_prefix(rng),
                CrashMode::Sectors => {
                    self.nodes.values_mut().for_each(|node| keep_sectors(node, rng));
                }
                CrashMode::Kill | CrashMode::LoseUnsynced => {}
            }
            for node in self.nodes.values_mut() {
                node.pending.clear();
                node.cached.clone_from(&node.durable);
            }
        }
        self.drop_unused();
    }

    /// The first of the unsynced directory operations survive.
    fn cut_names(&mut self, mode: CrashMode, rng: &mut Rng) {
        let kept = match mode {
            CrashMode::LoseUnsynced => 0,
            _ => rng.below(self.pending_ops.len() as u64 + 1) as usize,
        };
        for op in self.pending_ops.drain(..).take(kept) {
            apply(&mut self.durable_names, &op);
        }
        self.names.clone_from(&self.durable_names);
    }

    fn cut_prefix(&mut self, rng: &mut Rng) {
        let mut seqs: Vec<u64> = self.nodes.values().flat_map(pending_seqs).collect();
        seqs.sort_unstable();
        let cut = rng.below(seqs.len() as u64 + 1) as usize;
        let kept_before = seqs.get(cut).copied().unwrap_or(u64::MAX);
        for node in self.nodes.values_mut() {
            for write in std::mem::take(&mut node.pending) {
                if write.seq < kept_before {
                    copy_into(&mut node.durable, write.offset, &write.data);
                } else if write.seq == kept_before {
                    let len = rng.below(write.data.len() as u64 + 1) as usize;
                    copy_into(&mut node.durable, write.offset, &write.data[..len]);
                }
            }
        }
    }
}

fn pending_seqs(node: &Node) -> impl Iterator<Item = u64> + '_ {
    node.pending.iter().map(|write| write.seq)
}

fn keep_sectors(node: &mut Node, rng: &mut Rng) {
    let pending = std::mem::take(&mut node.pending);
    if pending.is_empty() {
        return;
    }
    let synced_len = node.durable.len();
    let mut kept_len = synced_len;
    for write in &pending {
        for (offset, data) in sectors(write) {
            if keep_sector(&mut node.durable, offset, data, rng) {
                kept_len = kept_len.max(offset + data.len());
            }
        }
    }
    let full_len = node.cached.len();
    let len = match rng.below(4) {
        0 => full_len,
        1 => synced_len,
        2 => kept_len,
        _ => synced_len + rng.below((full_len - synced_len) as u64 + 1) as usize,
    };
    node.durable.resize(len, 0);
}

/// The parts of a write that lie in different sectors.
fn sectors(write: &Write) -> impl Iterator<Item = (usize, &[u8])> {
    let mut from = 0;
    std::iter::from_fn(move || {
        let offset = write.offset + from;
        let len = (SECTOR_BYTES - offset % SECTOR_BYTES).min(write.data.len() - from);
        let data = &write.data[from..from + len];
        from += len;
        (len > 0).then_some((offset, data))
    })
}

/// Lets one sector survive, whole, in part or as rubbish, or not at all. Only bytes of this write
/// are touched: what lies beside them in the sector may be synced.
fn keep_sector(content: &mut Vec<u8>, offset: usize, data: &[u8], rng: &mut Rng) -> bool {
    let half = rng.below(data.len() as u64 + 1) as usize;
    match rng.below(20) {
        0..9 => copy_into(content, offset, data),
        9..11 => copy_into(content, offset, &data[..half]),
        11 => copy_into(content, offset + half, &data[half..]),
        12 => copy_into(content, offset, &vec![0; data.len()]),
        13 => {
            let rubbish: Vec<u8> = data.iter().map(|_| rng.next_u64() as u8).collect();
            copy_into(content, offset, &rubbish);
        }
        _ => return false,
    }
    true
}
