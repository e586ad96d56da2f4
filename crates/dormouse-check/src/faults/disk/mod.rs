//! A disk in memory that behaves as badly as a real one may.
//!
//! It promises what [`dormouse_disk::disk`] says and no more: data survives a power cut after
//! `File::sync`, a name after `Disk::sync_dir`. Unsynced data survives in part, out of order,
//! with torn sectors and holes; a name may survive without the data of its file. Two things it does
//! not do, as no store could live with them: it harms no byte that was synced, and it keeps the
//! order of directory operations.
//!
//! [`SimDisk`] is the hand of the test: it goes on after a crash. The store gets a [`Mounted`] disk
//! ([`SimDisk::mount`]), which is dead after the crash together with its open files, so that no
//! left-over thread of the old store can touch the new one's files.

// A simulation is the same each time.
#![warn(clippy::disallowed_methods)]

mod crash;
mod fault;
mod handle;
mod node;
mod state;

#[cfg(test)]
mod tests;

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dormouse_disk::disk::{Disk, File};

pub use self::crash::CrashMode;
pub use self::fault::{FailKind, power_is_off};
pub use self::handle::Mounted;
use self::state::State;
use crate::generate::rng::Rng;

/// The whole state of a disk, to go back to.
#[derive(Clone, Debug)]
pub struct Snapshot(State);

/// A simulated disk; clones are the same disk.
#[derive(Clone, Debug, Default)]
pub struct SimDisk {
    state: Arc<Mutex<State>>,
}

impl SimDisk {
    /// An empty disk with plenty of room.
    pub fn new() -> SimDisk {
        SimDisk::default()
    }

    /// The disk as a store sees it, until the next crash.
    pub fn mount(&self) -> Mounted {
        Mounted { disk: self.clone(), boot: self.lock().boot }
    }

    /// Stops the machine, or only the process, and starts it again: every open file and every
    /// mounted disk is dead from now on. Faults that were set are over.
    pub fn crash(&self, mode: CrashMode, rng: &mut Rng) {
        self.lock().crash(mode, rng);
    }

    /// Mutating calls so far: create, write, sync, rename, remove, sync_dir.
    pub fn calls(&self) -> u64 {
        self.lock().calls
    }

    /// The last mutating call, for messages of tests.
    pub fn last_call(&self) -> String {
        self.lock().last_call.clone()
    }

    /// Lets the `call`-th mutating call fail, counted like [`SimDisk::calls`] (the next call is
    /// `calls() + 1`), and if `forever` every one after it. A failed write may have written a part.
    /// A failed sync loses what it should have made durable, though it stays readable, and the next
    /// sync succeeds without it.
    pub fn fail_call(&self, call: u64, kind: FailKind, forever: bool) {
        self.lock().faults.fail_call(call, kind, forever);
    }

    /// Lets the power go off at the `call`-th mutating call: it does nothing, and from then on
    /// every call fails (see [`power_is_off`]) until [`SimDisk::crash`].
    pub fn crash_at_call(&self, call: u64) {
        self.lock().faults.power_off_at = Some(call);
    }

    /// Whether the power went off.
    pub fn is_off(&self) -> bool {
        self.lock().faults.off
    }

    /// Ends all faults that were set, without a crash.
    pub fn clear_faults(&self) {
        self.lock().faults = fault::Faults::default();
    }

    /// Sets the room that is left. Growing files use it up, and then writes fail.
    pub fn set_free_bytes(&self, bytes: u64) {
        self.lock().free_bytes = bytes;
    }

    /// All that there is, synced and not.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot(self.lock().clone())
    }

    /// Goes back; open files and mounted disks are dead from now on.
    pub fn restore(&self, snapshot: &Snapshot) {
        let mut state = self.lock();
        let boot = state.boot + 1;
        *state = snapshot.0.clone();
        state.boot = boot;
    }

    /// All names, sorted.
    pub fn names(&self) -> Vec<String> {
        self.lock().names.keys().cloned().collect()
    }

    /// A file's content as a reader sees it; `None` if there is no such file.
    pub fn read_all(&self, name: &str) -> Option<Vec<u8>> {
        let mut state = self.lock();
        state.node_named(name).map(|node| node.cached.clone())
    }

    /// Makes, or replaces, a file that is durable at once.
    pub fn put_file(&self, name: &str, content: &[u8]) {
        self.lock().put_file(name, content);
    }

    /// Damages every bit of one durable byte; answers whether the file has that byte.
    pub fn flip_byte(&self, name: &str, offset: u64) -> bool {
        self.flip_bits(name, offset, 0xff)
    }

    /// Damages the bits of `mask` in one durable byte; answers whether the file has that byte.
    pub fn flip_bits(&self, name: &str, offset: u64, mask: u8) -> bool {
        let mut state = self.lock();
        state.node_named(name).is_some_and(|node| node.flip(offset as usize, mask))
    }

    /// Cuts a file, durably; answers whether it was longer.
    pub fn truncate(&self, name: &str, len: u64) -> bool {
        let mut state = self.lock();
        state.node_named(name).is_some_and(|node| node.truncate(len as usize))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A test that panicked while it held the lock has failed already.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Disk for SimDisk {
    fn create(&self, name: &str) -> io::Result<Arc<dyn File>> {
        self.mount().create(name)
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn File>> {
        self.mount().open(name)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.mount().rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.mount().remove(name)
    }

    fn list(&self) -> io::Result<Vec<String>> {
        self.mount().list()
    }

    fn sync_dir(&self) -> io::Result<()> {
        self.mount().sync_dir()
    }

    fn free_bytes(&self) -> io::Result<u64> {
        self.mount().free_bytes()
    }
}
