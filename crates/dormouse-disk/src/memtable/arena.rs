//! Room for encoded jobs: appended, never moved, dropped as a whole with the memtable.

/// Where a stored piece lies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    chunk: u32,
    start: u32,
    len: u32,
}

/// Chunks are large enough to make allocation rare and small enough to grow smoothly.
const CHUNK_BYTES: usize = 1 << 20;

/// Append-only byte store.
#[derive(Debug, Default)]
pub(crate) struct Arena {
    chunks: Vec<Vec<u8>>,
    bytes: usize,
}

impl Arena {
    /// Stores what `write` appends, which is at most a few bytes longer than `about`.
    pub(crate) fn store(&mut self, about: usize, write: impl FnOnce(&mut Vec<u8>)) -> Span {
        let fits = self.chunks.last().is_some_and(|last| last.capacity() - last.len() >= about);
        if !fits {
            self.chunks.push(Vec::with_capacity(CHUNK_BYTES.max(about)));
        }
        let index = self.chunks.len() - 1;
        let chunk = &mut self.chunks[index];
        let start = chunk.len();
        write(chunk);
        let len = chunk.len() - start;
        self.bytes += len;
        // A chunk holds one job of about 1 MiB or many that end below 1 MiB: u32 is ample.
        Span { chunk: index as u32, start: start as u32, len: len as u32 }
    }

    /// What was stored.
    pub(crate) fn get(&self, span: Span) -> &[u8] {
        let start = span.start as usize;
        &self.chunks[span.chunk as usize][start..start + span.len as usize]
    }

    /// Bytes stored, also of jobs that have left since.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}
