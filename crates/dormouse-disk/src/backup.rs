//! Backup of a running store, the caller's part: all that may take long. See ARCHITECTURE.md.

use std::fs::{self, DirBuilder, File};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;

use dormouse_core::error::{Code, Error};

use crate::damage::Damage;
use crate::disk::RealDisk;
use crate::journal::segment_name;
use crate::manifest;
use crate::store::{BackupRequest, PinnedFile, PinnedFiles};

/// The contents of a backup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackupReport {
    /// Files.
    pub files: u64,
    /// Their bytes, linked ones included.
    pub bytes: u64,
    /// Runs that are hard links: they share their room with the store's.
    pub runs_linked: u64,
    /// Runs that had to be copied, because the target is on another file system.
    pub runs_copied: u64,
    /// Jobs in any state.
    pub jobs: u64,
    /// As of when, wall ms.
    pub at_ms: u64,
}

/// The directory of a backup, and the directories made for it.
struct Target {
    dir: PathBuf,
    /// The backup until it is whole.
    part: PathBuf,
    /// Parents that were missing, the innermost first.
    made: Vec<PathBuf>,
}

/// Makes a backup; `ask` hands the request to the store.
pub(crate) fn backup(
    source: &Path,
    target: &Path,
    ask: impl FnOnce(BackupRequest) -> Result<(), Error>,
) -> Result<BackupReport, Error> {
    let target = Target::new(target)?;
    let made = target.begin().and_then(|()| {
        let filled = pin(source, &target, ask)
            .and_then(|pinned| target.fill(pinned).map_err(|source| target.failed(&source)));
        if filled.is_err() {
            // If it cannot be removed, its name at least says what it is.
            let _ = fs::remove_dir_all(&target.part);
        }
        filled
    });
    if made.is_err() {
        target.remove_parents();
    }
    made
}

/// Waits until the store has the files together.
fn pin(
    source: &Path,
    target: &Target,
    ask: impl FnOnce(BackupRequest) -> Result<(), Error>,
) -> Result<PinnedFiles, Error> {
    let (reply, pinned) = channel();
    ask(BackupRequest { source: source.to_owned(), into: target.part.clone(), reply })?;
    let stopped = |_| Error::unavailable("the queue was closed before the backup was made");
    pinned.recv().map_err(stopped)?.map_err(|source| target.failed(&source))
}

impl Target {
    /// Looks whether a backup can be made there.
    fn new(dir: &Path) -> Result<Target, Error> {
        let shown = dir.display();
        let dir = std::path::absolute(dir)
            .map_err(|source| Error::invalid(format!("backup into {shown}: {source}")))?;
        let Some(name) = dir.file_name() else {
            return Err(Error::invalid(format!(
                "backup into {shown}: give the path of a new directory"
            )));
        };
        let mut part = name.to_owned();
        part.push(".part");
        let part = dir.with_file_name(part);
        let missing = |parent: &&Path| !parent.exists();
        let made = dir.ancestors().skip(1).take_while(missing).map(Path::to_owned).collect();
        Ok(Target { dir, part, made })
    }

    /// Makes the directory that is filled.
    fn begin(&self) -> Result<(), Error> {
        let shown = self.dir.display();
        match fs::read_dir(&self.dir).map(|mut entries| entries.next().is_some()) {
            Ok(false) => {}
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Ok(true) => return Err(self.not_empty()),
            Err(source) => return Err(self.failed(&source)),
        }
        let mut builder = DirBuilder::new();
        builder.mode(0o700);
        for parent in self.made.iter().rev() {
            builder.create(parent).map_err(|source| self.failed(&source))?;
        }
        builder.create(&self.part).map_err(|source| match source.kind() {
            ErrorKind::AlreadyExists => Error::new(
                Code::Conflict,
                format!(
                    "backup into {shown}: {} is there, so another backup into it is under way, \
                     or one was cut short; wait for it, or remove it",
                    self.part.display()
                ),
            ),
            _ => self.failed(&source),
        })
    }

