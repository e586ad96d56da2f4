//! The seam to the file system: everything the store asks of a directory, and nothing more.
//!
//! The real one is below. The simulated one (in dormouse-check) loses, tears and reorders what was
//! not synced and fails on demand, so the rules here are the rules the simulation knows:
//! data survives a power cut after `File::sync`; a created or renamed name after `Disk::sync_dir`.

use std::fs;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, openat, renameat, statat, unlinkat};

/// A flat directory of files. Names are plain file names.
pub trait Disk: Send + Sync {
    /// Makes a new, empty file; an error if the name exists.
    fn create(&self, name: &str) -> io::Result<Arc<dyn File>>;
    /// Opens a file for reading and for `sync`.
    fn open(&self, name: &str) -> io::Result<Arc<dyn File>>;
    /// Renames a file, replacing any file that has the new name.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    /// Removes a file. Readers that have it open may go on.
    fn remove(&self, name: &str) -> io::Result<()>;
    /// The names of all files, in no order.
    fn list(&self) -> io::Result<Vec<String>>;
    /// Makes creates, renames and removes durable.
    fn sync_dir(&self) -> io::Result<()>;
    /// Bytes that can still be written.
    fn free_bytes(&self) -> io::Result<u64>;
}

/// An open file. Writers append at offsets they keep themselves.
pub trait File: Send + Sync {
    /// Writes all of `data` at `offset`.
    fn write_at(&self, offset: u64, data: &[u8]) -> io::Result<()>;
    /// Fills `into` from `offset`; an end of file before that is an error (`UnexpectedEof`).
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()>;
    /// Makes what was written durable (fdatasync).
    fn sync(&self) -> io::Result<()>;
    /// Lets the next read come from the drive. After a failed sync the page cache shows bytes that
    /// no later sync will write; to know what is durable, sync, forget, then read.
    fn forget_cached(&self) -> io::Result<()>;
    /// The file's length.
    fn len(&self) -> io::Result<u64>;
    /// Whether the file has no bytes.
    fn is_empty(&self) -> io::Result<bool> {
        self.len().map(|len| len == 0)
    }
}

/// What this user alone may read and write, whatever the umask.
pub(crate) const FILE_MODE: u32 = 0o600;
/// What this user alone may enter.
pub(crate) const DIR_MODE: u32 = 0o700;

/// A directory of the operating system. It is opened once, and its files by that handle: the path
/// may lead elsewhere later.
#[derive(Debug)]
pub struct RealDisk {
    handle: fs::File,
}

impl RealDisk {
    /// Opens a directory that exists.
    pub fn open(dir: &Path) -> io::Result<RealDisk> {
        fs::File::open(dir).map(RealDisk::new)
    }

    pub(crate) fn new(handle: fs::File) -> RealDisk {
        RealDisk { handle }
    }

    fn open_at(&self, name: &str, flags: OFlags) -> io::Result<Arc<dyn File>> {
        let mode = Mode::from_raw_mode(FILE_MODE);
        let opened = openat(&self.handle, name, flags | OFlags::CLOEXEC, mode)?;
        Ok(Arc::new(fs::File::from(opened)))
    }
}

impl Disk for RealDisk {
    fn create(&self, name: &str) -> io::Result<Arc<dyn File>> {
        // An exclusive create follows no symbolic link.
        self.open_at(name, OFlags::RDWR | OFlags::CREATE | OFlags::EXCL)
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn File>> {
        self.open_at(name, OFlags::RDONLY)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        Ok(renameat(&self.handle, from, &self.handle, to)?)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        Ok(unlinkat(&self.handle, name, AtFlags::empty())?)
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.handle)? {
            let entry = entry?;
            let kind = match entry.file_type() {
                FileType::Unknown => {
                    let stat = statat(&self.handle, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW)?;
                    FileType::from_raw_mode(stat.st_mode)
                }
                kind => kind,
            };
            // A directory is not ours (it may be a backup), nor is a name that is not
            // UTF-8.
            if let Ok(name) = entry.file_name().to_str()
                && kind != FileType::Directory
            {
                names.push(name.to_owned());
            }
        }
        Ok(names)
    }

    fn sync_dir(&self) -> io::Result<()> {
        self.handle.sync_all()
    }

    fn free_bytes(&self) -> io::Result<u64> {
        let stat = rustix::fs::fstatvfs(&self.handle)?;
        Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
    }
}

impl File for fs::File {
    fn write_at(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.write_all_at(data, offset)
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.read_exact_at(into, offset)
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_data()
    }

    fn forget_cached(&self) -> io::Result<()> {
        rustix::fs::fadvise(self, 0, None, rustix::fs::Advice::DontNeed)?;
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        self.metadata().map(|metadata| metadata.len())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn files_belong_to_the_directory_that_was_opened() {
        let parent = tempfile::tempdir().unwrap();
        let (dir, moved) = (parent.path().join("dir"), parent.path().join("moved"));
        fs::create_dir_all(dir.join("backups")).unwrap();
        let disk = RealDisk::open(&dir).unwrap();
        fs::rename(&dir, &moved).unwrap();
        fs::create_dir(&dir).unwrap();
        disk.create("a").unwrap().write_at(0, b"x").unwrap();
        disk.rename("a", "b").unwrap();
        disk.sync_dir().unwrap();
        assert_eq!(disk.open("b").unwrap().len().unwrap(), 1);
        assert_eq!(disk.list().unwrap(), ["b"]);
        assert_eq!(fs::metadata(moved.join("b")).unwrap().permissions().mode() & 0o777, FILE_MODE);
        disk.remove("b").unwrap();
        assert!(disk.list().unwrap().is_empty());
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 0);
    }

    #[test]
    fn a_new_file_is_not_made_through_a_link() {
        let dir = tempfile::tempdir().unwrap();
        let precious = dir.path().join("precious");
        std::os::unix::fs::symlink(&precious, dir.path().join("a")).unwrap();
        let disk = RealDisk::open(dir.path()).unwrap();
        assert!(disk.create("a").is_err_and(|error| error.kind() == io::ErrorKind::AlreadyExists));
        assert!(!precious.exists());
    }
}
