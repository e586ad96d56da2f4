//! Raw clients of the protocols, and each protocol as a `Backend`, so that whatever proves a
//! backend proves the server as well.

mod backend;
pub mod http;
mod ordered;
mod park_observer;
mod pool;
pub mod resp;
mod waiting;

pub use ordered::Ordered;
pub use park_observer::ParkObserver;
