//! Backup of a running store, the caller's part: all that may take long. See ARCHITECTURE.md.

use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder, File};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::channel;

use dormouse_core::error::{Code, Error};
use rustix::fs::{AtFlags, Mode, OFlags, mkdirat, openat, renameat, unlinkat};
use rustix::io::Errno;

use crate::damage::Damage;
use crate::disk::{DIR_MODE, Disk as _, FILE_MODE, RealDisk};
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

/// Where a backup goes.
struct Target {
    dir: PathBuf,
    /// Its own name in its parent.
    name: OsString,
    /// Its name there until it is whole.
    part_name: OsString,
    /// Parents that were missing, the innermost first.
    made: Vec<PathBuf>,
}

/// The directories of a backup that has begun. Everything is done by these handles: a path could
/// lead elsewhere by the time it is used.
struct Begun<'a> {
    target: &'a Target,
    parent: File,
    part: Arc<File>,
}

/// Makes a backup; `ask` hands the request to the store.
pub(crate) fn backup(
    source: &Path,
    target: &Path,
    ask: impl FnOnce(BackupRequest) -> Result<(), Error>,
) -> Result<BackupReport, Error> {
    let target = Target::new(target)?;
    let made = target.begin().and_then(|begun| {
        let filled = pin(source, &begun, ask)
            .and_then(|pinned| begun.fill(pinned).map_err(|source| target.failed(&source)));
        if filled.is_err() {
            // If it cannot be removed, its name at least says what it is.
            let _ = begun.remove();
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
    begun: &Begun<'_>,
    ask: impl FnOnce(BackupRequest) -> Result<(), Error>,
) -> Result<PinnedFiles, Error> {
    let (reply, pinned) = channel();
    ask(BackupRequest { source: source.to_owned(), into: Arc::clone(&begun.part), reply })?;
    let stopped = |_| Error::unavailable("the queue was closed before the backup was made");
    pinned.recv().map_err(stopped)?.map_err(|source| begun.target.failed(&source))
}

impl Target {
    /// Looks whether a backup can be made there.
    fn new(dir: &Path) -> Result<Target, Error> {
        let shown = dir.display();
        let dir = std::path::absolute(dir)
            .map_err(|source| Error::invalid(format!("backup into {shown}: {source}")))?;
        let Some(name) = dir.file_name().map(OsStr::to_owned) else {
            return Err(Error::invalid(format!(
                "backup into {shown}: give the path of a new directory"
            )));
        };
        let mut part_name = name.clone();
        part_name.push(".part");
        let missing = |parent: &&Path| !parent.exists();
        let made = dir.ancestors().skip(1).take_while(missing).map(Path::to_owned).collect();
        Ok(Target { dir, name, part_name, made })
    }

    /// Makes the directory that is filled.
    fn begin(&self) -> Result<Begun<'_>, Error> {
        match fs::read_dir(&self.dir).map(|mut entries| entries.next().is_some()) {
            Ok(false) => {}
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Ok(true) => return Err(self.not_empty()),
            Err(source) => return Err(self.failed(&source)),
        }
        let mut builder = DirBuilder::new();
        builder.mode(DIR_MODE);
        for parent in self.made.iter().rev() {
            builder.create(parent).map_err(|source| self.failed(&source))?;
        }
        let parent = self.open_parent()?;
        let failed = |error: Errno| self.failed(&error.into());
        match mkdirat(&parent, &self.part_name, Mode::from_raw_mode(DIR_MODE)) {
            Ok(()) => {}
            Err(Errno::EXIST) => return Err(self.under_way()),
            Err(error) => return Err(failed(error)),
        }
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let part = openat(&parent, &self.part_name, flags, Mode::empty()).map_err(failed)?;
        Ok(Begun { target: self, parent, part: Arc::new(part.into()) })
    }

    /// A link in place of the parent would send the backup where whoever made it likes.
    fn open_parent(&self) -> Result<File, Error> {
        let parent = self.dir.parent().unwrap_or(&self.dir);
        let flags = (OFlags::DIRECTORY | OFlags::NOFOLLOW).bits().cast_signed();
        let opened = File::options().read(true).custom_flags(flags).open(parent);
        opened.map_err(|source| match fs::symlink_metadata(parent) {
            Ok(found) if found.is_symlink() => Error::invalid(format!(
                "backup into {}: {} is a symbolic link, and no backup is made through one; put a \
                 directory in its place, or name the one that it leads to",
                self.dir.display(),
                parent.display()
            )),
            _ => self.failed(&source),
        })
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

    fn under_way(&self) -> Error {
        Error::new(
            Code::Conflict,
            format!(
                "backup into {}: {} is there, so another backup into it is under way, or one was \
                 cut short; wait for it, or remove it",
                self.dir.display(),
                self.dir.with_file_name(&self.part_name).display()
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

impl Begun<'_> {
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
        let disk = self.disk()?;
        manifest::write(&disk, &manifest).map_err(|damage| match damage {
            Damage::Io { source, .. } => source,
            other => io::Error::other(other),
        })?;
        bytes += disk.open(manifest::MANIFEST_NAME)?.len()?;
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

    fn disk(&self) -> io::Result<RealDisk> {
        self.part.try_clone().map(RealDisk::new)
    }

    /// Copies the first bytes of a file, durably.
    fn copy(&self, from: &File, len: u64, name: &str) -> io::Result<u64> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let to = openat(&self.part, name, flags, Mode::from_raw_mode(FILE_MODE))?;
        let mut to = File::from(to);
        let copied = io::copy(&mut from.take(len), &mut to)?;
        if len != u64::MAX && copied != len {
            return Err(io::Error::new(ErrorKind::UnexpectedEof, format!("{name} is too short")));
        }
        to.sync_all()?;
        Ok(copied)
    }

    /// Gives the backup, which is whole, its name, durably.
    fn publish(&self) -> io::Result<()> {
        let Target { dir, name, part_name, made } = self.target;
        renameat(&self.parent, part_name, &self.parent, name)?;
        let mut above = dir.ancestors().skip(2).take(made.len());
        let synced = self.parent.sync_all();
        let synced =
            synced.and_then(|()| above.try_for_each(|parent| File::open(parent)?.sync_all()));
        if synced.is_err() {
            renameat(&self.parent, name, &self.parent, part_name)?;
        }
        synced
    }

    /// Removes what is not whole.
    fn remove(&self) -> io::Result<()> {
        let disk = self.disk()?;
        for name in disk.list()? {
            disk.remove(&name)?;
        }
        Ok(unlinkat(&self.parent, &self.target.part_name, AtFlags::REMOVEDIR)?)
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
            assert!(wanted.into.metadata().unwrap().is_dir() && !target.exists());
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

    #[test]
    fn no_backup_is_made_through_a_link() {
        let parent = tempfile::tempdir().unwrap();
        let (elsewhere, link) = (parent.path().join("elsewhere"), parent.path().join("backups"));
        fs::create_dir(&elsewhere).unwrap();
        std::os::unix::fs::symlink(&elsewhere, &link).unwrap();
        let refused =
            backup(Path::new("/nowhere"), &link.join("x"), |_| unreachable!()).unwrap_err();
        assert_eq!(refused.code, Code::Invalid);
        assert!(refused.text.contains("backups is a symbolic link"), "{}", refused.text);
        assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);
    }

    /// The parent becomes a link while the store has the files together.
    #[test]
    fn a_backup_stays_where_it_began() {
        let parent = tempfile::tempdir().unwrap();
        let path = |name: &str| parent.path().join(name);
        fs::create_dir(path("backups")).unwrap();
        fs::create_dir(path("elsewhere")).unwrap();
        backup(Path::new("/nowhere"), &path("backups").join("x"), |wanted| {
            fs::rename(path("backups"), path("moved")).unwrap();
            std::os::unix::fs::symlink(path("elsewhere"), path("backups")).unwrap();
            wanted.reply.send(Ok(pinned(5))).ok().unwrap();
            Ok(())
        })
        .unwrap();
        assert_eq!(fs::read_dir(path("elsewhere")).unwrap().count(), 0);
        assert_eq!(fs::read_dir(path("moved").join("x")).unwrap().count(), 2);
    }
}
