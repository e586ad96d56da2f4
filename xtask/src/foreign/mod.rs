//! Clients of other projects, and their own test suites, against a real server.
//!
//! The suites expect a server on its usual port, so they run in a network namespace: no other
//! server is there, and nothing leaves the machine. Packages are fetched before that, into
//! `target/foreign`.
//!
//! Last comes the original beanstalkd: it gets the same random commands as Dormouse, and both must
//! give the same answers.

mod fetch;
mod original;
mod redis;
mod server;
mod suite;

use std::path::Path;

use crate::step::{Invocation, build_binary, is_root, target_dir};
pub(crate) use original::{FUZZ, with_original};
use redis::Redis;
use server::Server;
use suite::SUITES;

/// Fetches and builds everything, runs every suite against a fresh server, then compares with the
/// original beanstalkd.
pub(crate) fn run(root: &Path) -> Result<(), String> {
    let place = target_dir(root).join("foreign");
    fetch::all(root, &place)?;
    fetch::beanstalkd(&place)?;
    build_binary(root)?;
    let this = std::env::current_exe().map_err(|error| error.to_string())?;
    let this = this.display().to_string();
    // Without root, a user namespace gives the right to make a network namespace.
    let kind = if is_root() { "-n" } else { "-rn" };
    let inside = Invocation::new(["unshare", kind, &this, "foreign", "--inside"]);
    inside.run(root).map_err(|reason| {
        format!("{reason}; if the network namespace was refused, run this as root")
    })?;
    original::compare(root)
}

/// The part that runs in the namespace.
pub(crate) fn inside(root: &Path) -> Result<(), String> {
    let up = Invocation::new(["ip", "link", "set", "lo", "up"]);
    up.run(root).map_err(|reason| format!("`{up}` failed ({reason})"))?;
    let target = target_dir(root);
    let (program, data) = (target.join("debug/dormouse"), target.join("foreign/data"));
    let mut failed = run_all(root, "disk", || Server::on_disk(&program, &data))?;
    let redis = Redis::start(&target.join("foreign/redis"))?;
    failed.extend(run_all(root, "redis", || {
        redis.clear()?;
        Server::on_redis(&program, &redis.url())
    })?);
    if failed.is_empty() { Ok(()) } else { Err(format!("failed: {}", failed.join(", "))) }
}

/// Runs every suite against a fresh server each; returns those that failed.
fn run_all(
    root: &Path,
    backend: &str,
    start: impl Fn() -> Result<Server, String>,
) -> Result<Vec<String>, String> {
    let place = target_dir(root).join("foreign");
    let mut failed = Vec::new();
    for suite in SUITES {
        println!("foreign: {} ({}) on {backend}", suite.name, suite.about);
        let server = start()?;
        let invocation = suite.invocation(&place, &server);
        if let Err(reason) = invocation.run(&suite.directory(root, &place)) {
            println!("foreign: {} failed on {backend} ({reason}): {invocation}", suite.name);
            failed.push(format!("{} on {backend}", suite.name));
        }
        server.stop()?;
    }
    Ok(failed)
}
