//! Files that know what their errors must say, and the frames in them.

use std::io;
use std::sync::Arc;

use crate::damage::Damage;
use crate::disk::{Disk, File};

use super::format::{CRC_BYTES, checksum};

/// Bytes gathered before they are written.
const WRITE_BYTES: usize = 512 << 10;
/// Bytes of a lasting file between two syncs. Gigabytes that wait for one sync at the end would
/// make the journal's syncs wait behind them.
const SYNC_BYTES: u64 = 8 << 20;

/// A file that is read.
pub(super) struct Source {
    file: Arc<dyn File>,
    name: String,
    no: u64,
}

impl Source {
    /// Opens a file of the run `no`.
    pub(super) fn open(disk: &Arc<dyn Disk>, name: &str, no: u64) -> Result<Source, Damage> {
        let file = disk.open(name).map_err(|error| Damage::io(name, error))?;
        Ok(Source { file, name: name.to_owned(), no })
    }

    /// The same file, now known to be of the run `no`.
    pub(super) fn of_run(self, no: u64) -> Source {
        Source { no, ..self }
    }

    /// The number of the run this file belongs to.
    pub(super) fn no(&self) -> u64 {
        self.no
    }

    /// The file's name.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The file's length.
    pub(super) fn len(&self) -> Result<u64, Damage> {
        self.file.len().map_err(|error| Damage::io(&self.name, error))
    }

    /// Bytes that do not fit.
    pub(super) fn corrupt(&self, offset: u64, what: &str) -> Damage {
        Damage::corrupt(&self.name, offset, what)
    }

    /// Fills `into` from `offset`.
    pub(super) fn read_into(&self, offset: u64, into: &mut [u8]) -> Result<(), Damage> {
        self.file.read_at(offset, into).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => self.corrupt(offset, "the file ends too early"),
            _ => Damage::io(&self.name, error),
        })
    }

    /// Reads bytes. The caller has bounded `len` by what can be there.
    pub(super) fn read(&self, offset: u64, len: usize) -> Result<Vec<u8>, Damage> {
        let mut bytes = vec![0; len];
        self.read_into(offset, &mut bytes)?;
        Ok(bytes)
    }

    /// Reads one frame, checksum included and checked.
    pub(super) fn read_frame(&self, offset: u64, len: usize) -> Result<Vec<u8>, Damage> {
        let frame = self.read(offset, len)?;
        self.check_frame(offset, &frame)?;
        Ok(frame)
    }

    /// Whether a frame's checksum matches this run and offset.
    pub(super) fn check_frame(&self, offset: u64, frame: &[u8]) -> Result<(), Damage> {
        let stored = frame.split_first_chunk::<CRC_BYTES>();
        match stored {
            Some((crc, bytes))
                if u32::from_le_bytes(*crc) == checksum(self.no, offset, &[bytes]) =>
            {
                Ok(())
            }
            _ => Err(self.corrupt(offset, "the checksum does not fit")),
        }
    }
}

/// A new file that is written from its beginning to its end.
pub(super) struct FileWriter {
    file: Arc<dyn File>,
    name: String,
    no: u64,
    /// Bytes before the buffer.
    written: u64,
    /// Bytes known to be durable; `None` if nobody will ask, because the file will not last.
    synced: Option<u64>,
    buffer: Vec<u8>,
}

impl FileWriter {
    /// Makes a file of the run `no` that will last.
    pub(super) fn create(disk: &Arc<dyn Disk>, name: &str, no: u64) -> Result<FileWriter, Damage> {
        Ok(FileWriter { synced: Some(0), ..FileWriter::create_temporary(disk, name, no)? })
    }

    /// Makes a file of the run `no` that will be gone before it matters whether it is durable.
    pub(super) fn create_temporary(
        disk: &Arc<dyn Disk>,
        name: &str,
        no: u64,
    ) -> Result<FileWriter, Damage> {
        let file = disk.create(name).map_err(|error| Damage::io(name, error))?;
        let name = name.to_owned();
        Ok(FileWriter { file, name, no, written: 0, synced: None, buffer: Vec::new() })
    }

    /// The file's name.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The number of the run this file belongs to.
    pub(super) fn no(&self) -> u64 {
        self.no
    }

    /// Where the next byte goes.
    pub(super) fn position(&self) -> u64 {
        self.written + self.buffer.len() as u64
    }

    /// Appends bytes.
    pub(super) fn append(&mut self, bytes: &[u8]) -> Result<(), Damage> {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= WRITE_BYTES { self.flush() } else { Ok(()) }
    }

    /// Appends a frame of these parts; gives its length.
    pub(super) fn append_frame(&mut self, parts: &[&[u8]]) -> Result<usize, Damage> {
        let start = self.buffer.len();
        let crc = checksum(self.no, self.position(), parts);
        self.buffer.extend_from_slice(&crc.to_le_bytes());
        for part in parts {
            self.buffer.extend_from_slice(part);
        }
        let len = self.buffer.len() - start;
        if self.buffer.len() >= WRITE_BYTES {
            self.flush()?;
        }
        Ok(len)
    }

    /// Hands everything to the file.
    pub(super) fn flush(&mut self) -> Result<(), Damage> {
        self.file
            .write_at(self.written, &self.buffer)
            .map_err(|error| Damage::io(&self.name, error))?;
        self.written = self.position();
        self.buffer.clear();
        match self.synced {
            Some(synced) if self.written - synced >= SYNC_BYTES => self.sync_written(),
            _ => Ok(()),
        }
    }

    /// Makes everything durable.
    pub(super) fn sync(&mut self) -> Result<(), Damage> {
        self.flush()?;
        self.sync_written()
    }

    fn sync_written(&mut self) -> Result<(), Damage> {
        self.synced = Some(self.written);
        self.file.sync().map_err(|error| Damage::io(&self.name, error))
    }
}
