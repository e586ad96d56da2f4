//! The manifest: which segment the journal begins with, and which checkpoint and which runs belong
//! to the store.
//!
//! One small file, never changed but replaced whole: written under another name, synced, renamed,
//! and the directory synced. Fixed numbers, little-endian:
//!
//! ```text
//!  0   4  magic, bytes 9d 44 4d 4d
//!  4   4  format, 2
//!  8  16  store id, random, given once
//! 24   8  wall_ms when the store was made
//! 32   8  first segment
//! 40   8  number of the checkpoint's file; 0 = the first batch of the first segment is all of it
//! 48   8  number of runs n
//! 56 16n  per run, oldest first: number, age
//! ..   4  CRC32C of all before it
//! ```
//!
//! Format 1 has no number of a checkpoint: it is as if that were 0.
//!
//! Magic and format keep their places, and the checksum the end, in every later format.

use std::io;

use crate::checkpoint::checkpoint_number;
use crate::codec::Reader;
use crate::damage::Damage;
use crate::disk::Disk;
use crate::journal;

/// The manifest's file name.
pub const MANIFEST_NAME: &str = "manifest.dmm";
/// Its name until it is whole.
pub const MANIFEST_TMP_NAME: &str = "manifest.tmp";

const MAGIC: [u8; 4] = [0x9d, b'D', b'M', b'M'];
const FORMAT: u32 = 2;
/// The format without the number of a checkpoint.
const FORMAT_INLINE: u32 = 1;
const RUN_BYTES: usize = 16;
/// A million runs: no store comes near, and a wild length is not read into memory.
const BYTES_MAX: u64 = 16 << 20;

const RUN_PREFIX: &str = "run-";
const RUN_SUFFIX: &str = ".dmr";
const RUN_DIGITS: usize = 20;

/// The files that belong to the store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Manifest {
    /// Random, given once: tells the copies of one store from another store.
    pub store_id: [u8; 16],
    /// Wall clock when the store was made.
    pub created_ms: u64,
    /// The segment that begins with the head of the checkpoint to start from.
    pub first_segment: u64,
    /// The number of the checkpoint's file; `None` = the first batch of the first segment is all of
    /// the checkpoint.
    pub checkpoint: Option<u64>,
    /// The runs as they were at that checkpoint, oldest first.
    pub runs: Vec<RunRef>,
}

/// A run of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunRef {
    /// Its number, never given again.
    pub no: u64,
    /// Its age: of equal places the run of the highest age speaks.
    pub age: u64,
}

impl RunRef {
    /// Its file name.
    pub fn name(&self) -> String {
        run_name(self.no)
    }
}

/// The file name of a run.
pub fn run_name(no: u64) -> String {
    format!("{RUN_PREFIX}{no:0RUN_DIGITS$}{RUN_SUFFIX}")
}

/// The number of the run that has this file name, if it is one.
pub fn run_number(name: &str) -> Option<u64> {
    let digits = name.strip_prefix(RUN_PREFIX)?.strip_suffix(RUN_SUFFIX)?;
    let fits = digits.len() == RUN_DIGITS && digits.bytes().all(|byte| byte.is_ascii_digit());
    if fits { digits.parse().ok() } else { None }
}

/// Reads the manifest; `None` = there is no store yet.
///
/// A directory without manifest that holds a run, a checkpoint, or a journal with changes in it, is
/// a store that lost its manifest. A first start that was cut short leaves at most the head of a
/// checkpoint, because it writes the manifest before it accepts anything.
pub fn read(disk: &dyn Disk) -> Result<Option<Manifest>, Damage> {
    let names = disk.list().map_err(|source| Damage::io("data directory", source))?;
    if names.iter().any(|name| name == MANIFEST_NAME) {
        return parse(&read_bytes(disk)?).map(Some);
    }
    let is_ours = |name: &&String| run_number(name).or(checkpoint_number(name)).is_some();
    if let Some(name) = names.iter().find(is_ours) {
        return Err(lost(&format!("{name} is there")));
    }
    for segment in journal::segments(disk)? {
        if journal::holds_changes(disk, segment)? {
            let name = journal::segment_name(segment);
            return Err(lost(&format!("{name} holds changes")));
        }
    }
    Ok(None)
}

/// Replaces the manifest; the new one is durable when this returns.
pub fn write(disk: &dyn Disk, manifest: &Manifest) -> Result<(), Damage> {
    replace(disk, &to_bytes(manifest)).map_err(|source| Damage::io(MANIFEST_NAME, source))
}

