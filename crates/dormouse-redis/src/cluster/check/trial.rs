//! Tries the commands that we need, without side effects: a missing permission shows now, not at
//! the first put.

use std::sync::Arc;

use bytes::Bytes;
use dormouse_core::error::Error;
use redis::{Cmd, FromRedisValue, RedisError};

use super::{Findings, errors};
use crate::cluster::node::Node;
use crate::cluster::script::{Call, Script};
use crate::cluster::slot::slot_of;
use crate::cluster::topology::Topology;

/// Tries the commands of our scripts one by one and returns the first that fails. It leaves no
/// keys: Redis removes an empty hash or sorted set.
const TRIAL: &str = include_str!("trial.lua");
/// More than enough to hit every slot.
const TAGS_MAX: u32 = 1_000_000;

/// Refuses a primary that does not permit the commands we need.
pub(super) async fn check(
    topology: &Topology,
    node: &Arc<Node>,
    replicas: u32,
    findings: &mut Findings,
) -> Result<(), Error> {
    let failed = |what: &str, error: RedisError| {
        Err(errors::failure(&topology.opener, &node.address, what, &error))
    };
    let tag = tag_at(topology, node);
    let call = call_of(&tag);
    for (what, command) in commands(topology.is_cluster, replicas, &call) {
        match node.query(&command).await {
            Ok(reply) if what == "EVALSHA" => {
                let failure = Vec::<String>::from_redis_value(reply).unwrap_or_default();
                check_trial(node, &failure, findings)?;
            }
            Ok(_) => {}
            Err(error) => return failed(what, error),
        }
    }
    match listen(topology, node, &format!("dormouse:{{{tag}}}:w")).await {
        Ok(()) => Ok(()),
        Err((what, error)) => failed(what, error),
    }
}

fn commands(is_cluster: bool, replicas: u32, call: &Call) -> Vec<(&'static str, Cmd)> {
    let mut commands =
        vec![("SCRIPT LOAD", call.script.load_command()), ("EVALSHA", call.command())];
    if replicas > 0 {
        let mut wait = redis::cmd("WAIT");
        wait.arg(0).arg(1);
        commands.push(("WAIT", wait));
    }
    if is_cluster {
        commands.push(("ASKING", redis::cmd("ASKING")));
    }
    commands
}

/// `failure` is empty, or a command and the error of Redis.
fn check_trial(node: &Node, failure: &[String], findings: &mut Findings) -> Result<(), Error> {
    let [command, said] = failure else { return Ok(()) };
    let address = &node.address;
    if said.starts_with("OOM") {
        // Reserve and ack still work, and free memory.
        findings.warnings.push(format!("Redis at {address} is out of memory: puts will fail"));
        return Ok(());
    }
    // In a script the error has no code; other causes than permissions are unlikely.
    Err(errors::not_allowed(address, command, said))
}

/// On a connection of its own, as subscribers use it.
async fn listen(
    topology: &Topology,
    node: &Node,
    channel: &str,
) -> Result<(), (&'static str, RedisError)> {
    const SUBSCRIBE: &str = "SSUBSCRIBE";
    const UNSUBSCRIBE: &str = "SUNSUBSCRIBE";
    let ignore = |_| Ok::<(), ()>(());
    let opened = topology.opener.open(&node.address, ignore).await;
    let mut connection = opened.map_err(|error| (SUBSCRIBE, error))?;
    for name in [SUBSCRIBE, UNSUBSCRIBE] {
        let mut command = redis::cmd(name);
        let sent = connection.send_packed_command(command.arg(channel)).await;
        sent.and_then(redis::Value::extract_error).map_err(|error| (name, error))?;
    }
    Ok(())
}

/// A hash tag in a slot of this node.
fn tag_at(topology: &Topology, node: &Arc<Node>) -> String {
    let map = topology.map();
    let is_here = |tag: &String| {
        map.owner(slot_of(tag.as_bytes())).is_some_and(|owner| Arc::ptr_eq(owner, node))
    };
    let tags = (0..TAGS_MAX).map(|n| format!("check{n}"));
    std::iter::once("check".to_owned()).chain(tags).find(is_here).unwrap_or_default()
}

fn call_of(tag: &str) -> Call {
    let name = |part: &str| Bytes::from(format!("dormouse:{{{tag}}}:{part}"));
    Call {
        slot: slot_of(tag.as_bytes()),
        script: Arc::new(Script::new(TRIAL.to_owned())),
        keys: vec![name("s"), name("z")],
        args: vec![name("w")],
        replicas: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The commands in a script's source.
    fn commands_of(source: &str) -> Vec<&str> {
        let after = source.split("call('").skip(1);
        after.filter_map(|rest| rest.split('\'').next()).collect()
    }

    #[test]
    fn every_command_of_our_scripts_is_tried() {
        let directory = "lua";
        let mut tried = 0;
        for file in std::fs::read_dir(directory).unwrap() {
            let path = file.unwrap().path();
            // Servers do not run these scripts.
            if path.file_name().unwrap().to_str().unwrap().starts_with("verify") {
                continue;
            }
            let source = std::fs::read_to_string(&path).unwrap();
            for command in commands_of(&source) {
                assert!(TRIAL.contains(&format!("{{'{command}'")), "{command} of {path:?}");
                tried += 1;
            }
        }
        assert!(tried > 0, "no scripts in {directory}");
    }
}
