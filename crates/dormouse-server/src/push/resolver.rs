//! From names to addresses.

use std::future::Future;
use std::io;
use std::net::{IpAddr, ToSocketAddrs as _};
use std::pin::Pin;
use std::sync::Arc;

/// A look-up under way.
pub type Lookup<'a> = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send + 'a>>;

/// Resolves names. Tests bring one that changes its mind.
pub trait Resolver: Send + Sync {
    /// All addresses of a name. A few look-ups at a time are asked for, of different names.
    fn resolve(&self, name: Arc<str>) -> Lookup<'_>;
}

/// As the operating system does: hosts file and name service.
#[derive(Default)]
pub struct SystemResolver {}

impl Resolver for SystemResolver {
    fn resolve(&self, name: Arc<str>) -> Lookup<'_> {
        Box::pin(async move {
            let resolve = move || {
                let addresses = (&*name, 0).to_socket_addrs()?;
                Ok(addresses.map(|addr| addr.ip()).collect())
            };
            tokio::task::spawn_blocking(resolve).await.map_err(io::Error::other)?
        })
    }
}
