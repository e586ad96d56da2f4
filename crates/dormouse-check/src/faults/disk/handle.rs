//! The store's view: a mounted disk and its open files, alive until the next crash.

use std::io;
use std::sync::{Arc, MutexGuard};

use dormouse_disk::disk::{Disk, File};

use super::SimDisk;
use super::state::{NodeNo, State};

/// A simulated disk from one start to the next crash.
#[derive(Clone, Debug)]
pub struct Mounted {
    pub(super) disk: SimDisk,
    pub(super) boot: u64,
}

struct SimFile {
    mounted: Mounted,
    node: NodeNo,
}

impl Mounted {
    fn state(&self) -> io::Result<MutexGuard<'_, State>> {
        let state = self.disk.lock();
        state.check_alive(self.boot)?;
        Ok(state)
    }

    fn file(&self, state: &mut State, node: NodeNo) -> Arc<dyn File> {
        state.opened(node);
        Arc::new(SimFile { mounted: self.clone(), node })
    }
}

impl Disk for Mounted {
    fn create(&self, name: &str) -> io::Result<Arc<dyn File>> {
        let mut state = self.state()?;
        let node = state.create(name)?;
        Ok(self.file(&mut state, node))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn File>> {
        let mut state = self.state()?;
        let node = state.find(name)?;
        Ok(self.file(&mut state, node))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.state()?.rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.state()?.remove(name)
    }

    fn list(&self) -> io::Result<Vec<String>> {
        Ok(self.state()?.names.keys().cloned().collect())
    }

    fn sync_dir(&self) -> io::Result<()> {
        self.state()?.sync_dir()
    }

    fn free_bytes(&self) -> io::Result<u64> {
        Ok(self.state()?.free_bytes)
    }
}

impl File for SimFile {
    fn write_at(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.mounted.state()?.write(self.node, offset as usize, data)
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        let state = self.mounted.state()?;
        let content = &state.node(self.node)?.cached;
        let from = content.get(offset as usize..).unwrap_or_default();
        let Some(found) = from.get(..into.len()) else {
            return Err(io::ErrorKind::UnexpectedEof.into());
        };
        into.copy_from_slice(found);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        self.mounted.state()?.sync(self.node)
    }

    fn forget_cached(&self) -> io::Result<()> {
        self.mounted.state()?.forget_cached(self.node)
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.mounted.state()?.node(self.node)?.cached.len() as u64)
    }
}

impl Drop for SimFile {
    /// Closing makes nothing durable; it only lets a removed file go.
    fn drop(&mut self) {
        self.mounted.disk.lock().closed(self.mounted.boot, self.node);
    }
}
