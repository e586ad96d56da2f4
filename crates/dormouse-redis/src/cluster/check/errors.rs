//! Errors of a node that cannot be used, with advice.

use dormouse_core::error::Error;
use redis::{ErrorKind, RedisError};

use super::server::VERSION_NEEDED;
use crate::cluster::opener::Opener;
use crate::cluster::url::Address;

/// The error of the command `what` at a node. It never contains the password, though a server may
/// repeat what it was sent.
pub(in crate::cluster) fn failure(
    opener: &Opener,
    address: &Address,
    what: &str,
    error: &RedisError,
) -> Error {
    let (major, minor) = VERSION_NEEDED;
    let details = error.detail().unwrap_or_default();
    match (error.kind(), error.code().unwrap_or_default()) {
        (ErrorKind::AuthenticationFailed, _) | (_, "WRONGPASS") => Error::invalid(format!(
            "Redis at {address} refuses the user or the password of the URL: it wants \
             redis://user:password@host, or redis://:password@host for the default user, with \
             special characters percent-encoded"
        )),
        (_, "NOAUTH") => Error::invalid(match opener.url.has_password() {
            true => format!("Redis at {address} refuses the password of the URL"),
            false => format!(
                "Redis at {address} wants a password and the URL has none: write \
                 redis://user:password@host, or redis://:password@host for the default user"
            ),
        }),
        (_, "NOPERM") => not_allowed(address, what, details),
        (ErrorKind::Parse | ErrorKind::UnexpectedReturnType, _) => {
            Error::invalid(format!("what answers at {address} is not Redis: check host and port"))
        }
        (ErrorKind::RESP3NotSupported, _) => too_old(address, "older than 6.0"),
        // Some servers repeat the whole HELLO here, with the password.
        (_, "ERR") if details.starts_with("unknown command") => Error::invalid(format!(
            "what answers at {address} does not know {what}: Redis {major}.{minor} or newer is \
             needed"
        )),
        (_, "LOADING") => loading(address),
        (_, "ERR") if opener.url.db != 0 && is_about_database(details) => Error::invalid(format!(
            "Redis at {address} has no database {} for us ({details}): a cluster has only 0, a \
             server as many as its setting `databases` says",
            opener.url.db
        )),
        _ => unreachable(opener, address, error),
    }
}

/// Whether it is an error of SELECT: redis-rs passes on only the text.
fn is_about_database(details: &str) -> bool {
    details.contains("SELECT") || details.contains("DB index")
}

fn unreachable(opener: &Opener, address: &Address, error: &RedisError) -> Error {
    let connect_ms = opener.timeouts.connect_ms;
    let why = match error.is_timeout() {
        true => format!("no answer within {connect_ms} ms"),
        false => opener.url.without_password(&error.to_string()),
    };
    Error::unavailable(format!(
        "Redis at {address} cannot be reached: {why}. Check host and port, and that it is running"
    ))
}

pub(super) fn not_allowed(address: &Address, what: &str, said: &str) -> Error {
    Error::invalid(format!(
        "Redis at {address} does not let this user run {what} ({said}). It needs all commands of \
         hashes, sorted sets, scripts and sharded channels, and INFO, TIME, WAIT and CLUSTER, on \
         keys `~dormouse:*` and channels `&dormouse:*`: see ACL SETUSER"
    ))
}

pub(super) fn too_old(address: &Address, version: &str) -> Error {
    let (major, minor) = VERSION_NEEDED;
    Error::invalid(format!(
        "Redis at {address} is {version}: {major}.{minor} or newer is needed, for sharded channels"
    ))
}

pub(super) fn loading(address: &Address) -> Error {
    Error::unavailable(format!("Redis at {address} is still loading its data: try again later"))
}
