//! Checks INFO and CONFIG of a primary.

use std::collections::HashMap;

use dormouse_core::error::Error;
use redis::{FromRedisValue, RedisError};

use super::{Findings, errors};
use crate::cluster::info::Info;
use crate::cluster::node::Node;
use crate::cluster::url::Address;

/// The first version with sharded channels and script flags.
pub(super) const VERSION_NEEDED: (u32, u32) = (7, 0);

/// Refuses a primary that cannot serve, and adds to the findings.
pub(super) fn check(
    address: &Address,
    info: &Info,
    replicas: u32,
    findings: &mut Findings,
) -> Result<(), Error> {
    check_version(address, info)?;
    if info.is_set("loading") {
        return Err(errors::loading(address));
    }
    check_memory(address, info, findings)?;
    let connected = info.replicas();
    if connected < u64::from(replicas) {
        // It may be back soon, and servers that run go on without it.
        findings.warnings.push(format!(
            "{connected} of {replicas} replicas that are to confirm each change are connected to \
             {address}: until they are, changes are answered `unconfirmed`, and new topics are \
             refused. Start more replicas, or require fewer"
        ));
    }
    findings.replicas = findings.replicas.min(connected);
    note_version(info, findings);
    Ok(())
}

/// Refuses an old version. Valkey reports the version of Redis that it is compatible with.
pub(super) fn check_version(address: &Address, info: &Info) -> Result<(), Error> {
    match info.version() {
        Some(version) if version >= VERSION_NEEDED => Ok(()),
        Some(_) => Err(errors::too_old(address, info.text("redis_version"))),
        None => Err(Error::invalid(format!(
            "what answers at {address} does not say which version of Redis it is: check host and \
             port"
        ))),
    }
}

/// Keeps the lowest version among the primaries.
fn note_version(info: &Info, findings: &mut Findings) {
    let known = Info::parse(&format!("redis_version:{}", findings.version)).version();
    if known.is_none() || info.version() < known {
        findings.version = info.text("redis_version").to_owned();
    }
}

/// Refuses a replica.
pub(super) fn check_role(address: &Address, info: &Info) -> Result<(), Error> {
    if info.text("role") != "slave" {
        return Ok(());
    }
    let (host, port) = (info.text("master_host"), info.text("master_port"));
    Err(Error::invalid(format!(
        "Redis at {address} is a replica, which cannot be written to: name its primary, \
         {host}:{port}"
    )))
}

/// Refuses a primary that evicts keys when memory is short.
fn check_memory(address: &Address, info: &Info, findings: &mut Findings) -> Result<(), Error> {
    let (bytes_max, policy) = (info.number("maxmemory"), info.text("maxmemory_policy"));
    if bytes_max == 0 || policy == "noeviction" || policy.is_empty() {
        return Ok(());
    }
    if policy.starts_with("volatile-") {
        findings.warnings.push(format!(
            "maxmemory-policy at {address} is {policy}: jobs are safe, as none has an expiry, but \
             keys of others may be evicted; noeviction is better"
        ));
        return Ok(());
    }
    Err(Error::invalid(format!(
        "maxmemory-policy at {address} is {policy}: Redis would evict jobs when it uses more \
         than {bytes_max} bytes. Set maxmemory-policy noeviction"
    )))
}

/// Warns of what a crash of this primary may lose.
pub(super) async fn check_sync(node: &Node, info: &Info, findings: &mut Findings) {
    let address = &node.address;
    if !info.is_set("aof_enabled") {
        findings.appendfsync = None;
        findings.warnings.push(format!(
            "the AOF is off at {address}: a restart loses everything since the last snapshot, if \
             there is one. Set appendonly yes"
        ));
        return;
    }
    let Ok(policy) = appendfsync(node).await else {
        findings.appendfsync = None;
        findings.warnings.push(format!(
            "appendfsync at {address} could not be checked, as CONFIG GET is not allowed: unless \
             it is `always`, a crash loses the last changes"
        ));
        return;
    };
    let loss = match policy.as_str() {
        "always" => return,
        "everysec" => "about the last second, at worst two",
        _ => "what the operating system had not written yet, up to half a minute",
    };
    findings.warnings.push(format!(
        "appendfsync at {address} is {policy}: a crash of its machine loses {loss}. Set \
         appendfsync always, or wait for replicas"
    ));
    let is_weaker = findings.appendfsync.as_deref().is_some_and(|known| known != "no");
    if is_weaker {
        findings.appendfsync = Some(policy);
    }
}

