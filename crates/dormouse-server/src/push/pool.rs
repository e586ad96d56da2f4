//! Connections that wait for their next request, by origin.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::clock::SteadyClock;
use super::connect::Connection;
use crate::limits::{PUSH_CONNECTION_MS_MAX, PUSH_IDLE_MS_MAX};

/// Idle connections. A task closes those that are too old, and ends when there are none.
pub(super) struct Pool {
    clock: SteadyClock,
    /// The most idle connections of all origins.
    max: usize,
    idle: Mutex<Idle>,
}

#[derive(Default)]
struct Idle {
    origins: HashMap<String, Vec<PooledConnection>>,
    count: usize,
    is_swept: bool,
}

/// A connection, and since when it is open.
pub(super) struct PooledConnection {
    pub(super) connection: Connection,
    opened_at_ms: u64,
    idle_since_ms: u64,
}

impl PooledConnection {
    fn is_good(&self, now_ms: u64) -> bool {
        now_ms < self.opened_at_ms + PUSH_CONNECTION_MS_MAX
            && now_ms < self.idle_since_ms + PUSH_IDLE_MS_MAX
            && !self.connection.sender.is_closed()
    }
}

impl Pool {
    pub(super) fn new(clock: SteadyClock, max: usize) -> Pool {
        Pool { clock, max, idle: Mutex::default() }
    }

    /// Notes when a connection was opened.
    pub(super) fn opened(&self, connection: Connection) -> PooledConnection {
        let now_ms = self.clock.now_ms();
        PooledConnection { connection, opened_at_ms: now_ms, idle_since_ms: now_ms }
    }

    /// The connection that was used last: it is the least likely to be closed.
    pub(super) fn take(&self, origin: &str) -> Option<PooledConnection> {
        let now_ms = self.clock.now_ms();
        let mut idle = self.lock();
        let idle = &mut *idle;
        let list = idle.origins.get_mut(origin)?;
        while let Some(pooled) = list.pop() {
            idle.count -= 1;
            if pooled.is_good(now_ms) {
                return Some(pooled);
            }
        }
        idle.origins.remove(origin);
        None
    }

    /// Keeps a connection whose reply was read to its end.
    pub(super) fn give(self: &Arc<Pool>, origin: &str, mut pooled: PooledConnection) {
        pooled.idle_since_ms = self.clock.now_ms();
        let mut idle = self.lock();
        if idle.count >= self.max || !pooled.is_good(pooled.idle_since_ms) {
            return;
        }
        idle.count += 1;
        match idle.origins.get_mut(origin) {
            Some(list) => list.push(pooled),
            None => {
                idle.origins.insert(origin.to_owned(), vec![pooled]);
            }
        }
        if !std::mem::replace(&mut idle.is_swept, true) {
            tokio::spawn(sweep(Arc::downgrade(self), self.clock));
        }
    }

    /// Closes what is too old; says whether something is left.
    fn close_old(&self) -> bool {
        let now_ms = self.clock.now_ms();
        let mut idle = self.lock();
        idle.origins.retain(|_, list| {
            list.retain(|pooled| pooled.is_good(now_ms));
            !list.is_empty()
        });
        idle.count = idle.origins.values().map(Vec::len).sum();
        idle.is_swept = idle.count > 0;
        idle.is_swept
    }

    fn lock(&self) -> MutexGuard<'_, Idle> {
        // Nothing panics while it is held.
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn sweep(pool: Weak<Pool>, clock: SteadyClock) {
    loop {
        tokio::time::sleep_until(clock.at(clock.now_ms() + PUSH_IDLE_MS_MAX)).await;
        match pool.upgrade() {
            Some(pool) if pool.close_old() => {}
            _ => return,
        }
    }
}
