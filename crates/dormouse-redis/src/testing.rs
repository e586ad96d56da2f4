//! Shared by tests with a real server.

use std::os::unix::process::CommandExt as _;
use std::process::Command;

/// Starts redis-server. It is the same program as redis-check-rdb and acts by the name it is called
/// by; Debian's redis-tools has only that name, and installs no service.
pub(crate) fn redis_server() -> Command {
    let mut command = Command::new("redis-check-rdb");
    command.arg0("redis-server");
    command
}
