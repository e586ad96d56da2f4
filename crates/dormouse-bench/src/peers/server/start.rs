//! Starting a contender's server.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use super::super::contender::{Contender, Dialect, Maker};
use super::super::wire::Codec;
use super::{Process, Programs};
use crate::Result;

const TIMEOUT: Duration = Duration::from_secs(30);
const BETWEEN: Duration = Duration::from_millis(5);
/// A connection that is refused or silent is tried again.
const ANSWER_MAX: Duration = Duration::from_secs(1);

/// Only what is measured is served.
const RESP: &str = "--resp 127.0.0.1:0 --beanstalk off";
const BEANSTALK: &str = "--resp off --beanstalk 127.0.0.1:0";

/// Options that only some measurements need.
#[derive(Clone, Default)]
pub(in crate::peers) struct Extras {
    /// Words before the program, which then runs in its place.
    pub(in crate::peers) under: Vec<String>,
    /// Flags of Dormouse.
    pub(in crate::peers) dormouse: Vec<String>,
    /// Dormouse also serves HTTP, for its metrics.
    pub(in crate::peers) http: bool,
    /// Flags of beanstalkd.
    pub(in crate::peers) beanstalkd: Vec<String>,
}

/// A server that answers.
pub(in crate::peers) struct Server {
    pub(in crate::peers) process: Process,
    pub(in crate::peers) address: SocketAddr,
    /// Where it serves HTTP.
    pub(in crate::peers) http: Option<SocketAddr>,
    pub(in crate::peers) codec: Codec,
}

impl Server {
    /// Starts it on a directory, which it may have left before, and waits until it answers.
    pub(in crate::peers) fn start(
        programs: &Programs,
        contender: Contender,
        data: &Path,
        log: &Path,
        extras: &Extras,
    ) -> Result<Server> {
        let port = free_port()?;
        let mut words = extras.under.clone();
        words.push(programs.of(contender.maker())?);
        words.extend(flags(contender, data, port, extras)?);
        let mut process = Process::start(&words, log)?;
        let known = (contender.maker() != Maker::Dormouse).then_some(port);
        let address = wait(&mut process, contender.dialect(), known)?;
        let codec = Codec::new(contender.dialect(), address)?;
        let http = printed(&process.log(), "http");
        Ok(Server { process, address, http, codec })
    }
}

/// The words after the program's name. Redis does not rewrite its file: that would be a pause that
/// the others do not have.
fn flags(contender: Contender, data: &Path, port: u16, extras: &Extras) -> Result<Vec<String>> {
    std::fs::create_dir_all(data)
        .or_else(|error| if data.is_dir() { Ok(()) } else { Err(error) })?;
    let (data, http) = (data.display(), if extras.http { "127.0.0.1:0" } else { "off" });
    let dormouse = |durability: &str, served: &str| {
        format!("serve --data {data} --durability {durability} --http {http} {served}")
    };
    let text = match contender {
        Contender::RedisNo => redis(&data, port, "no"),
        Contender::RedisEverysec => redis(&data, port, "everysec"),
        Contender::RedisAlways => redis(&data, port, "always"),
        Contender::Beanstalkd => format!("-l 127.0.0.1 -p {port}"),
        Contender::BeanstalkdF50 => format!("-l 127.0.0.1 -p {port} -b {data} -f 50"),
        Contender::BeanstalkdF0 => format!("-l 127.0.0.1 -p {port} -b {data} -f 0"),
        Contender::RespSynced => dormouse("synced", RESP),
        Contender::RespRelaxed => dormouse("relaxed=50", RESP),
        Contender::BeanstalkSynced => dormouse("synced", BEANSTALK),
        Contender::BeanstalkRelaxed => dormouse("relaxed=50", BEANSTALK),
    };
    let mut words: Vec<String> = text.split(' ').map(str::to_owned).collect();
    if contender.maker() == Maker::Redis {
        words.extend(["--save".to_owned(), String::new()]);
    }
    words.extend_from_slice(match contender.maker() {
        Maker::Redis => &[],
        Maker::Beanstalkd => &extras.beanstalkd,
        Maker::Dormouse => &extras.dormouse,
    });
    Ok(words)
}

fn redis(data: &std::path::Display<'_>, port: u16, sync: &str) -> String {
    format!(
        "--bind 127.0.0.1 --port {port} --dir {data} --appendonly yes --appendfsync {sync} \
         --auto-aof-rewrite-percentage 0 --daemonize no"
    )
}

fn free_port() -> Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

/// Where it listens, once it answers there. Without a port it prints where.
fn wait(process: &mut Process, dialect: Dialect, port: Option<u16>) -> Result<SocketAddr> {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        let address = match port {
            Some(port) => Some(SocketAddr::from((Ipv4Addr::LOCALHOST, port))),
            None => printed(&process.log(), protocol(dialect)),
        };
        if let Some(address) = address
            && answers(address, dialect)
        {
            return Ok(address);
        }
        if !process.is_running() {
            return Err(format!("it does not start: {}", process.last_words()).into());
        }
        if Instant::now() > deadline {
            return Err(format!("no answer for {TIMEOUT:?}: {}", process.last_words()).into());
        }
        thread::sleep(BETWEEN);
    }
}

/// The last line that says so: a log may have those of starts before.
fn printed(log: &str, protocol: &str) -> Option<SocketAddr> {
    let starts = format!("{protocol} listening on ");
    let address = |text: &str| text.trim_start_matches("http://").trim().parse().ok();
    log.lines().rev().find_map(|line| address(line.strip_prefix(&starts)?))
}

fn protocol(dialect: Dialect) -> &'static str {
    if dialect == Dialect::Beanstalk { "beanstalk" } else { "resp" }
}

fn answers(address: SocketAddr, dialect: Dialect) -> bool {
    let (ask, good): (&[u8], &[u8]) = match dialect {
        // While Redis loads its file it answers with an error.
        Dialect::ZsetScripts | Dialect::Verbs => (b"PING\r\n", b"+PONG"),
        Dialect::Beanstalk => (b"list-tube-used\r\n", b"USING"),
    };
    let try_it = || -> std::io::Result<bool> {
        let mut stream = TcpStream::connect_timeout(&address, ANSWER_MAX)?;
        stream.set_read_timeout(Some(ANSWER_MAX))?;
        stream.write_all(ask)?;
        let mut reply = vec![0; good.len()];
        stream.read_exact(&mut reply)?;
        Ok(reply == good)
    };
    try_it().unwrap_or(false)
}
