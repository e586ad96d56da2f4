//! A disk whose syncs can be held back, or made to fail.

use std::io;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};

use dormouse_disk::disk::{Disk, File, RealDisk};

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gate {
    Open,
    /// Syncs wait.
    Shut,
    /// Syncs fail.
    Broken,
}

#[derive(Clone)]
pub(crate) struct GateDisk {
    inner: Arc<RealDisk>,
    gate: Arc<(Mutex<Gate>, Condvar)>,
}

struct GateFile {
    inner: Arc<dyn File>,
    gate: Arc<(Mutex<Gate>, Condvar)>,
}

impl GateDisk {
    pub(crate) fn new(dir: &Path) -> GateDisk {
        let inner = Arc::new(RealDisk::open(dir).unwrap());
        GateDisk { inner, gate: Arc::new((Mutex::new(Gate::Open), Condvar::new())) }
    }

    pub(crate) fn set(&self, gate: Gate) {
        *self.gate.0.lock().unwrap() = gate;
        self.gate.1.notify_all();
    }

    fn file(&self, inner: Arc<dyn File>) -> Arc<dyn File> {
        Arc::new(GateFile { inner, gate: Arc::clone(&self.gate) })
    }
}

impl Disk for GateDisk {
    fn create(&self, name: &str) -> io::Result<Arc<dyn File>> {
        Ok(self.file(self.inner.create(name)?))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn File>> {
        Ok(self.file(self.inner.open(name)?))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.inner.rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.inner.remove(name)
    }

    fn list(&self) -> io::Result<Vec<String>> {
        self.inner.list()
    }

    fn sync_dir(&self) -> io::Result<()> {
        self.inner.sync_dir()
    }

    fn free_bytes(&self) -> io::Result<u64> {
        self.inner.free_bytes()
    }
}

impl File for GateFile {
    fn write_at(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.inner.write_at(offset, data)
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.inner.read_at(offset, into)
    }

    fn sync(&self) -> io::Result<()> {
        let gate = self.gate.0.lock().unwrap();
        let gate = self.gate.1.wait_while(gate, |gate| *gate == Gate::Shut).unwrap();
        match *gate {
            Gate::Broken => Err(io::Error::other("the drive gave up")),
            Gate::Open | Gate::Shut => self.inner.sync(),
        }
    }

    fn forget_cached(&self) -> io::Result<()> {
        self.inner.forget_cached()
    }

    fn len(&self) -> io::Result<u64> {
        self.inner.len()
    }
}
