//! From names to addresses.

use std::future::Future;
use std::io;
use std::net::{IpAddr, ToSocketAddrs as _};
use std::pin::Pin;
use std::sync::Arc;

use tokio::sync::Semaphore;

/// Look-ups at a time: one that hangs takes a thread until the system gives up.
const LOOKUPS_MAX: usize = 64;

/// A look-up under way.
pub type Lookup<'a> = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send + 'a>>;

/// Resolves names. Tests bring one that changes its mind.
pub trait Resolver: Send + Sync {
    /// All addresses of a name.
    fn resolve(&self, name: Arc<str>) -> Lookup<'_>;
}

/// As the operating system does: hosts file and name service.
pub struct SystemResolver {
    lookups: Arc<Semaphore>,
}

impl Default for SystemResolver {
    fn default() -> SystemResolver {
        SystemResolver { lookups: Arc::new(Semaphore::new(LOOKUPS_MAX)) }
    }
}

impl Resolver for SystemResolver {
    fn resolve(&self, name: Arc<str>) -> Lookup<'_> {
        Box::pin(async move {
            let lookup = Arc::clone(&self.lookups).acquire_owned().await;
            let lookup = lookup.map_err(io::Error::other)?;
            let resolve = move || {
                // Held until the thread is free again, even if nobody waits for it any more.
                let _lookup = lookup;
                let addresses = (&*name, 0).to_socket_addrs()?;
                Ok(addresses.map(|addr| addr.ip()).collect())
            };
            tokio::task::spawn_blocking(resolve).await.map_err(io::Error::other)?
        })
    }
}
