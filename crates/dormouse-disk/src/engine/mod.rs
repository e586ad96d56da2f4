//! The engine: rules and store behind one lock, and threads that wait, sync, flush and merge.
//!
//! ```text
//!  callers --push--> inbox --> turn: step*, tick, seal --> outbox --> sinks
//!     |                ^          |            |             ^
//!     +--- drive ------+----------+     sync thread: write, fdatasync
//!                      |
//!   engine thread: timers and long work;   flush thread, merge thread: tasks
//! ```
//! The thread that comes with a request takes the turn itself if the state is free (`control`), and
//! leaves it to whoever has the state if not. While the sync thread syncs batch N, requests become
//! batch N+1. Answers to mutations leave after their batch is as durable as promised, answers to
//! reserve and extend at once. The first failed write or sync stops everything.

mod batch_writer;
mod control;
mod disk;
mod inbox;
mod memory;
mod meters;
mod outbox;
mod parked;
mod relaxed;
mod sync;
mod termination;
mod thread;
mod turn;
mod turn_times;
mod virtual_time;
mod worker;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use dormouse_core::backend::{Backend, Request, Sink};
use dormouse_core::error::{Error, Fatal};
use dormouse_core::event::Watcher;
use dormouse_core::meter::Meter;

use crate::backup::{self, BackupReport};
use crate::clock::{SystemClock, TimeSource};
use crate::disk::Disk;
use crate::lock::{DirLock, open_dir};
pub use crate::store::{OpenError, Sizes};

use crate::store::{BackupRequest, TaskResult};
use control::Control;
use inbox::Submission;
use meters::{DiskMeters, RuleMeters};
use termination::Termination;
use turn::{EngineState, Storage};

/// What an answered mutation survives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// Kill, crash of the operating system, power cut.
    #[default]
    Synced,
    /// Kill; a crash of the operating system loses at most what was answered in the last `ms`.
    Relaxed {
        /// Longest time between two syncs.
        ms: u64,
    },
}

/// How to open an engine.
#[derive(Clone)]
pub struct Options {
    /// How durable an answered mutation is.
    pub durability: Durability,
    /// Where time comes from.
    pub clock: Arc<dyn TimeSource>,
    /// Sizes of the store.
    pub sizes: Sizes,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            durability: Durability::Synced,
            clock: Arc::new(SystemClock),
            sizes: Sizes::default(),
        }
    }
}

/// A message of another thread to the engine thread.
enum Report {
    /// A task ended.
    Task(TaskResult),
    /// Somebody wants a backup.
    Backup(BackupRequest),
    /// Something failed: the store stops.
    Failed(Fatal),
}

/// A handle to a running engine; cheap to clone. Dropping the last one closes it.
#[derive(Clone)]
pub struct Engine {
    shared: Arc<Shared>,
}

struct Shared {
    control: Arc<Control>,
    rule_meters: Arc<RuleMeters>,
    /// Only with files.
    disk_meters: Option<Arc<DiskMeters>>,
    /// Only on a directory.
    dir: Option<PathBuf>,
    ended: Arc<Termination>,
}

impl Engine {
    /// Opens the store in a directory, which is made if it is missing.
    pub fn open(dir: &Path, options: Options) -> Result<Engine, OpenError> {
        let (disk, lock) = open_dir(dir)?;
        // A change of the working directory must not move the source of backups.
        let dir = std::path::absolute(dir).unwrap_or_else(|_| dir.to_owned());
        Engine::open_locked(Arc::new(disk), Some((dir, lock)), options)
    }

    /// Opens the store on any disk.
    pub fn open_on(disk: Arc<dyn Disk>, options: Options) -> Result<Engine, OpenError> {
        Engine::open_locked(disk, None, options)
    }

    fn open_locked(
        disk: Arc<dyn Disk>,
        place: Option<(PathBuf, DirLock)>,
        options: Options,
    ) -> Result<Engine, OpenError> {
        let control = Arc::new(Control::new());
        let (dir, lock) = place.unzip();
        let storage = disk::DiskStorage::open(disk, lock, &options, &control)?;
        let meters = storage.meters();
        Ok(Engine::start(control, Box::new(storage), options.clock, Some((meters, dir))))
    }

