//! One file per script verb: encodes its arguments, decodes its reply. The header of the Lua file
//! of the same name has the layouts.

pub(crate) mod ack;
pub(crate) mod cancel;
pub(crate) mod extend;
pub(crate) mod forecast;
pub(crate) mod get;
pub(crate) mod kick;
pub(crate) mod kill;
pub(crate) mod list;
pub(crate) mod lock;
pub(crate) mod nack;
pub(crate) mod pause;
pub(crate) mod peek;
pub(crate) mod purge;
pub(crate) mod put;
pub(crate) mod reschedule;
pub(crate) mod reserve;
pub(crate) mod reserve_id;
pub(crate) mod revive;
pub(crate) mod stats;
pub(crate) mod target;
#[cfg(test)]
mod tests;

use dormouse_core::error::Error;

/// The decoded result of one item of a request; the outer error is a malformed reply.
pub(crate) type ItemResult<T> = Result<Result<T, Error>, Error>;
