//! The store's part of a backup: to have the files of one manifest there, all at once, and to keep
//! them from vanishing while the rest is done elsewhere.

use std::fs::{self, File};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::Sender;

use dormouse_core::time::Now;
use rustix::fs::{AtFlags, CWD, linkat};

use super::Store;
use crate::checkpoint::checkpoint_name;
use crate::journal::segment_name;
use crate::manifest::Manifest;

/// A backup that somebody waits for.
pub(crate) struct BackupRequest {
    /// The data directory.
    pub(crate) source: PathBuf,
    /// The directory that hard links go into; it is empty.
    pub(crate) into: Arc<File>,
    /// The waiting caller; dropped unanswered if the store stops first.
    pub(crate) reply: Sender<io::Result<PinnedFiles>>,
}

/// The contents of a checkpoint.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CheckpointInfo {
    /// The bytes of the batch with its head, the first of its segment.
    pub(crate) head_bytes: u64,
    pub(crate) jobs: u64,
    pub(crate) wall_ms: u64,
}

/// Files that can no longer vanish.
pub(crate) struct PinnedFiles {
    pub(crate) manifest: Manifest,
    pub(crate) as_of: CheckpointInfo,
    /// The segment that begins with the checkpoint. It still grows.
    pub(crate) segment: File,
    pub(crate) checkpoint: Option<PinnedFile>,
    pub(crate) runs: Vec<PinnedFile>,
}

/// A file that does not change any more.
pub(crate) enum PinnedFile {
    /// It is linked, and has so many bytes.
    Linked(u64),
    /// It could not be linked, and is to be copied under this name.
    Open(String, File),
}

/// Work for the flush line.
pub(super) struct Pin {
    wanted: BackupRequest,
    manifest: Manifest,
    as_of: CheckpointInfo,
}

impl Store {
    /// The next freeze is for this one too, and comes at once.
    pub(crate) fn want_backup(&mut self, wanted: BackupRequest) {
        self.backups_wanted.push(wanted);
    }

    /// The contents of the checkpoint that was just sealed.
    pub(super) fn as_of(&self, now: Now, head_bytes: u64) -> CheckpointInfo {
        let totals = self.machine.totals();
        CheckpointInfo {
            head_bytes,
            jobs: totals.waiting + totals.leased + totals.dead,
            wall_ms: now.wall_ms,
        }
    }

    /// The manifest is durable: these are next on the flush line.
    pub(super) fn plan_backups(&mut self, backups: Vec<BackupRequest>, as_of: CheckpointInfo) {
        let manifest = &self.manifest;
        let pins = backups.into_iter().map(|wanted| {
            let manifest = manifest.clone();
            Pin { wanted, manifest, as_of }
        });
        self.backups_due.extend(pins);
    }
}

impl Pin {
    /// Answers the waiting caller; a failed backup concerns nobody else.
    pub(super) fn run(self) {
        let Pin { wanted: BackupRequest { source, into, reply }, manifest, as_of } = self;
        let pin = || {
            let segment = File::open(source.join(segment_name(manifest.first_segment)))?;
            let pin = |name: String| {
                let from = source.join(&name);
                match linkat(CWD, &from, &*into, &name, AtFlags::empty()) {
                    Ok(()) => Ok(PinnedFile::Linked(fs::metadata(&from)?.len())),
                    // Another file system, or one without links.
                    Err(_) => Ok(PinnedFile::Open(name, File::open(from)?)),
                }
            };
            let checkpoint = manifest.checkpoint.map(checkpoint_name).map(pin).transpose()?;
            let runs = manifest.runs.iter().map(|run| pin(run.name()));
            let runs = runs.collect::<io::Result<Vec<PinnedFile>>>()?;
            Ok(PinnedFiles { manifest, as_of, segment, checkpoint, runs })
        };
        // The caller may be gone.
        let _ = reply.send(pin());
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use dormouse_core::backend::{Request, Ticket};
    use dormouse_core::command::Command;
    use dormouse_core::op::Put;
    use dormouse_core::topic::TopicName;

    use super::*;
    use crate::clock::{TimeSource, VirtualClock};
    use crate::disk::{Disk, RealDisk};
    use crate::journal::SegmentWriter;
    use crate::store::{RecoveredStore, SegmentBatch, Sizes};

    fn write(disk: &dyn Disk, store: &mut Store, writer: &mut SegmentWriter, sealed: SegmentBatch) {
        let SegmentBatch { mut batch, segment, now } = sealed;
        if segment != writer.segment() {
            *writer = SegmentWriter::create(disk, segment).unwrap();
        }
        let before = batch.number - 1;
        writer.write(&mut batch, before, now.steady_ms, now.wall_ms).unwrap();
        writer.sync().unwrap();
        store.set_synced(batch.number);
        store.set_durable(batch.number);
    }

    /// Two flushes are queued; the second one's manifest drops a run that the first one's lists.
    #[test]
    fn files_are_pinned_before_the_next_manifest() {
        let dir = tempfile::tempdir().unwrap();
        let into = tempfile::tempdir().unwrap();
        let disk: Arc<dyn Disk> = Arc::new(RealDisk::open(dir.path()).unwrap());
        let reading = VirtualClock::new().read();
        let opened = Store::open(Arc::clone(&disk), Sizes::default(), [1; 16], reading).unwrap();
        let RecoveredStore { mut store, mut writer, clock } = opened;
        let now = clock.now(reading);
        let (reply, pinned) = channel();
        let source = dir.path().to_owned();
        let target = Arc::new(File::open(into.path()).unwrap());
        store.want_backup(BackupRequest { source, into: target, reply });
        for _ in 0..2 {
            let put = Put::new(TopicName::new("t").unwrap(), "body");
            let put = Request::new(Ticket::next(), Command::Put(vec![put]));
            store.step(now, put).unwrap();
            let sealed = store.seal(now).unwrap();
            write(disk.as_ref(), &mut store, &mut writer, sealed);
            let sealed = store.freeze(now);
            write(disk.as_ref(), &mut store, &mut writer, sealed);
        }
        assert!(!store.wants_freeze(), "it was asked for once");
        while let Some(task) = store.flush_task() {
            let done = task.run(&disk).unwrap();
            store.finish(done);
        }
        let pinned = pinned.recv().unwrap().unwrap();
        let is_linked = |file: &PinnedFile| matches!(file, PinnedFile::Linked(_));
        assert!(pinned.manifest.runs.len() == 1 && pinned.runs.iter().all(is_linked));
        assert!(pinned.checkpoint.as_ref().is_some_and(is_linked));
        assert_eq!(pinned.as_of.jobs, 1, "as of the first freeze");
        assert!(!dir.path().join(segment_name(pinned.manifest.first_segment)).exists());
        assert_eq!(fs::read_dir(into.path()).unwrap().count(), 2);
    }
}
