//! A job: its content (given by the producer, changed only by a replace) and its progress
//! since (state, complete in every fact that changes it).
//!
//! ```text
//!                 put (delay, at)                       put (now)
//!                      |                                   |
//!                      v              due                  v
//!                  delayed  - - - - - - - - - - - - ->   ready  <------------- revive, kick
//!                      ^                                   |  ^                     |
//!                      |                           reserve |  | expiry, release     |
//!                      |  nack (backoff)                   v  |                     |
//!                      +-------------------------------  leased                     |
//!                                                          |  |                     |
//!                                               ack: gone <+  +-> kill, attempts -> dead
//!                                          (or done, if kept)
//!
//!      cancel: gone, from every state but done. Becoming due is not an event: nothing moves.
//!      A ready job that nobody takes before its deadline (`expires_after`) is dead.
//! ```

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use bytes::Bytes;

use crate::backoff::Backoff;
use crate::error::Error;
use crate::schedule::ScheduleName;

/// A job's number, given by the server, unique in the installation, growing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobId(pub u64);

/// The bit that tells the entry of a job's deadline from the job.
const DEADLINE: u64 = 1 << 63;

impl JobId {
    /// The number of the entry of this job's deadline. It is none that a job gets.
    pub fn deadline(self) -> JobId {
        JobId(self.0 | DEADLINE)
    }

    /// The job whose deadline has this number; `None` = it is the number of a job or a schedule.
    pub fn job_of_deadline(self) -> Option<JobId> {
        (self.0 & DEADLINE != 0).then_some(JobId(self.0 & !DEADLINE))
    }
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for JobId {
    type Err = Error;
    fn from_str(text: &str) -> Result<JobId, Error> {
        text.parse().map(JobId).map_err(|_| {
            Error::invalid(format!("id {text:?} is not a number; send the id that put answered"))
        })
    }
}

/// Proof of one lease of one job: `<id>.<fence>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token {
    /// The job.
    pub id: JobId,
    /// Grows with every reserve of the job, also across crashes.
    pub fence: u64,
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.id.0, self.fence)
    }
}

impl FromStr for Token {
    type Err = Error;
    fn from_str(text: &str) -> Result<Token, Error> {
        let parsed = text.split_once('.').and_then(|(id, fence)| {
            Some(Token { id: JobId(id.parse().ok()?), fence: fence.parse().ok()? })
        });
        parsed.ok_or_else(|| {
            let shown: String = text.chars().take(64).collect();
            Error::invalid(format!(
                "token {shown:?} is not of the form <id>.<fence>; send it as reserve gave it"
            ))
        })
    }
}

/// The states of a job; a cancelled one is gone, and so is an acked one unless its topic keeps it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// Waits for its due time.
    Delayed,
    /// Due, waits for a reserve.
    Ready,
    /// Taken by a consumer.
    Leased,
    /// Out of attempts, too late or killed; waits for a revive.
    Dead,
    /// Acked, and kept for a while. It can be looked at; nothing else happens to it.
    Done,
}