async fn appendfsync(node: &Node) -> Result<String, RedisError> {
    let mut command = redis::cmd("CONFIG");
    let reply = node.query(command.arg("GET").arg("appendfsync")).await?;
    let mut fields: HashMap<String, String> = HashMap::from_redis_value(reply)?;
    Ok(fields.remove("appendfsync").unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings() -> Findings {
        Findings {
            version: String::new(),
            is_cluster: false,
            primaries: 1,
            replicas: u64::MAX,
            appendfsync: None,
            warnings: Vec::new(),
        }
    }

    fn checked(info: &str, replicas: u32) -> Result<Findings, Error> {
        let address = Address { host: "h".into(), port: 1 };
        let mut findings = findings();
        check(&address, &Info::parse(info), replicas, &mut findings).map(|()| findings)
    }

    #[test]
    fn old_versions_are_refused() {
        assert!(checked("redis_version:7.0.15", 0).is_ok());
        assert!(checked("redis_version:7.2.4\nserver_name:valkey", 0).is_ok());
        let error = checked("redis_version:6.2.14", 0).unwrap_err();
        assert!(error.text.contains("h:1 is 6.2.14: 7.0 or newer"), "{error}");
        assert!(checked("", 0).is_err());
    }

    #[test]
    fn eviction_is_refused_where_it_can_happen() {
        let with = |maxmemory: u64, policy: &str| {
            let info =
                format!("redis_version:7.0.0\nmaxmemory:{maxmemory}\nmaxmemory_policy:{policy}");
            checked(&info, 0)
        };
        assert!(with(0, "allkeys-lru").unwrap().warnings.is_empty());
        assert!(with(1, "noeviction").unwrap().warnings.is_empty());
        assert_eq!(with(1, "volatile-lru").unwrap().warnings.len(), 1);
        let error = with(1, "allkeys-lru").unwrap_err();
        assert!(error.text.contains("noeviction"), "{error}");
    }

    #[test]
    fn missing_replicas_are_a_warning() {
        let info = "redis_version:7.0.0\nconnected_slaves:2\n\
                    slave0:ip=10.0.0.1,port=1,state=online,offset=0,lag=0\n\
                    slave1:ip=10.0.0.2,port=1,state=wait_bgsave,offset=0,lag=0";
        let one = checked(info, 1).unwrap();
        assert_eq!((one.replicas, one.warnings.len()), (1, 0));
        let two = checked(info, 2).unwrap();
        assert!(two.warnings[0].contains("1 of 2 replicas"), "{two:?}");
    }

    #[test]
    fn replicas_and_loading_servers_are_refused() {
        let address = Address { host: "h".into(), port: 1 };
        let info = Info::parse("role:slave\nmaster_host:p\nmaster_port:2");
        assert!(check_role(&address, &info).unwrap_err().text.contains("p:2"));
        assert!(check_role(&address, &Info::parse("role:master")).is_ok());
        assert!(checked("redis_version:7.0.0\nloading:1", 0).is_err());
    }

    #[test]
    fn the_oldest_version_is_noted() {
        let mut findings = findings();
        for version in ["7.2.4", "7.0.15", "7.4.0"] {
            note_version(&Info::parse(&format!("redis_version:{version}")), &mut findings);
        }
        assert_eq!(findings.version, "7.0.15");
    }
}
