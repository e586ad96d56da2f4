//! One connection: what is to be written, and who waits for an answer.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use dormouse_core::backend::{Answer, Sink, Ticket};

use super::call::{Call, Sent, wait_of};
use crate::codec::{self, ReplyReader};
use crate::limits::STABLE_MS_MIN;
use crate::stream::Stream;

/// Names a connection; never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ConnId(pub(crate) u64);

/// Who writes.
#[derive(Debug, PartialEq, Eq)]
enum Writer {
    /// Nobody: the next who has something does.
    Nobody,
    /// A thread is at it, and looks for more before it ends.
    Busy,
    /// The socket took no more: these bytes, from this one on, when it does again.
    Blocked(Vec<u8>, usize),
}

/// An open connection.
pub(crate) struct Conn {
    pub(crate) stream: Arc<Stream>,
    /// The index of its URL.
    pub(crate) server: usize,
    /// For requests that wait, one at a time.
    pub(crate) is_for_waits: bool,
    out: Vec<u8>,
    /// Empty; its memory is used again.
    spare: Vec<u8>,
    writer: Writer,
    /// Bytes that were ever put into `out`, and those that were taken out to be written.
    appended: u64,
    handed: u64,
    pub(crate) sent: VecDeque<Sent>,
    /// The reader has taken a call off `sent` whose replies have not all come.
    pub(crate) is_partly_answered: bool,
    opened_at: Instant,
    pub(crate) heard_at: Instant,
    /// Its request was withdrawn: the request that did so is answered after it.
    pub(crate) withdrawn_by: Option<(Ticket, Arc<dyn Sink>)>,
    /// A write failed; the reader finds out why.
    pub(crate) has_failed: bool,
}

/// A portion to write.
pub(crate) struct Portion {
    pub(crate) stream: Arc<Stream>,
    pub(crate) bytes: Vec<u8>,
    pub(crate) at: usize,
}

impl Conn {
    pub(crate) fn new(stream: Stream, server: usize, is_for_waits: bool, now: Instant) -> Conn {
        Conn {
            stream: Arc::new(stream),
            server,
            is_for_waits,
            out: Vec::new(),
            spare: Vec::new(),
            writer: Writer::Nobody,
            appended: 0,
            handed: 0,
            sent: VecDeque::new(),
            is_partly_answered: false,
            opened_at: now,
            heard_at: now,
            withdrawn_by: None,
            has_failed: false,
        }
    }

    /// Encodes a call into the outbox. Gives it back with its answer if it has one already: it
    /// cannot be carried, or is an empty list.
    pub(crate) fn append(&mut self, call: Call, now: Instant) -> Option<(Call, Answer)> {
        let before = self.out.len();
        let replies = match codec::encode(&call.command, &mut self.out) {
            Ok(replies) => replies,
            Err(error) => {
                self.out.truncate(before);
                return Some((call, Err(error)));
            }
        };
        let reader = ReplyReader::new(&call.command, replies);
        if replies == 0 {
            let answer = reader.finish();
            return Some((call, answer));
        }
        let begin = self.appended;
        self.appended += (self.out.len() - before) as u64;
        if self.sent.is_empty() {
            self.heard_at = now;
        }
        let wait = wait_of(&call.command);
        self.sent.push_back(Sent { call, begin, sent_at: now, wait, reader });
        None
    }

    /// Takes what is to be written, unless somebody else writes.
    pub(crate) fn take_portion(&mut self) -> Option<Portion> {
        if self.writer != Writer::Nobody || self.out.is_empty() {
            return None;
        }
        self.writer = Writer::Busy;
        self.handed = self.appended;
        let bytes = std::mem::replace(&mut self.out, std::mem::take(&mut self.spare));
        Some(Portion { stream: Arc::clone(&self.stream), bytes, at: 0 })
    }

    /// Takes the rest of a portion that the socket did not take at once.
    pub(crate) fn take_blocked(&mut self) -> Option<Portion> {
        match std::mem::replace(&mut self.writer, Writer::Busy) {
            Writer::Blocked(bytes, at) => {
                Some(Portion { stream: Arc::clone(&self.stream), bytes, at })
            }
            other => {
                self.writer = other;
                None
            }
        }
    }

    /// Whether the reader is to write on when the socket can take more.
    pub(crate) fn is_blocked(&self) -> bool {
        matches!(self.writer, Writer::Blocked(..))
    }

    /// A portion is written; the memory is used again.
    pub(crate) fn wrote_all(&mut self, mut bytes: Vec<u8>) {
        self.writer = Writer::Nobody;
        bytes.clear();
        if self.spare.capacity() == 0 && bytes.capacity() <= SPARE_BYTES_MAX {
            self.spare = bytes;
        }
    }

    /// The socket took no more than this; the reader does the rest.
    pub(crate) fn wrote_part(&mut self, bytes: Vec<u8>, at: usize) {
        self.writer = Writer::Blocked(bytes, at);
    }

    /// Whether no byte of a call has left: then it was certainly not done.
    pub(crate) fn is_unsent(&self, sent: &Sent) -> bool {
        sent.begin >= self.handed
    }

    /// When the oldest answer is overdue.
    pub(crate) fn overdue_at(&self, answer_timeout: Duration) -> Option<Instant> {
        if self.is_partly_answered {
            return Some(self.heard_at + answer_timeout);
        }
        let first = self.sent.front()?;
        Some(self.heard_at.max(first.sent_at) + first.wait + answer_timeout)
    }

    /// Whether it was opened a moment ago.
    pub(crate) fn is_young(&self, now: Instant) -> bool {
        now.duration_since(self.opened_at) < Duration::from_millis(STABLE_MS_MIN)
    }

    /// Whether every answer has come.
    pub(crate) fn is_quiet(&self) -> bool {
        self.sent.is_empty() && !self.is_partly_answered
    }
}

/// An outbox that grew beyond this is not kept.
const SPARE_BYTES_MAX: usize = 1 << 20;
