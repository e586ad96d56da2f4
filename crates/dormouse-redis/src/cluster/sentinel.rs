//! Sentinels: which server is the primary of a service.
//!
//! All are asked at once. One that was away may still name an old primary, so the answer with the
//! greatest configuration epoch counts, and the server that it names must call itself a primary.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use dormouse_core::error::Error;
use redis::{Cmd, FromRedisValue, RedisError, Value};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::check::errors;
use super::info::Info;
use super::meters::Meters;
use super::node::Node;
use super::opener::Opener;
use super::url::Address;

/// After this long a sentinel or a new primary counts as silent, and its connections are closed.
const ASK_TIMEOUT: Duration = Duration::from_secs(1);
/// Failures in a row after which there is a line in the log; a failover has a few.
const LOGGED_AFTER: u32 = 5;

/// The sentinels of a URL.
pub(super) struct Sentinels {
    pub(super) service: String,
    nodes: Vec<Arc<Node>>,
    opener: Arc<Opener>,
    /// The configuration epoch of the present primary.
    epoch: AtomicU64,
    /// In a row.
    failures: AtomicU32,
}

/// What a sentinel says of the service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Claim {
    pub(super) primary: Address,
    epoch: u64,
}

/// Why a sentinel says nothing of it.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Refusal {
    /// It knows only these services.
    Unknown(Vec<String>),
    Failed(Error),
}

impl Sentinels {
    /// `None` if the URL is not of sentinels.
    pub(super) fn new(opener: &Arc<Opener>, meters: &Arc<Meters>) -> Option<Sentinels> {
        let service = opener.url.service.clone()?;
        let node = |address: &Address| Arc::new(Node::new(address.clone(), opener, meters));
        let nodes = opener.url.seeds.iter().map(node).collect();
        let (epoch, failures) = (AtomicU64::new(0), AtomicU32::new(0));
        Some(Sentinels { service, nodes, opener: Arc::clone(opener), epoch, failures })
    }

    /// The primary that they name.
    pub(super) async fn claim(&self) -> Result<Claim, Error> {
        let (mut claims, mut refusals) = (Vec::new(), Vec::new());
        let mut answers = self.ask_all();
        while let Some((address, answer)) = answers.recv().await {
            match answer {
                Ok(claim) => {
                    claims.push(claim);
                    break;
                }
                Err(refusal) => refusals.push((address, refusal)),
            }
        }
        let others = async {
            while let Some((_, answer)) = answers.recv().await {
                claims.extend(answer.ok());
            }
        };
        // Who is later than that is not heard.
        let _ = timeout(Duration::from_millis(self.opener.timeouts.gather_ms), others).await;
        let answered = claims.len();
        let newest = claims.into_iter().max_by_key(|claim| claim.epoch);
        let newest = newest.ok_or_else(|| self.no_claim(&refusals))?;
        let is_old = newest.epoch < self.epoch.load(Ordering::Acquire);
        if is_old && answered * 2 <= self.nodes.len() {
            return Err(Error::unavailable(format!(
                "the sentinels that answer have an old primary of `{}`, {}, and are not most of \
                 them: start the others",
                self.service, newest.primary
            )));
        }
        Ok(newest)
    }

    /// Asks all at once. Not cancelled with the receiver: the timeout must find out a silent one.
    fn ask_all(&self) -> mpsc::UnboundedReceiver<(Address, Result<Claim, Refusal>)> {
        let (sender, answers) = mpsc::unbounded_channel();
        for node in &self.nodes {
            let (sender, node, service) = (sender.clone(), Arc::clone(node), self.service.clone());
            let opener = Arc::clone(&self.opener);
            tokio::spawn(async move {
                let answer = ask(&opener, &node, &service).await;
                // Enough others have answered if there is no receiver.
                let _ = sender.send((node.address.clone(), answer));
            });
        }
        answers
    }

    /// Checks that the server at a named address is a primary.
    pub(super) async fn confirm(&self, claim: &Claim, node: &Node) -> Result<Info, Error> {
        let (address, service) = (&claim.primary, &self.service);
        let info = match timeout(ASK_TIMEOUT, Info::of(node)).await {
            Ok(info) => {
                info.map_err(|error| errors::failure(&self.opener, address, "INFO", &error))
            }
            Err(_) => {
                node.reset_connections();
                let ms = ASK_TIMEOUT.as_millis();
                Err(Error::unavailable(format!("Redis at {address} has not answered in {ms} ms")))
            }
        };
        let info = info.map_err(|error| {
            let text = format!(
                "the sentinels name {address} as the primary of `{service}`: {}; if it has just \
                 died, they choose another soon",
                error.text
            );
            Error { text: text.into(), ..error }
        })?;
        if info.text("role") != "master" {
            return Err(Error::unavailable(format!(
                "the sentinels name {address} as the primary of `{service}`, but Redis there says \
                 that it is a replica: a failover may be under way, try again"
            )));
        }
        self.accept(claim);
        Ok(info)
    }

