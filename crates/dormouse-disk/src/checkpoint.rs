//! The file of a checkpoint: all but its head, which is also the first batch of its segment.
//!
//! Written once, by the flush thread, under another name; then synced, renamed, and the directory
//! synced. Fixed numbers, little-endian:
//!
//! ```text
//!  0  4  magic, bytes 9d 44 4d 43
//!  4  4  format, 1
//!  8  8  number: that of the segment
//! 16  4  CRC32C of bytes 0 to 15
//! 20     portions: bytes of records 4,
//!                  CRC32C 4 of (number 8, offset of the portion 8, bytes of records 4, records),
//!                  records
//! ```
//!
//! The records are those of the journal. The first is the head, the last says that the checkpoint
//! is complete, and nothing follows it. Magic, format and the header's checksum keep their places
//! in every later format.

use std::io;
use std::sync::Arc;

use crate::codec::Reader;
use crate::damage::Damage;
use crate::disk::{Disk, File};
use crate::journal::{CheckpointHead, Record};

const MAGIC: [u8; 4] = [0x9d, b'D', b'M', b'C'];
const FORMAT: u32 = 1;
const HEADER_BYTES: usize = 20;
const FRAME_BYTES: usize = 8;
/// A portion is written when it has this size; the last record may go beyond.
const PORTION_BYTES: usize = 1 << 20;
/// After so many bytes the file is synced, so that the journal's syncs need not wait for all of it.
const SYNC_EVERY_BYTES: u64 = 8 << 20;
/// The largest record is a lease with its job; a wild length is not read into memory.
const PORTION_BYTES_MAX: u32 = 16 << 20;

const PREFIX: &str = "checkpoint-";
const SUFFIX: &str = ".dmc";
const DIGITS: usize = 20;

/// The file name of a checkpoint.
pub fn checkpoint_name(number: u64) -> String {
    format!("{PREFIX}{number:0DIGITS$}{SUFFIX}")
}

/// The number of the checkpoint that has this file name, if it is one.
pub fn checkpoint_number(name: &str) -> Option<u64> {
    let digits = name.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?;
    let fits = digits.len() == DIGITS && digits.bytes().all(|byte| byte.is_ascii_digit());
    if fits { digits.parse().ok() } else { None }
}

/// Whether this is the name of a checkpoint that is not whole.
pub(crate) fn is_temporary(name: &str) -> bool {
    name.strip_suffix(".tmp").is_some_and(|name| checkpoint_number(name).is_some())
}

/// Writes a checkpoint; it is durable when this returns. Gives its bytes.
pub(crate) fn write(
    disk: &dyn Disk,
    number: u64,
    records: impl Iterator<Item = Record>,
) -> Result<u64, Damage> {
    let name = checkpoint_name(number);
    write_file(disk, number, &name, records).map_err(|source| Damage::io(&name, source))
}

fn write_file(
    disk: &dyn Disk,
    number: u64,
    name: &str,
    records: impl Iterator<Item = Record>,
) -> io::Result<u64> {
    let temporary = format!("{name}.tmp");
    let file = disk.create(&temporary)?;
    let mut writer = Writer { file, number, offset: 0, synced: 0, bytes: Vec::new() };
    writer.begin();
    for record in records {
        record.encode(&mut writer.bytes);
        if writer.bytes.len() >= PORTION_BYTES {
            writer.write_portion()?;
        }
    }
    writer.write_portion()?;
    writer.file.sync()?;
    disk.rename(&temporary, name)?;
    disk.sync_dir()?;
    Ok(writer.offset)
}

struct Writer {
    file: Arc<dyn File>,
    number: u64,
    /// Bytes written, and as many of them as are synced.
    offset: u64,
    synced: u64,
    /// The header, if it is not written yet, the frame of a portion and its records.
    bytes: Vec<u8>,
}

impl Writer {
    fn begin(&mut self) {
        self.bytes.extend_from_slice(&MAGIC);
        self.bytes.extend_from_slice(&FORMAT.to_le_bytes());
        self.bytes.extend_from_slice(&self.number.to_le_bytes());
        let crc = crc32c::crc32c(&self.bytes);
        self.bytes.extend_from_slice(&crc.to_le_bytes());
        self.bytes.extend_from_slice(&[0; FRAME_BYTES]);
    }

