//! What tests with a real server share.

use std::os::unix::process::CommandExt as _;
use std::process::Command;

/// The server. In every package it is the same program as redis-check-rdb and goes by the name it
/// is called by; Debian has it under that name alone in redis-tools, which brings no service.
pub(crate) fn redis_server() -> Command {
    let mut command = Command::new("redis-check-rdb");
    command.arg0("redis-server");
    command
}
