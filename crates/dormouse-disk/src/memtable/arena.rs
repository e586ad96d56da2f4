//! Room for encoded jobs: appended, never moved, dropped as a whole with the memtable.

/// Where a stored piece lies, in eight bytes: millions of these are held.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    /// The chunk in the high bits, the start within it in the low ones.
    at: u32,
    len: u32,
}

impl Span {
    /// Nothing.
    pub(crate) const EMPTY: Span = Span { at: 0, len: 0 };

    pub(crate) fn is_empty(self) -> bool {
        self.len == 0
    }
}

/// Chunks are large enough to make allocation rare and small enough to grow smoothly; a piece that
/// is larger has a chunk of its own. All pieces start below this.
const CHUNK_BYTES: usize = 1 << START_BITS;
const START_BITS: u32 = 20;

/// Append-only byte store.
#[derive(Debug, Default)]
pub(crate) struct Arena {
    chunks: Vec<Vec<u8>>,
    bytes: usize,
    /// Empty chunks to use first.
    spare: Vec<Vec<u8>>,
}

impl Arena {
    /// Stores what `write` appends, which is at most a few bytes longer than `about`.
    pub(crate) fn store(&mut self, about: usize, write: impl FnOnce(&mut Vec<u8>)) -> Span {
        let fits = self
            .chunks
            .last()
            .is_some_and(|last| last.len() < CHUNK_BYTES && last.capacity() - last.len() >= about);
        if !fits {
            let spare = if about <= CHUNK_BYTES { self.spare.pop() } else { None };
            let chunk = spare.unwrap_or_else(|| Vec::with_capacity(CHUNK_BYTES.max(about)));
            self.chunks.push(chunk);
        }
        let index = self.chunks.len() - 1;
        let chunk = &mut self.chunks[index];
        let start = chunk.len();
        write(chunk);
        let len = chunk.len() - start;
        self.bytes += len;
        // 4,096 chunks are 4 GiB: a memtable is frozen, or stops taking, long before.
        Span { at: (index as u32) << START_BITS | start as u32, len: len as u32 }
    }

    /// An empty one that uses these chunks first.
    pub(crate) fn with_spare(spare: Vec<Vec<u8>>) -> Arena {
        Arena { spare, ..Arena::default() }
    }

    /// Chunks in use.
    pub(crate) fn len(&self) -> usize {
        self.chunks.len()
    }

    /// Takes all chunks of the usual size; nothing is stored any more.
    pub(crate) fn take_chunks(&mut self) -> Vec<Vec<u8>> {
        let mut chunks = std::mem::take(&mut self.spare);
        let used = std::mem::take(&mut self.chunks).into_iter();
        chunks.extend(used.filter(|chunk| chunk.capacity() == CHUNK_BYTES));
        chunks
    }

    /// The stored bytes.
    pub(crate) fn get(&self, span: Span) -> &[u8] {
        let start = (span.at & (CHUNK_BYTES as u32 - 1)) as usize;
        &self.chunks[(span.at >> START_BITS) as usize][start..start + span.len as usize]
    }

    /// Bytes stored, also of jobs that have left since.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}