    /// Writes the portion that was collected and begins the next one.
    fn write_portion(&mut self) -> io::Result<()> {
        let frame_at = if self.offset == 0 { HEADER_BYTES } else { 0 };
        let (frame, records) = self.bytes[frame_at..].split_at_mut(FRAME_BYTES);
        if records.is_empty() {
            return Ok(());
        }
        let len = u32::try_from(records.len()).map_err(io::Error::other)?;
        let crc = portion_crc(self.number, self.offset + frame_at as u64, len, records);
        frame[..4].copy_from_slice(&len.to_le_bytes());
        frame[4..].copy_from_slice(&crc.to_le_bytes());
        self.file.write_at(self.offset, &self.bytes)?;
        self.offset += self.bytes.len() as u64;
        self.bytes.clear();
        self.bytes.resize(FRAME_BYTES, 0);
        if self.offset - self.synced >= SYNC_EVERY_BYTES {
            self.file.sync()?;
            self.synced = self.offset;
        }
        Ok(())
    }
}

fn portion_crc(number: u64, offset: u64, len: u32, records: &[u8]) -> u32 {
    let crc = crc32c::crc32c(&number.to_le_bytes());
    let crc = crc32c::crc32c_append(crc, &offset.to_le_bytes());
    let crc = crc32c::crc32c_append(crc, &len.to_le_bytes());
    crc32c::crc32c_append(crc, records)
}

/// Reads a checkpoint, whole, portion by portion. Its first record must be this head, unless
/// nobody knows it. Gives its bytes.
pub(crate) fn read(
    disk: &dyn Disk,
    number: u64,
    head: Option<&CheckpointHead>,
    visit: &mut dyn FnMut(Record),
) -> Result<u64, Damage> {
    let name = checkpoint_name(number);
    let failed = |source| Damage::io(&name, source);
    let file = disk.open(&name).map_err(|source| match source.kind() {
        io::ErrorKind::NotFound => {
            Damage::corrupt(&name, 0, "the manifest names it, but the file is not there")
        }
        _ => failed(source),
    })?;
    let len = file.len().map_err(failed)?;
    let mut portions = Portions { file, name: &name, number, len, offset: 0, bytes: Vec::new() };
    portions.read_header()?;
    let (mut before, mut is_complete) = (None, false);
    while let Some(at) = portions.next()? {
        let mut reader = Reader::new(&portions.bytes);
        while !reader.is_empty() {
            let offset = at + (portions.bytes.len() - reader.len()) as u64;
            let corrupt = |what: &str| Damage::corrupt(&name, offset, what);
            if is_complete {
                return Err(corrupt("something follows the end of the checkpoint"));
            }
            let Some(record) = Record::decode(&mut reader) else {
                return Err(corrupt("a record cannot be read"));
            };
            match (&record, before.replace(())) {
                (Record::Checkpoint(found), None) if head.is_none_or(|head| head == found) => {}
                (_, None) | (Record::Checkpoint(_), _) => {
                    return Err(corrupt("it is not the checkpoint of its segment"));
                }
                (Record::CheckpointEnd, _) => is_complete = true,
                _ => {}
            }
            visit(record);
        }
    }
    if !is_complete {
        return Err(Damage::corrupt(&name, len, "the file ends within the checkpoint"));
    }
    Ok(len)
}

struct Portions<'a> {
    file: Arc<dyn File>,
    name: &'a str,
    number: u64,
    len: u64,
    offset: u64,
    /// The records of the portion.
    bytes: Vec<u8>,
}

