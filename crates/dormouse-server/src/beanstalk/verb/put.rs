//! put: the line, then the body.

use std::sync::Arc;

use bytes::{Buf, Bytes, BytesMut};
use dormouse_core::error::Error;
use dormouse_core::limits::{DELAY_MS_MAX, TTL_MS_MAX};
use dormouse_core::op::{Put, PutReply};

use super::{PendingReply, ms};
use crate::beanstalk::parse::PutLine;
use crate::beanstalk::shared::up;
use crate::beanstalk::tubes::Tube;
use crate::beanstalk::{Beanstalk, Expected, line, reply};
use crate::pipeline::Turn;

/// Bodies below this are copied: otherwise a small job would keep a large input buffer alive.
const COPIED_BYTES: usize = 4 << 10;

impl Beanstalk {
    /// The size is checked first: a body that is too large must not be parsed as commands.
    pub(super) fn put(&mut self, line: PutLine, turn: &mut Turn<PendingReply>) {
        if line.bytes as usize > self.shared.job_bytes_max {
            self.next = Expected::Large(u64::from(line.bytes) + line::END.len() as u64);
        } else if line.has_more {
            turn.reply_now().extend_from_slice(reply::BAD_FORMAT);
        } else {
            if !self.is_producer {
                self.is_producer = true;
                up(&self.shared.connections.producers);
            }
            self.next = Expected::Body(line);
        }
    }

    /// Reads the body; false if it is incomplete.
    pub(in crate::beanstalk) fn read_body(
        &mut self,
        line: PutLine,
        input: &mut BytesMut,
        turn: &mut Turn<PendingReply>,
    ) -> bool {
        let length = line.bytes as usize;
        let Some(trailer) = input.get(length..length + line::END.len()) else { return false };
        self.next = Expected::Line;
        let refusal = if trailer != line::END {
            reply::EXPECTED_CRLF
        } else if self.shared.drain.has_begun() {
            reply::DRAINING
        } else {
            let body = take_body(input, length);
            self.used.fill();
            input.advance(line::END.len());
            turn.put(self.job(line, body), PendingReply::Inserted(Arc::clone(&self.used)));
            return true;
        };
        input.advance(length + line::END.len());
        turn.reply_now().extend_from_slice(refusal);
        true
    }

    fn job(&self, line: PutLine, body: Bytes) -> Put {
        Put {
            delay_ms: (line.delay_s > 0).then(|| ms(line.delay_s, DELAY_MS_MAX)),
            priority: Some(line.priority),
            ttr_ms: Some(ms(line.ttr_s.max(1), TTL_MS_MAX)),
            attempts_max: Some(0),
            ..Put::new(self.used.name.clone(), body)
        }
    }

    /// Discards a body that is too large as it arrives; false if more is to come.
    pub(in crate::beanstalk) fn swallow(
        &mut self,
        left: u64,
        input: &mut BytesMut,
        turn: &mut Turn<PendingReply>,
    ) -> bool {
        let here = left.min(input.len() as u64);
        // At most the length of the input.
        input.advance(here as usize);
        self.next = Expected::Large(left - here);
        if left > here {
            return false;
        }
        self.next = Expected::Line;
        turn.reply_now().extend_from_slice(reply::JOB_TOO_BIG);
        true
    }

    pub(super) fn inserted(
        &mut self,
        tube: &Tube,
        put: Result<PutReply, Error>,
        out: &mut BytesMut,
    ) {
        match put {
            Ok(reply) => {
                up(&tube.puts);
                self.recent.note(reply.id, &tube.name);
                reply::numbered("INSERTED", reply.id.0, out);
            }
            Err(error) => reply::error(&error, out),
        }
    }
}

fn take_body(input: &mut BytesMut, length: usize) -> Bytes {
    if length >= COPIED_BYTES {
        return input.split_to(length).freeze();
    }
    let body = Bytes::copy_from_slice(&input[..length]);
    input.advance(length);
    body
}
