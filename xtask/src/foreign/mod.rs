//! Clients that others wrote, and their own test suites, against a real server.
//!
//! The suites want a server on its usual port, so they run in a network namespace: nobody else's
//! server is there, and nothing leaves the machine. What comes from registries is fetched before,
//! into `target/foreign`.

mod fetch;
mod server;
mod suite;

use std::path::{Path, PathBuf};

use crate::step::Invocation;
use server::Server;
use suite::SUITES;

/// Fetches, builds, and runs every suite; each has a fresh server.
pub(crate) fn run(root: &Path) -> Result<(), String> {
    let place = target_dir(root).join("foreign");
    fetch::all(root, &place)?;
    let build = Invocation::new(["cargo", "build", "--locked", "--package", "dormouse"]);
    build.run(root).map_err(|reason| format!("`{build}` failed ({reason})"))?;
    let this = std::env::current_exe().map_err(|error| error.to_string())?;
    let this = this.display().to_string();
    // Root needs no namespace of users; who is not root becomes root of its own.
    let kind = if is_root(root) { "-n" } else { "-rn" };
    let inside = Invocation::new(["unshare", kind, &this, "foreign", "--inside"]);
    inside.run(root).map_err(|reason| {
        format!("{reason}; if it is the namespace that is refused, run the tests as root")
    })
}

/// The part that runs in the namespace.
pub(crate) fn inside(root: &Path) -> Result<(), String> {
    let up = Invocation::new(["ip", "link", "set", "lo", "up"]);
    up.run(root).map_err(|reason| format!("`{up}` failed ({reason})"))?;
    let target = target_dir(root);
    let place = target.join("foreign");
    let mut failed = Vec::new();
    for suite in SUITES {
        println!("foreign: {} ({})", suite.name, suite.about);
        let server = Server::start(&target.join("debug/dormouse"), &place.join("data"))?;
        let invocation = suite.invocation(&place);
        if let Err(reason) = invocation.run(&suite.directory(root, &place)) {
            println!("foreign: {} failed ({reason}): {invocation}", suite.name);
            failed.push(suite.name);
        }
        server.stop()?;
    }
    if failed.is_empty() { Ok(()) } else { Err(format!("failed: {}", failed.join(", "))) }
}

/// Where cargo builds.
fn target_dir(root: &Path) -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    // Suites run in directories of their own.
    root.join(target.unwrap_or_else(|| PathBuf::from("target")))
}

fn is_root(root: &Path) -> bool {
    let user = Invocation::new(["id", "-u"]).command(root).output();
    user.is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}