impl State {
    /// The word for this state on every surface.
    pub fn as_str(self) -> &'static str {
        match self {
            State::Delayed => "delayed",
            State::Ready => "ready",
            State::Leased => "leased",
            State::Dead => "dead",
            State::Done => "done",
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The form in which a body was put, so that it is handed out in the same form.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BodyKind {
    /// Opaque bytes.
    #[default]
    Bytes,
    /// UTF-8 text.
    Text,
    /// A JSON document.
    Json,
}

impl BodyKind {
    /// Every kind.
    pub const ALL: [BodyKind; 3] = [BodyKind::Bytes, BodyKind::Text, BodyKind::Json];

    /// The word for this kind.
    pub fn as_str(self) -> &'static str {
        match self {
            BodyKind::Bytes => "bytes",
            BodyKind::Text => "text",
            BodyKind::Json => "json",
        }
    }
}

/// The content, given by the producer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Content {
    /// The producer's own id for the job.
    pub key: Option<Bytes>,
    /// Small string map, kept and handed out.
    pub headers: Option<Arc<Vec<(String, String)>>>,
    /// The work.
    pub body: Bytes,
    /// The form in which the body was put.
    pub body_kind: BodyKind,
    /// How long a lease lasts unless extended.
    pub ttr_ms: u64,
    /// Reserves before the job is dead; 0 = no limit.
    pub attempts_max: u32,
    /// Wait after a failed attempt; `None` = the built-in default.
    pub backoff: Option<Arc<Backoff>>,
    /// How long the key stays taken after the ack.
    pub key_ttl_ms: u64,
    /// It dies if nobody takes it so long after it was due; 0 = it never does.
    pub expires_after_ms: u64,
    /// When it was put, wall clock.
    pub put_at: u64,
    /// The tick that put it, if one did.
    pub tick: Option<Arc<TickOrigin>>,
    /// What limits of groups are counted by.
    pub group: Option<Bytes>,
}

/// The tick of a schedule that a job was put for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TickOrigin {
    /// The schedule, in the job's topic.
    pub schedule: ScheduleName,
    /// The tick, wall ms.
    pub tick_ms: u64,
    /// Ticks just before it that got no job.
    pub missed: u64,
}

impl Content {
    /// Bytes of the job against byte limits: body, key, group and headers.
    pub fn bytes(&self) -> u64 {
        content_bytes(&self.body, [&self.key, &self.group], self.headers.as_deref())
    }
}

/// Bytes of a job of this body, these names (key and group) and headers against byte limits.
pub(crate) fn content_bytes(
    body: &Bytes,
    names: [&Option<Bytes>; 2],
    headers: Option<&Vec<(String, String)>>,
) -> u64 {
    let headers: usize = headers
        .map_or(0, |headers| headers.iter().map(|(name, value)| name.len() + value.len()).sum());
    let names: usize = names.into_iter().flatten().map(Bytes::len).sum();
    (body.len() + names + headers) as u64
}

/// The progress of the job since it was put.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Lower is first; a nack or release may change it.
    pub priority: u32,
    /// The fence of the newest lease; 0 = never leased.
    pub fence: u64,
    /// The newest lease ran out and the job was not taken since: its token is still good.
    pub lapsed: bool,
    /// The key has passed to a newer job.
    pub key_lost: bool,
    /// Attempts spent or in course, since the put, replace or revive.
    pub attempts: u32,
    /// Reserves ever.
    pub reserves: u32,
    /// Leases that ran out.
    pub expiries: u32,
    /// Releases and nacks.
    pub releases: u32,
    /// Times it became dead.
    pub kills: u32,
    /// Kicks, revives and run-nows.
    pub kicks: u32,
    /// The same as `Content::bytes`, kept here so that counting needs no content.
    pub bytes: u32,
    /// The last failure's text.
    pub error: Option<Bytes>,
}

impl Progress {
    /// The attempt in course is given back unspent.
    pub(crate) fn release(&mut self) {
        self.give_back();
        self.releases = self.releases.saturating_add(1);
    }

    /// As `release`, but not by request: the holder is gone.
    pub(crate) fn give_back(&mut self) {
        self.attempts = self.attempts.saturating_sub(1);
        self.lapsed = false;
    }
}

/// A job with all that is known of it, except where it rests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Job {
    /// Its number.
    pub id: JobId,
    /// The content, given by the producer.
    pub content: Content,
    /// Progress since its put.
    pub progress: Progress,
}

impl Job {
    /// The key, unless it has passed to a newer job.
    pub fn key(&self) -> Option<&Bytes> {
        if self.progress.key_lost { None } else { self.content.key.as_ref() }
    }

    /// Whether another failure makes the job dead.
    pub fn attempts_spent(&self) -> bool {
        self.content.attempts_max != 0 && self.progress.attempts >= self.content.attempts_max
    }
}
