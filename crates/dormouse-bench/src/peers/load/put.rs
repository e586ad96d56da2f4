//! Puts, as many together as the pipeline is deep.

use std::time::{Duration, Instant};

use super::super::wire::{Codec, Puts};
use super::{Limits, Work};
use crate::Result;
use crate::redis::zset_scripts::wall_ms;

pub(in crate::peers) struct PutWork<'a> {
    codec: &'a Codec,
    puts: Puts,
    next: u64,
    end: u64,
    deadline: Instant,
    /// Puts that were answered.
    pub(in crate::peers) done: u64,
}

impl<'a> PutWork<'a> {
    /// Jobs from a number on.
    pub(in crate::peers) fn new(
        codec: &'a Codec,
        pipeline: usize,
        delay: Duration,
        first: u64,
        limits: Limits,
    ) -> PutWork<'a> {
        let delay_ms = u64::try_from(delay.as_millis()).unwrap_or(0);
        let puts = Puts::new(codec, pipeline, delay_ms);
        let (end, deadline) = (first + limits.jobs, Instant::now() + limits.time);
        PutWork { codec, puts, next: first, end, deadline, done: 0 }
    }

    /// The number after the last one that was put.
    pub(in crate::peers) fn next(&self) -> u64 {
        self.next
    }
}

impl Work for PutWork<'_> {
    fn ask(&mut self, _connection: usize, out: &mut Vec<u8>) -> usize {
        if self.next >= self.end || Instant::now() >= self.deadline {
            return 0;
        }
        self.puts.push(self.next, wall_ms(), out);
        self.next += self.puts.count() as u64;
        self.puts.count()
    }

    fn reply(&mut self, _connection: usize, input: &[u8]) -> Result<Option<usize>> {
        let len = self.codec.put_reply(input)?;
        self.done += u64::from(len.is_some());
        Ok(len)
    }
}
