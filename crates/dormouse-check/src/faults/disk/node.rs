//! One file: what is durable, what readers see, and the writes in between.

/// The bytes that a drive writes whole, if it is lucky.
pub(super) const SECTOR_BYTES: usize = 512;

/// A write that no sync has covered.
#[derive(Clone, Debug)]
pub(super) struct Write {
    /// Orders the writes of all files.
    pub(super) seq: u64,
    pub(super) offset: usize,
    pub(super) data: Vec<u8>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Node {
    /// For messages: the name it was created with.
    pub(super) name: String,
    /// The content that readers see: everything written.
    pub(super) cached: Vec<u8>,
    /// The content that every power cut leaves.
    pub(super) durable: Vec<u8>,
    /// Writes that a power cut may leave in part.
    pub(super) pending: Vec<Write>,
    /// Open handles.
    pub(super) handles: usize,
}

impl Node {
    pub(super) fn write(&mut self, seq: u64, offset: usize, data: &[u8]) {
        copy_into(&mut self.cached, offset, data);
        self.pending.push(Write { seq, offset, data: data.to_vec() });
    }

    pub(super) fn sync(&mut self) {
        for write in self.pending.drain(..) {
            copy_into(&mut self.durable, write.offset, &write.data);
        }
    }

    /// The length stays: the file system knows it, only the pages are read again.
    pub(super) fn forget_cached(&mut self) {
        let len = self.cached.len();
        self.cached.clone_from(&self.durable);
        self.cached.resize(len, 0);
        for write in &self.pending {
            copy_into(&mut self.cached, write.offset, &write.data);
        }
    }

    pub(super) fn flip(&mut self, offset: usize, mask: u8) -> bool {
        let Some(byte) = self.cached.get_mut(offset) else {
            return false;
        };
        *byte ^= mask;
        self.durable.clone_from(&self.cached);
        self.pending.clear();
        true
    }

    pub(super) fn truncate(&mut self, len: usize) -> bool {
        let longer = self.cached.len() > len;
        self.cached.truncate(len);
        self.durable.clone_from(&self.cached);
        self.pending.clear();
        longer
    }
}

/// Copies data to an offset; what lies between the end and the offset becomes a hole of zeros.
pub(super) fn copy_into(content: &mut Vec<u8>, offset: usize, data: &[u8]) {
    let end = offset + data.len();
    if content.len() < end {
        content.resize(end, 0);
    }
    content[offset..end].copy_from_slice(data);
}
