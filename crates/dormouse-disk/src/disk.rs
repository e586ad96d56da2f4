//! The seam to the file system: everything the store asks of a directory, and nothing more.
//!
//! The real one is below. The simulated one (in dormouse-check) loses, tears and reorders what was
//! not synced and fails on demand, so the rules here are the rules the simulation knows:
//! data survives a power cut after `File::sync`; a created or renamed name after `Disk::sync_dir`.

use std::fs;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

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

/// A directory of the operating system.
#[derive(Debug)]
pub struct RealDisk {
    dir: PathBuf,
    handle: fs::File,
}

impl RealDisk {
    /// Opens a directory that exists.
    pub fn open(dir: &Path) -> io::Result<RealDisk> {
        Ok(RealDisk { dir: dir.to_owned(), handle: fs::File::open(dir)? })
    }
}

impl Disk for RealDisk {
    fn create(&self, name: &str) -> io::Result<Arc<dyn File>> {
        let file = fs::File::options()
            .read(true)
            .write(true)
            .create_new(true)
            .open(self.dir.join(name))?;
        Ok(Arc::new(file))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn File>> {
        Ok(Arc::new(fs::File::open(self.dir.join(name))?))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.dir.join(from), self.dir.join(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.dir.join(name))
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.dir)? {
            let entry = entry?;
            // A directory is not ours (it may be a backup), nor is a name that is not
            // UTF-8.
            if let Ok(name) = entry.file_name().into_string()
                && !entry.file_type()?.is_dir()
            {
                names.push(name);
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
