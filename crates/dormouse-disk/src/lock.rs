//! The data directory: made if it is missing, and held by one process at a time.

use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;

use crate::disk::{DIR_MODE, FILE_MODE, RealDisk};

/// The file whose lock stands for the directory's.
pub const LOCK_NAME: &str = "lock";

/// Why a data directory could not be used.
#[derive(Debug, thiserror::Error)]
pub enum DirError {
    /// The path is something else.
    #[error("data directory {}: this is a file; give the path of a directory", .0.display())]
    NotADirectory(PathBuf),
    /// Its owner does not let this process write.
    #[error(
        "data directory {}: not writable ({source}); give it to the user that runs dormouse, or \
         choose another directory",
        .dir.display()
    )]
    NotWritable {
        /// The directory.
        dir: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// Another store has it open.
    #[error(
        "data directory {}: in use by {holder}; stop it, or choose another directory",
        .dir.display()
    )]
    InUse {
        /// The directory.
        dir: PathBuf,
        /// Which process holds it, as far as known.
        holder: String,
    },
    /// The file of the lock is not one that this process may write into.
    #[error(
        "data directory {}: `lock` is not a plain file, and what it leads to is left alone; find \
         out who put it there, and remove it",
        .0.display()
    )]
    LockNotAFile(PathBuf),
    /// The operating system said no otherwise.
    #[error("data directory {}: {source}", .dir.display())]
    Io {
        /// The directory.
        dir: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
}

/// A data directory that belongs to this process until it is dropped.
#[derive(Debug)]
pub struct DirLock {
    /// Closing it gives the lock back, also if the process is killed.
    _file: fs::File,
}

/// Makes the directory if it is missing, and takes it for this process.
pub fn open_dir(dir: &Path) -> Result<(RealDisk, DirLock), DirError> {
    if !dir.exists() {
        make_dir(dir).map_err(|source| explain(dir, source))?;
    }
    if !dir.is_dir() {
        return Err(DirError::NotADirectory(dir.to_owned()));
    }
    let lock = DirLock::take(dir)?;
    let disk = RealDisk::open(dir).map_err(|source| explain(dir, source))?;
    Ok((disk, lock))
}

impl DirLock {
    /// Takes a directory that exists; does not wait for it.
    pub fn take(dir: &Path) -> Result<DirLock, DirError> {
        let opened = fs::File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(FILE_MODE)
            // A link would let whoever made it have another file overwritten, and a pipe has no
            // end.
            .custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed())
            .open(dir.join(LOCK_NAME));
        let mut file = opened.map_err(|source| match Errno::from_io_error(&source) {
            Some(Errno::LOOP) => DirError::LockNotAFile(dir.to_owned()),
            _ => explain(dir, source),
        })?;
        if !file.metadata().map_err(|source| explain(dir, source))?.is_file() {
            return Err(DirError::LockNotAFile(dir.to_owned()));
        }
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => {
                let holder = holder(&mut file);
                return Err(DirError::InUse { dir: dir.to_owned(), holder });
            }
            Err(error) => return Err(explain(dir, error.into())),
        }
        note_holder(&mut file).map_err(|source| explain(dir, source))?;
        Ok(DirLock { _file: file })
    }
}

/// Makes the directory for this user alone, durable before anything is put into it.
fn make_dir(dir: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(DIR_MODE).create(dir)?;
    match dir.parent() {
        Some(parent) if parent.as_os_str().is_empty() => fs::File::open(".")?.sync_all(),
        Some(parent) => fs::File::open(parent)?.sync_all(),
        None => Ok(()),
    }
}

/// Writes the process id, for a process that finds the directory taken.
fn note_holder(file: &mut fs::File) -> io::Result<()> {
    file.set_len(0)?;
    writeln!(file, "{}", std::process::id())
}

fn holder(file: &mut fs::File) -> String {
    let mut text = String::new();
    let id =
        file.take(20).read_to_string(&mut text).ok().and_then(|_| text.trim().parse::<u32>().ok());
    id.map_or_else(|| "another process".to_owned(), |id| format!("process {id}"))
}

fn explain(dir: &Path, source: io::Error) -> DirError {
    let dir = dir.to_owned();
    match source.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            DirError::NotWritable { dir, source }
        }
        io::ErrorKind::NotADirectory => DirError::NotADirectory(dir),
        _ => DirError::Io { dir, source },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::Disk;

    #[test]
    fn a_missing_directory_is_made_and_taken_once() {
        let parent = tempfile::tempdir().unwrap();
        let dir = parent.path().join("a").join("b");
        let (disk, lock) = open_dir(&dir).unwrap();
        assert_eq!(disk.list().unwrap(), [LOCK_NAME]);
        let error = open_dir(&dir).unwrap_err().to_string();
        let holder = format!("process {}", std::process::id());
        assert!(error.contains(&dir.display().to_string()) && error.contains(&holder), "{error}");
        drop(lock);
        open_dir(&dir).unwrap();
    }

    #[test]
    fn a_file_is_no_directory() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("file");
        fs::write(&path, "").unwrap();
        for path in [path.clone(), path.join("below")] {
            assert!(matches!(open_dir(&path), Err(DirError::NotADirectory(_))), "{path:?}");
        }
    }

    #[test]
    fn a_lock_that_leads_elsewhere_is_refused() {
        let parent = tempfile::tempdir().unwrap();
        let (dir, precious) = (parent.path().join("dir"), parent.path().join("precious"));
        fs::create_dir(&dir).unwrap();
        fs::write(&precious, "precious").unwrap();
        for target in [precious.clone(), parent.path().join("missing")] {
            std::os::unix::fs::symlink(&target, dir.join(LOCK_NAME)).unwrap();
            assert!(matches!(open_dir(&dir), Err(DirError::LockNotAFile(_))), "{target:?}");
            fs::remove_file(dir.join(LOCK_NAME)).unwrap();
        }
        assert_eq!(fs::read_to_string(&precious).unwrap(), "precious");
        assert!(!parent.path().join("missing").exists());
    }

    #[test]
    fn a_directory_of_others_is_refused_with_the_fix() {
        let dir = Path::new("/some/where");
        let source = io::Error::from(io::ErrorKind::PermissionDenied);
        let error = explain(dir, source).to_string();
        assert!(error.contains("/some/where") && error.contains("user that runs"), "{error}");
    }
}
