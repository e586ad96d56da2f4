//! Push: the server delivers the jobs of a topic to a URL.
//!
//! ```text
//!   supervisor -> consumer (one per topic) -> deliver -> request, connect, pool, answer
//!                   |  reserve from the backend             |  resolver, address, tls
//!                   |  breakers, room                       v
//!                   +---- ending <------------------- what the answer does
//! ```
//! A push is a consumer inside the server: a lease is an attempt, 2xx is an ack, everything else a
//! nack. So retries, dead letters and fencing are those of every other job. ARCHITECTURE.md has
//! the invariants.

mod address;
mod answer;
mod breaker;
mod breakers;
mod clock;
mod connect;
mod consumer;
mod deliver;
mod ending;
mod feed;
mod load;
mod lookups;
mod pool;
mod printable;
mod record;
mod request;
mod resolver;
mod retry_after;
mod room;
mod secret;
mod settings;
mod signature;
mod status;
mod store;
mod supervisor;
mod tls;
mod url;

pub use address::{AddressRules, Allowed, Cidr, Refusal};
pub use breaker::BreakerTiming;
pub use deliver::PushTest;
pub(crate) use record::{PushFields, PushRecord};
pub(crate) use request::URL_HEADER;
pub use resolver::{Lookup, Resolver, SystemResolver};
pub use secret::{MasterKey, Secret};
pub use settings::{Generations, PushHeaders, PushSettings, Retiring};
pub use status::{PushState, PushStatus};
pub(crate) use store::{PushStore, PutPushCode};
pub(crate) use supervisor::Supervisor;
pub use supervisor::{PushHandle, PushOptions, PushTopics};
pub use tls::CaFileError;
pub use url::{Host, PushUrl, Scheme, UrlPattern};