    /// From now on older answers are ignored.
    pub(super) fn accept(&self, claim: &Claim) {
        self.epoch.store(claim.epoch, Ordering::Release);
    }

    /// Nobody named a primary.
    fn no_claim(&self, refusals: &[(Address, Refusal)]) -> Error {
        let (service, count) = (&self.service, self.nodes.len());
        let mut texts = Vec::new();
        for (address, refusal) in refusals {
            match refusal {
                Refusal::Unknown(known) => {
                    let known = match &known[..] {
                        [] => "nothing".to_owned(),
                        names => format!("`{}`", names.join("`, `")),
                    };
                    return Error::invalid(format!(
                        "the sentinel at {address} does not monitor `{service}`, but {known}: name \
                         the service after the hosts of the URL, as in \
                         redis+sentinel://host/service"
                    ));
                }
                Refusal::Failed(error) if !error.code.is_retryable() => return error.clone(),
                Refusal::Failed(error) => texts.push(error.text.as_ref()),
            }
        }
        Error::unavailable(format!(
            "none of the {count} sentinels names a primary of `{service}`: {}. Check hosts and \
             ports, and that they are running",
            texts.join("; ")
        ))
    }

    /// Failures in a row.
    pub(super) fn failures(&self) -> u32 {
        self.failures.load(Ordering::Relaxed)
    }

    /// One line in the log when they fail for long, and one when they answer again.
    pub(super) fn note(&self, failure: Option<&Error>) {
        let failures = if failure.is_some() { self.failures() + 1 } else { 0 };
        let before = self.failures.swap(failures, Ordering::Relaxed);
        match failure {
            Some(error) if failures == LOGGED_AFTER => {
                tracing::warn!("redis: a failover would not be followed: {}", error.text);
            }
            None if before >= LOGGED_AFTER => {
                tracing::info!("redis: the sentinels name a primary again");
            }
            _ => {}
        }
    }
}

/// What one sentinel says. The epoch is asked for first, so the address is at least as new.
async fn ask(opener: &Opener, node: &Node, service: &str) -> Result<Claim, Refusal> {
    let asked = async {
        let fields = node.query(&sentinel(&["MASTER", service])).await?;
        let fields: HashMap<String, String> = HashMap::from_redis_value(fields)?;
        // Not the address of MASTER: until all replicas are told, that is the old one.
        let primary = node.query(&sentinel(&["GET-MASTER-ADDR-BY-NAME", service])).await?;
        Ok::<_, RedisError>((fields, <(String, u16)>::from_redis_value(primary)?))
    };
    match timeout(ASK_TIMEOUT, asked).await {
        Ok(Ok((fields, (host, port)))) => {
            let epoch = fields.get("config-epoch").and_then(|text| text.parse().ok());
            Ok(Claim { primary: Address { host, port }, epoch: epoch.unwrap_or_default() })
        }
        Ok(Err(error)) if is_unknown(&error) => Err(Refusal::Unknown(services(node).await)),
        Ok(Err(error)) => Err(Refusal::Failed(failure(opener, &node.address, &error))),
        Err(_) => {
            node.reset_connections();
            let (address, ms) = (&node.address, ASK_TIMEOUT.as_millis());
            let text = format!("the sentinel at {address} has not answered in {ms} ms");
            Err(Refusal::Failed(Error::unavailable(text)))
        }
    }
}

fn sentinel(words: &[&str]) -> Cmd {
    let mut command = redis::cmd("SENTINEL");
    words.iter().for_each(|word| {
        command.arg(word);
    });
    command
}

fn is_unknown(error: &RedisError) -> bool {
    error.detail().is_some_and(|text| text.contains("No such master"))
}

/// The services that a sentinel knows; empty if it does not say.
async fn services(node: &Node) -> Vec<String> {
    let reply = timeout(ASK_TIMEOUT, node.query(&sentinel(&["MASTERS"]))).await;
    let Ok(Ok(Value::Array(masters))) = reply else { return Vec::new() };
    let name = |fields| HashMap::<String, String>::from_redis_value(fields).ok()?.remove("name");
    masters.into_iter().filter_map(name).collect()
}

/// The error of a sentinel, with advice.
fn failure(opener: &Opener, address: &Address, error: &RedisError) -> Error {
    let said = opener.url.without_password(&error.to_string());
    match error.code().unwrap_or_default() {
        "NOAUTH" | "WRONGPASS" | "NOPERM" => Error::invalid(format!(
            "the sentinel at {address} refuses the login of the URL ({said}): sentinels and Redis \
             need the same user and password, or the sentinels none"
        )),
        "ERR" => Error::invalid(format!(
            "what answers at {address} is not a sentinel ({said}): check host and port, which is \
             mostly 26379, or use redis:// to name the primary itself"
        )),
        _ if error.is_timeout() => {
            let ms = opener.timeouts.connect_ms;
            Error::unavailable(format!("the sentinel at {address} has not answered in {ms} ms"))
        }
        _ => Error::unavailable(format!("the sentinel at {address} cannot be reached: {said}")),
    }
}
