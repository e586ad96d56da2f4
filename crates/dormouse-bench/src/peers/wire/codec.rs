//! A dialect: requests as bytes, replies checked.

use std::net::SocketAddr;

use super::super::contender::Dialect;
use super::{body, resp};
use crate::Result;
use crate::redis::zset_scripts::{BUCKET, POOL, Scripts};

pub(in crate::peers) const TOPIC: &[u8] = b"peers";
/// Fields of a job in a reply to RESERVE: topic, id, token, attempt, due_at, body. Newer servers
/// add fields behind them, and an old server beside a new one is what some measurements are for.
const VERBS: JobLayout = JobLayout { fields: 6, token: 2, body: 5 };
/// Of a job that ZSET scripts give: id, body.
const ZSET: JobLayout = JobLayout { fields: 2, token: 0, body: 1 };

/// How many fields a job has in a reply, and where those are that matter.
#[derive(Clone, Copy)]
struct JobLayout {
    fields: usize,
    token: usize,
    body: usize,
}

/// How a server is spoken to.
#[derive(Clone)]
pub(in crate::peers) enum Codec {
    ZsetScripts(Scripts),
    Verbs,
    Beanstalk,
}

/// Jobs that were taken and not yet acked.
#[derive(Default)]
pub(in crate::peers) struct Taken {
    /// The tokens of the leases, one after another.
    tokens: Vec<u8>,
    ends: Vec<usize>,
    /// The numbers of their bodies.
    pub(in crate::peers) numbers: Vec<u64>,
}

impl Taken {
    pub(in crate::peers) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(in crate::peers) fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    pub(in crate::peers) fn clear(&mut self) {
        self.tokens.clear();
        self.ends.clear();
        self.numbers.clear();
    }

    fn add_token(&mut self, token: &[u8]) {
        self.tokens.extend_from_slice(token);
        self.ends.push(self.tokens.len());
    }

    fn tokens(&self) -> impl Iterator<Item = &[u8]> {
        let mut start = 0;
        self.ends.iter().map(move |&end| &self.tokens[std::mem::replace(&mut start, end)..end])
    }
}

impl Codec {
    pub(in crate::peers) fn new(dialect: Dialect, address: SocketAddr) -> Result<Codec> {
        Ok(match dialect {
            Dialect::ZsetScripts => {
                Codec::ZsetScripts(Scripts::load(&format!("redis://{address}"))?)
            }
            Dialect::Verbs => Codec::Verbs,
            Dialect::Beanstalk => Codec::Beanstalk,
        })
    }

    /// Takes the reply to one put off the input.
    pub(in crate::peers) fn put_reply(&self, input: &[u8]) -> Result<Option<usize>> {
        match self {
            Codec::ZsetScripts(_) => expect(input, b":1\r\n"),
            Codec::Verbs => {
                let mut id_len = 0;
                let end = resp::walk(input, |leaf| id_len += leaf.len())?;
                if end.is_some() && id_len == 0 {
                    return Err("a put without an id".into());
                }
                Ok(end)
            }
            Codec::Beanstalk => {
                let Some((line, end)) = line(input) else { return Ok(None) };
                line.strip_prefix(b"INSERTED ").ok_or_else(|| unexpected(line))?;
                Ok(Some(end))
            }
        }
    }

    /// Adds the command that takes a job, or as many as `max` where that can be said. At once
    /// means: whatever there is.
    pub(in crate::peers) fn push_take(&self, max: usize, now_ms: u64, out: &mut Vec<u8>) {
        match self {
            Codec::ZsetScripts(scripts) => {
                let (script, now) = (scripts.take.as_bytes(), now_ms.to_string());
                let (bucket, pool) = (BUCKET.as_bytes(), POOL.as_bytes());
                resp::push(out, &[b"EVALSHA", script, b"2", bucket, pool, now.as_bytes()]);
            }
            Codec::Verbs if max == 1 => resp::push(out, &[b"RESERVE", TOPIC]),
            Codec::Verbs => {
                resp::push(out, &[b"RESERVE", TOPIC, b"MAX", max.to_string().as_bytes()]);
            }
            Codec::Beanstalk => out.extend_from_slice(b"reserve-with-timeout 0\r\n"),
        }
    }

    /// Adds the command that waits for a job; ZSET scripts have none.
    pub(in crate::peers) fn push_wait(&self, now_ms: u64, out: &mut Vec<u8>) {
        match self {
            Codec::ZsetScripts(_) => self.push_take(1, now_ms, out),
            Codec::Verbs => resp::push(out, &[b"RESERVE", TOPIC, b"WAIT", b"30s"]),
            Codec::Beanstalk => out.extend_from_slice(b"reserve-with-timeout 30\r\n"),
        }
    }