fn replace(disk: &dyn Disk, bytes: &[u8]) -> io::Result<()> {
    // Remains of an earlier one that a power cut left.
    match disk.remove(MANIFEST_TMP_NAME) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let file = disk.create(MANIFEST_TMP_NAME)?;
    file.write_at(0, bytes)?;
    file.sync()?;
    disk.rename(MANIFEST_TMP_NAME, MANIFEST_NAME)?;
    disk.sync_dir()
}

fn read_bytes(disk: &dyn Disk) -> Result<Vec<u8>, Damage> {
    let failed = |source| Damage::io(MANIFEST_NAME, source);
    let file = disk.open(MANIFEST_NAME).map_err(failed)?;
    let len = file.len().map_err(failed)?;
    if len > BYTES_MAX {
        return Err(corrupt(BYTES_MAX, "it is longer than any manifest"));
    }
    let mut bytes = vec![0; len as usize];
    file.read_at(0, &mut bytes).map_err(failed)?;
    Ok(bytes)
}

fn to_bytes(manifest: &Manifest) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend_from_slice(&MAGIC);
    bytes.extend_from_slice(&FORMAT.to_le_bytes());
    bytes.extend_from_slice(&manifest.store_id);
    bytes.extend_from_slice(&manifest.created_ms.to_le_bytes());
    bytes.extend_from_slice(&manifest.first_segment.to_le_bytes());
    bytes.extend_from_slice(&manifest.checkpoint.unwrap_or(0).to_le_bytes());
    bytes.extend_from_slice(&(manifest.runs.len() as u64).to_le_bytes());
    for run in &manifest.runs {
        bytes.extend_from_slice(&run.no.to_le_bytes());
        bytes.extend_from_slice(&run.age.to_le_bytes());
    }
    let crc = crc32c::crc32c(&bytes);
    bytes.extend_from_slice(&crc.to_le_bytes());
    bytes
}

fn parse(bytes: &[u8]) -> Result<Manifest, Damage> {
    let Some((covered, crc)) = bytes.split_last_chunk::<4>() else {
        return Err(corrupt(bytes.len() as u64, "the file ends too early"));
    };
    if crc32c::crc32c(covered) != u32::from_le_bytes(*crc) {
        return Err(corrupt(covered.len() as u64, "the checksum does not fit"));
    }
    let mut reader = Reader::new(covered);
    if reader.array() != Some(MAGIC) {
        return Err(corrupt(0, "it does not begin like a manifest"));
    }
    let format = match reader.fixed_u32() {
        Some(format @ (FORMAT_INLINE | FORMAT)) => format,
        Some(found) if found > FORMAT => {
            return Err(Damage::Newer { file: MANIFEST_NAME.to_owned(), found, known: FORMAT });
        }
        _ => return Err(corrupt(4, "it has no format")),
    };
    let manifest = parse_fields(&mut reader, format);
    let at = (covered.len() - reader.len()) as u64;
    match manifest {
        Some(manifest) if reader.is_empty() => Ok(manifest),
        _ => Err(corrupt(at, "the number of runs does not fit the length of the file")),
    }
}

fn parse_fields(reader: &mut Reader<'_>, format: u32) -> Option<Manifest> {
    let store_id = reader.array()?;
    let created_ms = reader.fixed_u64()?;
    let first_segment = reader.fixed_u64()?;
    let checkpoint = if format == FORMAT_INLINE { 0 } else { reader.fixed_u64()? };
    let checkpoint = (checkpoint != 0).then_some(checkpoint);
    let count = usize::try_from(reader.fixed_u64()?).ok()?;
    if count != reader.len() / RUN_BYTES {
        return None;
    }
    let mut runs = Vec::with_capacity(count);
    for _ in 0..count {
        runs.push(RunRef { no: reader.fixed_u64()?, age: reader.fixed_u64()? });
    }
    Some(Manifest { store_id, created_ms, first_segment, checkpoint, runs })
}

fn corrupt(offset: u64, what: &str) -> Damage {
    Damage::corrupt(MANIFEST_NAME, offset, what)
}

