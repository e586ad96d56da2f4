//! Where the jobs of a server are kept: opened, watched, closed.

use std::sync::{Arc, Mutex, PoisonError};

use dormouse_core::backend::Backend;
use dormouse_core::error::Error;
use dormouse_disk::clock::{SystemClock, TimeSource as _, VirtualClock};
use dormouse_disk::engine::{Engine, Options as EngineOptions};
use dormouse_disk::store::Sizes;
use dormouse_redis::{Options as RedisOptions, RedisBackend};
use dormouse_server::TestClock;
use tokio::sync::oneshot;
use tokio::task::spawn_blocking;

use crate::command::config::{BackendKind, Settings};
use crate::exit::Failure;

/// A store that is open.
pub(in crate::command) enum Store {
    /// In files or in memory of this process; in memory perhaps with a clock for tests.
    Engine(Engine, Option<VirtualClock>),
    /// In Redis.
    Redis(Arc<RedisBackend>),
}

impl Store {
    /// Opens the store. It may have to read a lot, so other things go on meanwhile.
    pub(super) async fn open(settings: &Settings) -> Result<Store, Failure> {
        let settings = settings.clone();
        match spawn_blocking(move || open(&settings)).await {
            Ok(opened) => opened,
            Err(error) => Err(Failure::new(format!("opening the store: {error}"))),
        }
    }

    /// The backend to serve.
    pub(in crate::command) fn backend(&self) -> Arc<dyn Backend> {
        match self {
            Store::Engine(engine, _) => Arc::new(engine.clone()),
            Store::Redis(backend) => backend.clone(),
        }
    }

    /// The engine, if this process has one.
    pub(super) fn engine(&self) -> Option<&Engine> {
        match self {
            Store::Engine(engine, _) => Some(engine),
            Store::Redis(_) => None,
        }
    }

    /// Moves the clock, if it is one for tests.
    pub(super) fn test_clock(&self) -> Option<Box<TestClock>> {
        let Store::Engine(engine, Some(clock)) = self else { return None };
        let (engine, clock) = (engine.clone(), clock.clone());
        // One after the other: each moves from instant to instant.
        let moving = Mutex::new(());
        Some(Box::new(move |by| {
            let _moving = moving.lock().unwrap_or_else(PoisonError::into_inner);
            engine.advance(&clock, by)?;
            Ok(clock.read().wall_ms)
        }))
    }

    /// Waits on a thread of its own until the store has stopped. A Redis that is down may come
    /// again, so it never has.
    pub(in crate::command) fn watch(&self) -> Stopped {
        let (sender, reason) = oneshot::channel();
        let Store::Engine(engine, _) = self else { return Stopped { reason, keep: Some(sender) } };
        let engine = engine.clone();
        let wait = move || {
            let why = match engine.wait_stopped() {
                Ok(()) => Error::unavailable("it was closed"),
                Err(error) => error,
            };
            // At a normal stop the receiver is gone.
            let _ = sender.send(why);
        };
        let spawned = std::thread::Builder::new().name("dormouse-watch".to_owned()).spawn(wait);
        if let Err(error) = spawned {
            // The sender is gone with the thread: the receiver sees it as a store that has stopped.
            tracing::error!("cannot start a thread: {error}");
        }
        Stopped { reason, keep: None }
    }

    /// Finishes operations in progress and closes the store.
    pub(in crate::command) fn close(self) -> Result<(), Error> {
        match self {
            Store::Engine(engine, _) => engine.close(),
            Store::Redis(backend) => {
                backend.close();
                Ok(())
            }
        }
    }
}

/// Reports when and why a store has stopped.
pub(in crate::command) struct Stopped {
    reason: oneshot::Receiver<Error>,
    /// Kept for a store that never stops, so that the receiver waits forever.
    keep: Option<oneshot::Sender<Error>>,
}

impl Stopped {
    pub(in crate::command) async fn why(&mut self) -> Error {
        let _kept = &self.keep;
        let unknown = |_| Error::unavailable("nobody knows why");
        (&mut self.reason).await.unwrap_or_else(unknown)
    }
}

fn open(settings: &Settings) -> Result<Store, Failure> {
    let failed = |error: &dyn std::fmt::Display| Failure::new(error.to_string());
    if settings.backend == BackendKind::Redis {
        let options = RedisOptions {
            level: settings.redis_level.unwrap_or_default(),
            partitions: settings.redis_partitions,
            clock: None,
        };
        let url = settings.redis_url.as_deref().unwrap_or_default();
        let backend = RedisBackend::open(url, options).map_err(|error| failed(&error))?;
        for warning in backend.warnings() {
            tracing::warn!("redis: {warning}");
        }
        return Ok(Store::Redis(Arc::new(backend)));
    }
    let mut options = EngineOptions {
        durability: settings.durability,
        sizes: sizes(settings),
        ..EngineOptions::default()
    };
    if settings.backend == BackendKind::Memory {
        let clock = settings.test_clock.then(|| {
            // Clients reckon absolute times from their own clocks.
            VirtualClock::starting_at(SystemClock.read().wall_ms)
        });
        if let Some(clock) = &clock {
            tracing::warn!("test_clock: time stands still until POST /v1/test/advance moves it");
            options.clock = Arc::new(clock.clone());
        }
        return Ok(Store::Engine(Engine::memory(options), clock));
    }
    let opened = Engine::open(&settings.data, options);
    opened.map(|engine| Store::Engine(engine, None)).map_err(|error| failed(&error))
}

/// The sizes of the store's files; the defaults unless configured.
fn sizes(settings: &Settings) -> Sizes {
    let usual = Sizes::default();
    let memtable_bytes = settings.memtable_bytes.and_then(|bytes| usize::try_from(bytes).ok());
    Sizes {
        memtable_bytes: memtable_bytes.unwrap_or(usual.memtable_bytes),
        segment_bytes: settings.segment_bytes.unwrap_or(usual.segment_bytes),
        ..usual
    }
}
