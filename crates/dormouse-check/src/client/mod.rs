//! Raw clients of the protocols, and each protocol as a `Backend`, so that whatever proves a
//! backend proves the server as well.

pub mod http;
pub mod resp;