    /// Everything but the links, in the order that makes half a backup no store.
    fn fill(&self, pinned: PinnedFiles) -> io::Result<BackupReport> {
        let PinnedFiles { manifest, as_of, segment, checkpoint, runs } = pinned;
        let is_linked = |file: &&PinnedFile| matches!(file, PinnedFile::Linked(_));
        let linked = runs.iter().filter(is_linked).count();
        let mut bytes = 0;
        for file in runs.iter().chain(&checkpoint) {
            bytes += match file {
                PinnedFile::Linked(bytes) => *bytes,
                PinnedFile::Open(name, file) => self.copy(file, u64::MAX, name)?,
            };
        }
        bytes += self.copy(&segment, as_of.head_bytes, &segment_name(manifest.first_segment))?;
        let disk = RealDisk::open(&self.part)?;
        manifest::write(&disk, &manifest).map_err(|damage| match damage {
            Damage::Io { source, .. } => source,
            other => io::Error::other(other),
        })?;
        bytes += fs::metadata(self.part.join(manifest::MANIFEST_NAME))?.len();
        self.publish()?;
        Ok(BackupReport {
            files: (runs.len() + usize::from(checkpoint.is_some())) as u64 + 2,
            bytes,
            runs_linked: linked as u64,
            runs_copied: (runs.len() - linked) as u64,
            jobs: as_of.jobs,
            at_ms: as_of.wall_ms,
        })
    }

    /// Copies the first bytes of a file, durably.
    fn copy(&self, from: &File, len: u64, name: &str) -> io::Result<u64> {
        let mut to = File::options().write(true).create_new(true).open(self.part.join(name))?;
        let copied = io::copy(&mut from.take(len), &mut to)?;
        if len != u64::MAX && copied != len {
            return Err(io::Error::new(ErrorKind::UnexpectedEof, format!("{name} is too short")));
        }
        to.sync_all()?;
        Ok(copied)
    }

    /// Gives the backup, which is whole, its name, durably.
    fn publish(&self) -> io::Result<()> {
        fs::rename(&self.part, &self.dir)?;
        let mut parents = self.dir.ancestors().skip(1).take(self.made.len() + 1);
        let synced = parents.try_for_each(|parent| File::open(parent)?.sync_all());
        if synced.is_err() {
            fs::rename(&self.dir, &self.part)?;
        }
        synced
    }

    /// Undoes what `begin` made beside the backup itself, unless others have used it meanwhile.
    fn remove_parents(&self) {
        for parent in &self.made {
            let _ = fs::remove_dir(parent);
        }
    }

    fn not_empty(&self) -> Error {
        Error::new(
            Code::Conflict,
            format!(
                "backup into {}: the directory is not empty; give one that is new or empty",
                self.dir.display()
            ),
        )
    }

    fn failed(&self, source: &io::Error) -> Error {
        let code = match source.kind() {
            ErrorKind::DirectoryNotEmpty => return self.not_empty(),
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Code::Full,
            _ => Code::Invalid,
        };
        let shown = self.dir.display();
        Error::new(code, format!("backup into {shown} failed: {source}; the store goes on"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::Manifest;
    use crate::store::CheckpointInfo;

    /// A backup in which the store answers so; nothing may be left of it.
    #[track_caller]
    fn check_failure(answer: Option<io::Result<PinnedFiles>>, code: Code) {
        let parent = tempfile::tempdir().unwrap();
        let target = parent.path().join("a").join("b");
        let failed = backup(Path::new("/nowhere"), &target, |wanted| {
            assert!(wanted.into.is_dir() && wanted.into != target);
            if let Some(answer) = answer {
                wanted.reply.send(answer).ok().unwrap();
            }
            Ok(())
        });
        assert_eq!(failed.unwrap_err().code, code);
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
    }

    fn pinned(head_bytes: u64) -> PinnedFiles {
        let mut file = tempfile::tempfile().unwrap();
        io::Write::write_all(&mut file, b"checkpoint").unwrap();
        io::Seek::rewind(&mut file).unwrap();
        PinnedFiles {
            manifest: Manifest::default(),
            as_of: CheckpointInfo { head_bytes, jobs: 3, wall_ms: 4 },
            segment: file,
            checkpoint: None,
            runs: Vec::new(),
        }
    }

    #[test]
    fn nothing_is_left_of_a_backup_that_fails() {
        check_failure(None, Code::Unavailable);
        check_failure(Some(Err(io::Error::from(ErrorKind::StorageFull))), Code::Full);
        check_failure(Some(Err(io::Error::from(ErrorKind::NotFound))), Code::Invalid);
        check_failure(Some(Ok(pinned(11))), Code::Invalid);
    }

    #[test]
    fn only_the_first_batch_of_a_segment_is_copied() {
        let parent = tempfile::tempdir().unwrap();
        let target = parent.path().join("x");
        let report = backup(Path::new("/nowhere"), &target, |wanted| {
            wanted.reply.send(Ok(pinned(5))).ok().unwrap();
            Ok(())
        })
        .unwrap();
        assert_eq!((report.files, report.jobs, report.at_ms), (2, 3, 4));
        assert_eq!(fs::read(target.join(segment_name(0))).unwrap(), b"check");
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 1);
    }
}