fn lost(seen: &str) -> Damage {
    let what = format!(
        "the manifest is missing, yet {seen}: restore it with the other files, or choose an empty \
         directory for a new store"
    );
    corrupt(0, &what)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::RealDisk;
    use crate::journal::{BatchBuilder, Boot, CheckpointHead, Record, SegmentWriter};

    fn disk() -> (tempfile::TempDir, RealDisk) {
        let dir = tempfile::tempdir().unwrap();
        let disk = RealDisk::open(dir.path()).unwrap();
        (dir, disk)
    }

    fn manifest() -> Manifest {
        Manifest {
            store_id: *b"0123456789abcdef",
            created_ms: 1_790_000_000_000,
            first_segment: 7,
            checkpoint: Some(7),
            runs: vec![RunRef { no: 3, age: 3 }, RunRef { no: u64::MAX, age: 5 }],
        }
    }

    fn write_segment(disk: &RealDisk, segment: u64, records: &[Record]) {
        let mut builder = BatchBuilder::new();
        records.iter().for_each(|record| builder.push(record));
        let mut writer = SegmentWriter::create(disk, segment).unwrap();
        writer.write(&mut builder.seal(1), 0, 0, 0).unwrap();
    }

    #[test]
    fn it_comes_back_and_is_replaced() {
        let (dir, disk) = disk();
        assert_eq!(read(&disk).unwrap(), None);
        std::fs::write(dir.path().join(MANIFEST_TMP_NAME), "left by a power cut").unwrap();
        write(&disk, &manifest()).unwrap();
        assert_eq!(read(&disk).unwrap(), Some(manifest()));
        let empty = Manifest { first_segment: 8, checkpoint: None, runs: vec![], ..manifest() };
        write(&disk, &empty).unwrap();
        assert_eq!(read(&disk).unwrap(), Some(empty));
        assert_eq!(disk.list().unwrap(), [MANIFEST_NAME]);
    }

    #[test]
    fn every_flip_and_cut_is_seen() {
        let (dir, disk) = disk();
        let path = dir.path().join(MANIFEST_NAME);
        let bytes = to_bytes(&manifest());
        for at in 0..bytes.len() {
            for bit in 0..8 {
                let mut flipped = bytes.clone();
                flipped[at] ^= 1 << bit;
                assert!(
                    matches!(parse(&flipped), Err(Damage::Corrupt { .. })),
                    "bit {bit} of {at}"
                );
            }
            std::fs::write(&path, &bytes[..at]).unwrap();
            assert!(matches!(read(&disk), Err(Damage::Corrupt { .. })), "cut at {at}");
        }
        let mut longer = bytes.clone();
        longer.push(0);
        assert!(parse(&longer).is_err());
    }

    #[test]
    fn a_newer_format_and_a_wild_count_are_told() {
        let mut bytes = to_bytes(&manifest());
        let end = bytes.len() - 4;
        let reseal = |bytes: &mut Vec<u8>| {
            let crc = crc32c::crc32c(&bytes[..end]);
            bytes[end..].copy_from_slice(&crc.to_le_bytes());
        };
        bytes[48..56].copy_from_slice(&u64::MAX.to_le_bytes());
        reseal(&mut bytes);
        assert!(matches!(parse(&bytes), Err(Damage::Corrupt { .. })));
        bytes[4] = 9;
        reseal(&mut bytes);
        assert!(matches!(parse(&bytes), Err(Damage::Newer { found: 9, known: 2, .. })));
    }

    #[test]
    fn the_format_before_is_read() {
        let mut bytes = to_bytes(&manifest());
        bytes[4] = 1;
        bytes.drain(40..48);
        let end = bytes.len() - 4;
        let crc = crc32c::crc32c(&bytes[..end]);
        bytes[end..].copy_from_slice(&crc.to_le_bytes());
        assert_eq!(parse(&bytes).unwrap(), Manifest { checkpoint: None, ..manifest() });
    }

    #[test]
    fn a_first_start_cut_short_is_no_store() {
        let (dir, disk) = disk();
        let checkpoint = Record::Checkpoint(CheckpointHead::default());
        write_segment(&disk, 1, &[checkpoint, Record::CheckpointEnd]);
        SegmentWriter::create(&disk, 2).unwrap();
        std::fs::write(dir.path().join(journal::segment_name(3)), [7; 500]).unwrap();
        std::fs::write(dir.path().join(MANIFEST_TMP_NAME), "").unwrap();
        std::fs::write(dir.path().join("lock"), "").unwrap();
        assert_eq!(read(&disk).unwrap(), None);
    }

    #[test]
    fn a_store_without_its_manifest_is_corrupt() {
        let (dir, disk) = disk();
        write_segment(&disk, 1, &[Record::Boot(Boot::default())]);
        let error = read(&disk).unwrap_err().to_string();
        assert!(error.contains("manifest") && error.contains("journal-"), "{error}");
        disk.remove(&journal::segment_name(1)).unwrap();
        std::fs::write(dir.path().join(run_name(4)), "").unwrap();
        let error = read(&disk).unwrap_err().to_string();
        assert!(error.contains(&run_name(4)), "{error}");
        disk.remove(&run_name(4)).unwrap();
        std::fs::write(dir.path().join(crate::checkpoint::checkpoint_name(4)), "").unwrap();
        let error = read(&disk).unwrap_err().to_string();
        assert!(error.contains("checkpoint-"), "{error}");
    }
}
