//! How values are written: addresses, levels, sizes.

use std::net::{Ipv4Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::path::PathBuf;

use dormouse_core::topic::TopicName;
use dormouse_disk::engine::Durability;
use dormouse_redis::Level;
use dormouse_redis::limits::REPLICAS_MAX;
use dormouse_server::limits::METRICS_TOPICS_MAX;
use dormouse_server::push::Allowed;
use dormouse_server::{BeanstalkAddr, UiColor, UiName};

use super::keys::quoted;
use super::raw::{Raw, one_of};
use super::settings::{BEANSTALK_ADDR, BackendKind, RELAXED_MS_MAX, STORE_BYTES};

/// Before the path of a Unix socket.
const UNIX: &str = "unix:";
/// The longest path of a Unix socket on every system.
const SOCKET_PATH_BYTES_MAX: usize = if cfg!(target_os = "linux") { 107 } else { 103 };

/// What is pushed to besides the internet.
pub(super) fn push_allow(raw: &Raw) -> Result<Vec<String>, String> {
    let texts = raw.list()?;
    for text in &texts {
        text.parse::<Allowed>().map_err(|error| format!("`{text}`: {error}"))?;
    }
    Ok(texts)
}

/// The ports that are pushed to.
pub(super) fn push_ports(raw: &Raw) -> Result<Vec<String>, String> {
    let texts = raw.list()?;
    for text in &texts {
        ports(text).ok_or_else(|| format!("`{text}` is no port; write 443 or 8000-8999"))?;
    }
    Ok(texts)
}

/// One port, or a range of them.
pub(crate) fn ports(text: &str) -> Option<RangeInclusive<u16>> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last) = (first.parse::<u16>().ok()?, last.parse::<u16>().ok()?);
    (first > 0 && first <= last).then_some(first..=last)
}

/// Where a protocol is served, or `off`. The port is the protocol's usual one.
pub(super) fn network(raw: &Raw, port: u16) -> Result<Option<SocketAddr>, String> {
    let text = raw.text()?;
    if text == "off" {
        return Ok(None);
    }
    let wrong =
        || format!("`{text}` is not an address; write IP:PORT, as in 127.0.0.1:{port}, or off");
    socket_address(text).map(Some).ok_or_else(wrong)
}

/// Where beanstalkd's protocol is served, or `off`.
pub(super) fn beanstalk(raw: &Raw) -> Result<Option<BeanstalkAddr>, String> {
    let text = raw.text()?;
    if text == "off" {
        return Ok(None);
    }
    if let Some(path) = text.strip_prefix(UNIX) {
        return socket_path(path).map(|path| Some(BeanstalkAddr::Unix(path)));
    }
    let wrong = || {
        format!(
            "`{text}` is not an address; write IP:PORT, as in {BEANSTALK_ADDR}, unix:PATH, or off"
        )
    };
    socket_address(text).map(|addr| Some(BeanstalkAddr::Tcp(addr))).ok_or_else(wrong)
}

fn socket_address(text: &str) -> Option<SocketAddr> {
    if let Some(port) = text.strip_prefix("localhost:").and_then(|port| port.parse().ok()) {
        return Some(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    }
    text.parse().ok()
}

fn socket_path(path: &str) -> Result<PathBuf, String> {
    if path.is_empty() {
        return Err("names no file; write unix:PATH, as in unix:/run/dormouse.sock".to_owned());
    }
    if path.len() > SOCKET_PATH_BYTES_MAX {
        return Err(format!(
            "the path of a socket has at most {SOCKET_PATH_BYTES_MAX} bytes, and this has {}",
            path.len()
        ));
    }
    Ok(path.into())
}

/// The word for no name and no colour.
pub(super) const NONE: &str = "none";

/// The name of this installation, if it has one.
pub(super) fn ui_name(text: &str) -> Result<Option<UiName>, String> {
    if text == NONE { Ok(None) } else { text.parse().map(Some) }
}

/// The colour of this installation, if it has one.
pub(super) fn ui_color(text: &str) -> Result<Option<UiColor>, String> {
    if text == NONE { Ok(None) } else { one_of(text, UiColor::ALL).map(Some) }
}

/// Names of topics, not more than the metrics can show.
pub(super) fn metrics_topics(raw: &Raw) -> Result<Vec<TopicName>, String> {
    let names = raw.list()?;
    if names.len() > METRICS_TOPICS_MAX {
        return Err(format!("names {} topics, at most {METRICS_TOPICS_MAX}", names.len()));
    }
    let topic = |name: &String| TopicName::new(name).map_err(|error| error.text.into_owned());
    names.iter().map(topic).collect()
}

pub(super) fn store_bytes(raw: &Raw) -> Result<u64, String> {
    let (min, max) = STORE_BYTES;
    raw.number(min, max)
}

pub(super) fn durability(text: &str) -> Result<Durability, String> {
    if text == "synced" {
        return Ok(Durability::Synced);
    }
    let bounds = format!("write synced, or relaxed=MS with 1 to {RELAXED_MS_MAX} ms");
    let Some(ms) = text.strip_prefix("relaxed=") else {
        return Err(format!("`{text}` is no durability; {bounds}"));
    };
    match ms.parse() {
        Ok(ms) if (1..=RELAXED_MS_MAX).contains(&ms) => Ok(Durability::Relaxed { ms }),
        _ => Err(format!("`{text}` is out of bounds; {bounds}")),
    }
}

pub(super) fn backend(text: &str) -> Result<BackendKind, String> {
    let kinds = [
        ("disk", BackendKind::Disk),
        ("memory", BackendKind::Memory),
        ("redis", BackendKind::Redis),
    ];
    one_of(text, &kinds)
}

pub(super) fn level(text: &str) -> Result<Level, String> {
    if text == "applied" {
        return Ok(Level::Applied);
    }
    let replicas = text.strip_prefix("replicated=").and_then(|number| number.parse().ok());
    match replicas {
        Some(replicas) if (1..=REPLICAS_MAX).contains(&replicas) => Ok(Level::Replicated(replicas)),
        _ => Err(format!(
            "`{text}` is no level; write applied, or replicated=N with 1 to {REPLICAS_MAX}"
        )),
    }
}

/// The address of Redis; errors do not show its password.
pub(super) fn redis_url(raw: &Raw) -> Result<String, String> {
    let url = raw.text()?;
    dormouse_redis::check_url(url).map_err(|error| error.text.into_owned())?;
    Ok(url.to_owned())
}

/// A URL for people to read.
pub(super) fn without_password(url: &str) -> String {
    let hide = |part: &str| match part.rsplit_once('@') {
        Some((before, host)) => {
            let scheme = before.split_once("://").map_or("", |(scheme, _)| scheme);
            let user = before.rsplit_once("://").map_or(before, |(_, user)| user);
            let user = user.split(':').next().unwrap_or_default();
            let scheme = if scheme.is_empty() { String::new() } else { format!("{scheme}://") };
            format!("{scheme}{user}:(secret)@{host}")
        }
        None => part.to_owned(),
    };
    quoted(&url.split(',').map(hide).collect::<Vec<_>>().join(","))
}