    /// Takes the reply to a take off the input; no job is fine.
    pub(in crate::peers) fn take_reply(
        &self,
        input: &[u8],
        taken: &mut Taken,
    ) -> Result<Option<usize>> {
        match self {
            Codec::ZsetScripts(_) => jobs_reply(input, ZSET, taken),
            Codec::Verbs => {
                let fields = resp::inner_len(input)?.unwrap_or(0).max(VERBS.fields);
                jobs_reply(input, JobLayout { fields, ..VERBS }, taken)
            }
            Codec::Beanstalk => reserved_reply(input, taken),
        }
    }

    /// Adds the acks of all taken jobs: one command each, or one for all. Returns the number of
    /// replies.
    pub(in crate::peers) fn push_acks(
        &self,
        taken: &Taken,
        at_once: bool,
        out: &mut Vec<u8>,
    ) -> usize {
        if at_once {
            let mut words: Vec<&[u8]> = vec![b"ACK"];
            words.extend(taken.tokens());
            resp::push(out, &words);
            return 1;
        }
        for token in taken.tokens() {
            match self {
                Codec::ZsetScripts(scripts) => {
                    let (script, pool) = (scripts.delete.as_bytes(), POOL.as_bytes());
                    resp::push(out, &[b"EVALSHA", script, b"1", pool, token]);
                }
                Codec::Verbs => resp::push(out, &[b"ACK", token]),
                Codec::Beanstalk => {
                    out.extend_from_slice(b"delete ");
                    out.extend_from_slice(token);
                    out.extend_from_slice(b"\r\n");
                }
            }
        }
        taken.len()
    }

    /// Takes the reply to an ack of this many jobs off the input.
    pub(in crate::peers) fn ack_reply(&self, input: &[u8], jobs: usize) -> Result<Option<usize>> {
        match self {
            Codec::ZsetScripts(_) => expect(input, b":1\r\n"),
            Codec::Verbs if jobs == 1 => expect(input, b"+OK\r\n"),
            Codec::Verbs => {
                let mut done = 0;
                let end = resp::walk(input, |leaf| done += usize::from(leaf == b"OK"))?;
                if end.is_some() && done != jobs {
                    return Err(format!("{done} of {jobs} acks were done").into());
                }
                Ok(end)
            }
            Codec::Beanstalk => expect(input, b"DELETED\r\n"),
        }
    }
}

/// Jobs as lists in a list, or one job as a list.
fn jobs_reply(input: &[u8], layout: JobLayout, taken: &mut Taken) -> Result<Option<usize>> {
    let JobLayout { fields, token, body } = layout;
    let (before, mut leaves, mut wrong) = (taken.len(), 0, None);
    let end = resp::walk(input, |leaf| {
        if leaves % fields == token {
            taken.add_token(leaf);
        }
        if leaves % fields == body {
            match body::number_in(leaf) {
                Ok(number) => taken.numbers.push(number),
                Err(error) => wrong = Some(error),
            }
        }
        leaves += 1;
    })?;
    if end.is_none() {
        // It is walked over again when it is whole.
        taken.ends.truncate(before);
        taken.numbers.truncate(before);
        taken.tokens.truncate(taken.ends.last().copied().unwrap_or(0));
        return Ok(None);
    }
    match wrong {
        None if leaves % fields == 0 => Ok(end),
        None => Err(format!("a reply of {leaves} fields, not {fields} per job").into()),
        Some(error) => Err(error),
    }
}

fn reserved_reply(input: &[u8], taken: &mut Taken) -> Result<Option<usize>> {
    let Some((line, end)) = line(input) else { return Ok(None) };
    if line == b"TIMED_OUT" {
        return Ok(Some(end));
    }
    let rest = line.strip_prefix(b"RESERVED ").ok_or_else(|| unexpected(line))?;
    let space = rest.iter().position(|&byte| byte == b' ').ok_or_else(|| unexpected(line))?;
    let (id, len) = (&rest[..space], &rest[space + 1..]);
    let len: usize = std::str::from_utf8(len)?.parse()?;
    let Some(body) = input.get(end..end + len) else { return Ok(None) };
    if input.len() < end + len + 2 {
        return Ok(None);
    }
    taken.numbers.push(body::number_in(body)?);
    taken.add_token(id);
    Ok(Some(end + len + 2))
}

/// The first line, and where the next begins.
fn line(input: &[u8]) -> Option<(&[u8], usize)> {
    let len = input.iter().position(|&byte| byte == b'\n')?;
    Some((&input[..len.saturating_sub(1)], len + 1))
}

/// Exactly this.
fn expect(input: &[u8], reply: &[u8]) -> Result<Option<usize>> {
    if input.starts_with(reply) {
        return Ok(Some(reply.len()));
    }
    match line(input) {
        Some((line, _)) => Err(unexpected(line)),
        None => Ok(None),
    }
}

fn unexpected(line: &[u8]) -> Box<dyn std::error::Error + Send + Sync> {
    format!("the server says {}", String::from_utf8_lossy(line)).into()
}