impl Portions<'_> {
    fn corrupt(&self, what: &str) -> Damage {
        Damage::corrupt(self.name, self.offset, what)
    }

    fn read_at<const N: usize>(&self, offset: u64) -> Result<[u8; N], Damage> {
        if offset + N as u64 > self.len {
            return Err(Damage::corrupt(self.name, self.len, "the file ends too early"));
        }
        let mut bytes = [0; N];
        let read = self.file.read_at(offset, &mut bytes);
        read.map_err(|source| Damage::io(self.name, source)).map(|()| bytes)
    }

    fn read_header(&mut self) -> Result<(), Damage> {
        let bytes: [u8; HEADER_BYTES] = self.read_at(0)?;
        let (covered, crc) = bytes.split_at(HEADER_BYTES - 4);
        if crc32c::crc32c(covered).to_le_bytes() != crc {
            return Err(self.corrupt("the checksum of the header does not fit"));
        }
        let mut reader = Reader::new(covered);
        if reader.array() != Some(MAGIC) {
            return Err(self.corrupt("it does not begin like a checkpoint"));
        }
        match reader.fixed_u32() {
            Some(FORMAT) => {}
            Some(found) if found > FORMAT => {
                let file = self.name.to_owned();
                return Err(Damage::Newer { file, found, known: FORMAT });
            }
            _ => return Err(self.corrupt("it has no format")),
        }
        if reader.fixed_u64() != Some(self.number) {
            return Err(self.corrupt("it is another checkpoint"));
        }
        self.offset = HEADER_BYTES as u64;
        Ok(())
    }

    /// Reads the next portion; gives where its records begin.
    fn next(&mut self) -> Result<Option<u64>, Damage> {
        if self.offset == self.len {
            return Ok(None);
        }
        let frame: [u8; FRAME_BYTES] = self.read_at(self.offset)?;
        let mut reader = Reader::new(&frame);
        let (Some(len), Some(crc)) = (reader.fixed_u32(), reader.fixed_u32()) else {
            return Err(self.corrupt("a portion has no header"));
        };
        let records_at = self.offset + FRAME_BYTES as u64;
        if len > PORTION_BYTES_MAX || records_at + u64::from(len) > self.len {
            return Err(self.corrupt("a portion is longer than the file"));
        }
        self.bytes.resize(len as usize, 0);
        let read = self.file.read_at(records_at, &mut self.bytes);
        read.map_err(|source| Damage::io(self.name, source))?;
        if portion_crc(self.number, self.offset, len, &self.bytes) != crc {
            return Err(self.corrupt("the checksum of a portion does not fit"));
        }
        self.offset = records_at + u64::from(len);
        Ok(Some(records_at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::RealDisk;
    use crate::journal::RunUse;

    fn disk() -> (tempfile::TempDir, RealDisk) {
        let dir = tempfile::tempdir().unwrap();
        let disk = RealDisk::open(dir.path()).unwrap();
        (dir, disk)
    }

    fn head() -> CheckpointHead {
        CheckpointHead { steady_ms: 77, next_run: 5, ..CheckpointHead::default() }
    }

    fn records(uses: u64) -> Vec<Record> {
        let uses = (0..uses).map(|no| Record::RunUse(RunUse { no, consumed: no * no }));
        let first = std::iter::once(Record::Checkpoint(head()));
        first.chain(uses).chain([Record::CheckpointEnd]).collect()
    }

    fn read_all(disk: &RealDisk, number: u64) -> Result<Vec<Record>, Damage> {
        let mut found = Vec::new();
        read(disk, number, Some(&head()), &mut |record| found.push(record))?;
        Ok(found)
    }

    #[test]
    fn it_comes_back_in_portions() {
        let (dir, disk) = disk();
        let expected = records(300_000);
        let bytes = write(&disk, 9, expected.iter().cloned()).unwrap();
        assert!(bytes > 2 * PORTION_BYTES as u64, "{bytes}");
        assert_eq!(disk.list().unwrap(), [checkpoint_name(9)]);
        assert_eq!(std::fs::metadata(dir.path().join(checkpoint_name(9))).unwrap().len(), bytes);
        assert!(read_all(&disk, 9).unwrap() == expected);
        assert_eq!(checkpoint_number(&checkpoint_name(9)), Some(9));
        assert!(is_temporary(&format!("{}.tmp", checkpoint_name(9))));
    }

    #[test]
    fn every_flip_cut_and_swap_is_seen() {
        let (dir, disk) = disk();
        write(&disk, 9, records(20).into_iter()).unwrap();
        let path = dir.path().join(checkpoint_name(9));
        let whole = std::fs::read(&path).unwrap();
        let check = |bytes: &[u8], what: &str| {
            std::fs::write(&path, bytes).unwrap();
            let found = read_all(&disk, 9);
            assert!(matches!(found, Err(Damage::Corrupt { .. })), "{what}: {found:?}");
        };
        for at in 0..whole.len() {
            for bit in 0..8 {
                let mut flipped = whole.clone();
                flipped[at] ^= 1 << bit;
                check(&flipped, &format!("bit {bit} of {at}"));
            }
            check(&whole[..at], &format!("cut at {at}"));
        }
        check(&[whole.as_slice(), &[0]].concat(), "longer");
        check(&[&whole, &whole[HEADER_BYTES..]].concat(), "a portion twice");
        std::fs::write(dir.path().join(checkpoint_name(8)), &whole).unwrap();
        assert!(matches!(read_all(&disk, 8), Err(Damage::Corrupt { .. })), "another's name");
        assert!(matches!(read_all(&disk, 7), Err(Damage::Corrupt { .. })), "not there");
        std::fs::write(&path, &whole).unwrap();
        let other = CheckpointHead { steady_ms: 78, ..head() };
        let found = read(&disk, 9, Some(&other), &mut |_| {});
        assert!(matches!(found, Err(Damage::Corrupt { .. })), "the head of another");
    }

    #[test]
    fn a_newer_format_is_told() {
        let (dir, disk) = disk();
        write(&disk, 9, records(0).into_iter()).unwrap();
        let path = dir.path().join(checkpoint_name(9));
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[4] = 2;
        let crc = crc32c::crc32c(&bytes[..16]);
        bytes[16..20].copy_from_slice(&crc.to_le_bytes());
        std::fs::write(&path, &bytes).unwrap();
        assert!(matches!(read_all(&disk, 9), Err(Damage::Newer { found: 2, known: 1, .. })));
    }
}