    /// An engine that keeps everything in memory.
    pub fn memory(options: Options) -> Engine {
        let control = Arc::new(Control::new());
        let watch = Arc::clone(&control.watch);
        let storage = memory::MemoryStorage::new(options.clock.as_ref(), watch);
        Engine::start(control, Box::new(storage), options.clock, None)
    }

    fn start(
        control: Arc<Control>,
        storage: Box<dyn Storage>,
        clock: Arc<dyn TimeSource>,
        files: Option<(Arc<DiskMeters>, Option<PathBuf>)>,
    ) -> Engine {
        let nudged = Arc::downgrade(&control);
        clock.on_change(Arc::new(move || {
            if let Some(control) = nudged.upgrade() {
                control.inbox.wake();
            }
        }));
        let rule_meters = Arc::new(RuleMeters::new());
        control.install(EngineState::new(storage, clock, Arc::clone(&rule_meters)));
        let ended = Arc::new(Termination::default());
        let (driven, told) = (Arc::clone(&control), Arc::clone(&ended));
        worker::spawn("dormouse-engine", move || {
            let how = thread::run(&driven);
            // Everything is released, the directory too, before waiting threads learn of it.
            told.set(how);
        });
        let (disk_meters, dir) = files.unzip();
        let dir = dir.flatten();
        Engine { shared: Arc::new(Shared { control, rule_meters, disk_meters, dir, ended }) }
    }

    /// Finishes what is in flight, syncs, seals and ends. Later requests get `unavailable`. The
    /// answer is the first failure the store had, if any.
    pub fn close(&self) -> Result<(), Error> {
        self.shared.close()
    }

    /// Waits until the engine has ended, by a failure or because somebody closed it; does not close
    /// it. The answer is the first failure the store had, if any.
    pub fn wait_stopped(&self) -> Result<(), Error> {
        if worker::is_own_thread() {
            return Err(Error::invalid(
                "a thread of an engine cannot wait for its end; wait on one of your own",
            ));
        }
        Ok(self.shared.ended.wait()?)
    }
}

impl Engine {
    /// Makes a backup of the store, which goes on meanwhile, in a directory that is missing or
    /// empty: a store of its own that holds everything answered before this call. Blocks until it
    /// is durable. A backup that fails leaves nothing behind and stops nothing.
    pub fn backup(&self, target: &Path) -> Result<BackupReport, Error> {
        if worker::is_own_thread() {
            return Err(Error::invalid(
                "a thread of an engine cannot wait for a backup; ask on one of your own",
            ));
        }
        let Some(dir) = &self.shared.dir else {
            return Err(Error::invalid(
                "this engine has no directory, so there is nothing to back up; open one on a \
                 directory",
            ));
        };
        backup::backup(dir, target, |wanted| self.shared.control.inbox.ask(Report::Backup(wanted)))
    }
}

impl Backend for Engine {
    fn submit(&self, batch: Vec<Request>, sink: Arc<dyn Sink>) -> Result<(), Error> {
        self.defer(batch, sink)?;
        self.drive();
        Ok(())
    }

    fn defer(&self, batch: Vec<Request>, sink: Arc<dyn Sink>) -> Result<(), Error> {
        self.shared.control.inbox.push(Submission { requests: batch, sink })
    }

    fn drive(&self) {
        self.shared.control.drive();
    }

    fn watch(&self, watcher: Option<Arc<dyn Watcher>>) {
        self.shared.control.watch.set(watcher);
    }

    fn meters(&self) -> Vec<Meter> {
        let mut meters = vec![meters::inbox_requests(self.shared.control.inbox.requests())];
        meters.extend(self.shared.rule_meters.read());
        meters.extend(self.shared.rule_meters.turns.read());
        meters.extend(self.shared.disk_meters.iter().flat_map(|meters| meters.read()));
        meters
    }
}

impl Shared {
    fn close(&self) -> Result<(), Error> {
        self.control.inbox.close();
        if worker::is_own_thread() {
            // A sink dropped the last handle, or closes, on a thread that would wait for itself.
            // It ends by itself, and gives the directory back then.
            return Ok(());
        }
        Ok(self.ended.wait()?)
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // Every request has been answered with the failure; nobody is left to hear it here.
        let _ = self.close();
    }
}
