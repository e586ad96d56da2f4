//! Packs what a script reads.

use bytes::Bytes;
use dormouse_core::job::JobId;

/// Writes numbers and bytes in sequence.
#[derive(Debug, Default)]
pub(crate) struct Writer(Vec<u8>);

impl Writer {
    pub(crate) fn with_capacity(bytes: usize) -> Writer {
        Writer(Vec::with_capacity(bytes))
    }

    pub(crate) fn u8(&mut self, value: u8) -> &mut Writer {
        self.bytes(&[value])
    }

    pub(crate) fn u16(&mut self, value: u16) -> &mut Writer {
        self.bytes(&value.to_be_bytes())
    }

    pub(crate) fn u32(&mut self, value: u32) -> &mut Writer {
        self.bytes(&value.to_be_bytes())
    }

    /// For milliseconds and sizes, which limits keep far below 2^48.
    pub(crate) fn u48(&mut self, value: u64) -> &mut Writer {
        let [_, _, low @ ..] = value.to_be_bytes();
        self.bytes(&low)
    }

    pub(crate) fn u64(&mut self, value: u64) -> &mut Writer {
        self.bytes(&value.to_be_bytes())
    }

    pub(crate) fn id(&mut self, id: JobId) -> &mut Writer {
        self.u64(id.0)
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> &mut Writer {
        self.0.extend_from_slice(bytes);
        self
    }

    /// Bytes after a u16 length; limits keep them below 64 KiB.
    pub(crate) fn short_bytes(&mut self, bytes: &[u8]) -> &mut Writer {
        let length = u16::try_from(bytes.len()).unwrap_or(u16::MAX);
        self.u16(length).bytes(bytes.get(..usize::from(length)).unwrap_or(bytes))
    }

    pub(crate) fn take(&mut self) -> Bytes {
        Bytes::from(std::mem::take(&mut self.0))
    }
}
