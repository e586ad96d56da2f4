//! What the disk can do without a store: append and fdatasync by a plain file writer.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use dormouse_core::command::{Command, Reply};
use dormouse_disk::engine::{Engine, Options};

use crate::Result;
use crate::client::{Client, unexpected};
use crate::latency::Latencies;
use crate::plan::{Maker, Noise, Plan};

/// At least so much is appended in one go of the measurement, and at least so long.
const BYTES_MIN: u64 = 128 << 20;
const TIME_MIN: Duration = Duration::from_secs(4);
const TIME_MAX: Duration = Duration::from_secs(20);
const PROBE_BATCHES: u64 = 8;
const SYNC_BYTES: usize = 4_096;

/// How many batches took how long.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Appended {
    pub(crate) batches: u64,
    pub(crate) time: Duration,
}

/// Bytes that the journal takes per batch of puts: its size after some, one at a time.
pub(crate) fn journal_bytes_per_batch(dir: &Path, plan: &Plan) -> Result<u64> {
    let engine = Engine::open(dir, Options::default())?;
    let client = Client::new(&engine);
    let before = journal_bytes(dir)?;
    let mut maker = Maker::new(plan)?;
    for batch in 0..PROBE_BATCHES {
        let from = batch * plan.batch as u64;
        let reply = client.call(Command::Put(maker.puts(from..from + plan.batch as u64)))?;
        if !matches!(&reply, Reply::Put(items) if items.iter().all(|item| item.is_ok())) {
            return Err(unexpected("put", &reply));
        }
    }
    let bytes = journal_bytes(dir)? - before;
    engine.close()?;
    std::fs::remove_dir_all(dir)?;
    Ok(bytes / PROBE_BATCHES)
}

fn journal_bytes(dir: &Path) -> Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        let name = entry.file_name();
        if name.to_str().and_then(dormouse_disk::journal::segment_number).is_some() {
            bytes += entry.metadata()?.len();
        }
    }
    Ok(bytes)
}

/// Appends and syncs batches of so many bytes.
pub(crate) fn append(path: &Path, batch_bytes: u64, seed: u64) -> Result<Appended> {
    let data = Noise::new(usize::try_from(batch_bytes)?, seed).body(0);
    let mut file = File::create_new(path)?;
    let (started, mut batches) = (Instant::now(), 0);
    let enough = |batches: u64, time: Duration| {
        time >= TIME_MAX || (time >= TIME_MIN && batches * batch_bytes >= BYTES_MIN)
    };
    while !enough(batches, started.elapsed()) {
        file.write_all(&data)?;
        file.sync_data()?;
        batches += 1;
    }
    let time = started.elapsed();
    std::fs::remove_file(path)?;
    Ok(Appended { batches, time })
}

/// Appends and syncs 4 KiB, again and again: the price of one durable answer.
pub(crate) struct SyncProbe {
    file: File,
    data: Vec<u8>,
}

impl SyncProbe {
    pub(crate) fn create(path: &Path) -> Result<SyncProbe> {
        Ok(SyncProbe { file: File::create(path)?, data: vec![0x5a; SYNC_BYTES] })
    }

    pub(crate) fn run(&mut self, count: usize, into: &mut Latencies) -> Result<()> {
        for _ in 0..count {
            let started = Instant::now();
            self.file.write_all(&self.data)?;
            self.file.sync_data()?;
            into.add(started.elapsed());
        }
        Ok(())
    }
}
