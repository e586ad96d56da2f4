//! Shared by all tests of runs: a disk in memory, random numbers, and the run as a plain map.

mod damage;
mod lookup;
mod merge;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use dormouse_core::job::{Content, Job, JobId};
use dormouse_core::place::{Class, Place};
use dormouse_core::time::Clock;
use dormouse_core::topic::TopicNo;

use crate::codec::encode_payload;
use crate::disk::{Disk, File};

use super::writer::ChunkRecords;
use super::{BlockCache, Run, RunMeta, RunWriter};

/// Small enough that any run of more than a few entries spills.
const SMALL_CHUNKS: ChunkRecords = ChunkRecords { found: 7, located: 3 };

/// Files in memory.
#[derive(Default)]
pub(super) struct MemDisk {
    files: Mutex<HashMap<String, Arc<MemFile>>>,
}

#[derive(Default)]
struct MemFile(Mutex<Vec<u8>>);

impl MemDisk {
    pub(super) fn shared() -> Arc<dyn Disk> {
        Arc::new(MemDisk::default())
    }
}

impl Disk for MemDisk {
    fn create(&self, name: &str) -> io::Result<Arc<dyn File>> {
        let mut files = self.files.lock().unwrap();
        if files.contains_key(name) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let file = Arc::new(MemFile::default());
        files.insert(name.to_owned(), Arc::clone(&file));
        Ok(file)
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn File>> {
        let files = self.files.lock().unwrap();
        let file = files.get(name).ok_or(io::ErrorKind::NotFound)?;
        Ok(Arc::<MemFile>::clone(file))
    }

    fn rename(&self, _: &str, _: &str) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let removed = self.files.lock().unwrap().remove(name);
        removed.map(drop).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn list(&self) -> io::Result<Vec<String>> {
        Ok(self.files.lock().unwrap().keys().cloned().collect())
    }

    fn sync_dir(&self) -> io::Result<()> {
        Ok(())
    }

    fn free_bytes(&self) -> io::Result<u64> {
        Ok(u64::MAX)
    }
}

impl File for MemFile {
    fn write_at(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut bytes = self.0.lock().unwrap();
        let end = offset as usize + data.len();
        if bytes.len() < end {
            bytes.resize(end, 0);
        }
        bytes[offset as usize..end].copy_from_slice(data);
        Ok(())
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        let bytes = self.0.lock().unwrap();
        let from = bytes.get(offset as usize..).and_then(|bytes| bytes.get(..into.len()));
        into.copy_from_slice(from.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    fn forget_cached(&self) -> io::Result<()> {
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.0.lock().unwrap().len() as u64)
    }
}

fn file_bytes(disk: &Arc<dyn Disk>, name: &str) -> Vec<u8> {
    let file = disk.open(name).unwrap();
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_at(0, &mut bytes).unwrap();
    bytes
}

fn disk_with(name: &str, bytes: &[u8]) -> Arc<dyn Disk> {
    let disk = MemDisk::shared();
    disk.create(name).unwrap().write_at(0, bytes).unwrap();
    disk
}

/// SplitMix64. Names its seed if the test panics.
pub(super) struct Chance {
    seed: u64,
    state: u64,
}

impl Chance {
    pub(super) fn new(seed: u64) -> Chance {
        Chance { seed, state: seed }
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

impl Drop for Chance {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("seed {}", self.seed);
        }
    }
}

/// A run as it should be: weight and payload by place.
type Model = BTreeMap<Place, (i32, Option<Vec<u8>>)>;

/// The make-up of random runs.
#[derive(Clone, Copy)]
struct Shape {
    entries: u64,
    topics: u64,
    due: u64,
    ids: u64,
    body_max: u64,
}

fn class(chance: &mut Chance) -> Class {
    match chance.below(8) {
        0 => Class::DEAD,
        1 => Class::HOLD,
        2 => Class::waiting(u32::MAX, Clock::Wall),
        3 => Class::waiting(0, Clock::Steady),
        _ => Class::waiting(1024, Clock::Steady),
    }
}

fn payload(key: Option<&[u8]>, body: Vec<u8>) -> Vec<u8> {
    let content = Content {
        key: key.map(Bytes::copy_from_slice),
        body: Bytes::from(body),
        ..Content::default()
    };
    let mut out = Vec::new();
    encode_payload(&Job { content, ..Job::default() }, &mut out);
    out
}

fn random_key(chance: &mut Chance) -> Vec<u8> {
    format!("key-{}", chance.below(300)).into_bytes()
}

fn random_payload(chance: &mut Chance, shape: Shape) -> Option<Vec<u8>> {
    if chance.one_in(4) {
        return None;
    }
    let body_len = if chance.one_in(50) { shape.body_max } else { chance.below(300) };
    let fill = chance.next() as u8;
    let key = chance.one_in(2).then(|| random_key(chance));
    Some(payload(key.as_deref(), vec![fill; chance.below(body_len + 1) as usize]))
}

fn random_place(chance: &mut Chance, shape: Shape) -> Place {
    // Ends of the number space must survive, too.
    let due_at = if chance.one_in(40) { u64::MAX } else { chance.below(shape.due) };
    let id = if chance.one_in(40) { u64::MAX } else { chance.below(shape.ids) };
    let topic = TopicNo(chance.below(shape.topics) as u32);
    Place { topic, class: class(chance), due_at, id: JobId(id) }
}

fn random_model(chance: &mut Chance, shape: Shape) -> Model {
    let mut model = Model::new();
    for _ in 0..shape.entries {
        let weight = match chance.below(10) {
            0 => -1,
            1 => 0,
            2 => chance.below(256) as i32 - 128,
            _ => 1,
        };
        model.insert(random_place(chance, shape), (weight, random_payload(chance, shape)));
    }
    model
}

fn random_shape(chance: &mut Chance) -> Shape {
    // Small ones as often as large ones.
    let size = |chance: &mut Chance, exponent| {
        let bits = 1 + chance.below(exponent);
        1 + chance.below(1 << bits)
    };
    Shape {
        entries: size(chance, 11) - 1,
        topics: size(chance, 8),
        due: size(chance, 34),
        ids: size(chance, 40),
        body_max: 40_000,
    }
}

fn write_model(
    disk: &Arc<dyn Disk>,
    name: &str,
    age: u64,
    model: &Model,
    chunks: ChunkRecords,
) -> RunMeta {
    let mut writer = RunWriter::create_with(disk, name, 1000 + age, age, chunks).unwrap();
    for (place, (weight, payload)) in model {
        writer.push(place, *weight, payload.as_deref()).unwrap();
    }
    let meta = writer.finish().unwrap();
    assert_eq!(meta.bytes, file_bytes(disk, name).len() as u64);
    meta
}

fn open(disk: &Arc<dyn Disk>, name: &str) -> Arc<Run> {
    Arc::new(Run::open(disk, name).unwrap())
}

fn lanes_of(model: &Model) -> BTreeSet<(TopicNo, Class)> {
    model.keys().map(|place| (place.topic, place.class)).collect()
}

/// All entries of a run, read lane by lane.
fn drain(run: &Run, lanes: &BTreeSet<(TopicNo, Class)>) -> Model {
    let mut cache = BlockCache::new(1 << 20);
    let mut drained = Model::new();
    for &(topic, class) in lanes {
        let mut at = run.seek(&mut cache, topic, class, (0, JobId(0))).unwrap();
        while let Some(loc) = at {
            let entry = run.entry(&mut cache, loc).unwrap();
            let payload = entry.payload.map(|payload| payload.to_vec());
            drained.insert(entry.place, (entry.weight, payload));
            at = run.next(&mut cache, loc).unwrap();
        }
    }
    drained
}
