//! Takes and acks: a job is done when its ack is answered.

use std::time::Instant;

use super::super::wire::{Codec, Taken};
use super::{Limits, Work};
use crate::Result;
use crate::redis::zset_scripts::wall_ms;

pub(in crate::peers) struct TakeWork<'a> {
    codec: &'a Codec,
    /// Commands together.
    pipeline: usize,
    /// Jobs per command.
    max: usize,
    /// Jobs not yet asked for.
    left: u64,
    deadline: Instant,
    consumers: Vec<Consumer>,
    acked: &'a mut AckedJobs,
    /// Jobs whose ack was answered.
    pub(in crate::peers) done: u64,
}

/// Which jobs are still there.
#[derive(Default)]
pub(in crate::peers) struct AckedJobs {
    /// Of each job, by its number, whether it was put and not yet taken.
    is_there: Vec<bool>,
    pub(in crate::peers) left: u64,
}

impl AckedJobs {
    /// The number of the next job.
    pub(in crate::peers) fn next(&self) -> u64 {
        self.is_there.len() as u64
    }

    /// All numbers before this one were put.
    pub(in crate::peers) fn put_until(&mut self, next: u64) {
        self.left += next.saturating_sub(self.next());
        self.is_there.resize(usize::try_from(next).unwrap_or(0), true);
    }

    fn take(&mut self, number: u64) -> Result<()> {
        let place = usize::try_from(number).ok().and_then(|index| self.is_there.get_mut(index));
        if !place.is_some_and(std::mem::take) {
            return Err(format!("job {number} was never put, or came twice").into());
        }
        self.left -= 1;
        Ok(())
    }
}

#[derive(Default)]
struct Consumer {
    taken: Taken,
    is_acking: bool,
}

impl<'a> TakeWork<'a> {
    /// One by one, or batches: `max` above 1.
    pub(in crate::peers) fn new(
        codec: &'a Codec,
        connections: usize,
        pipeline: usize,
        max: usize,
        limits: Limits,
        acked: &'a mut AckedJobs,
    ) -> TakeWork<'a> {
        let consumers = (0..connections).map(|_| Consumer::default()).collect();
        let deadline = Instant::now() + limits.time;
        let left = limits.jobs;
        TakeWork { codec, pipeline, max, left, deadline, consumers, acked, done: 0 }
    }
}

impl Work for TakeWork<'_> {
    fn ask(&mut self, connection: usize, out: &mut Vec<u8>) -> usize {
        let consumer = &mut self.consumers[connection];
        consumer.is_acking = !consumer.taken.is_empty();
        if consumer.is_acking {
            return self.codec.push_acks(&consumer.taken, self.max > 1, out);
        }
        if self.left == 0 || Instant::now() >= self.deadline {
            return 0;
        }
        let now_ms = wall_ms();
        let mut asked = 0;
        while asked < self.pipeline && self.left > 0 {
            self.codec.push_take(self.max, now_ms, out);
            self.left = self.left.saturating_sub(self.max as u64);
            asked += 1;
        }
        asked
    }

    fn reply(&mut self, connection: usize, input: &[u8]) -> Result<Option<usize>> {
        let Consumer { taken, is_acking } = &mut self.consumers[connection];
        if !*is_acking {
            let before = taken.len();
            let len = self.codec.take_reply(input, taken)?;
            if len.is_some() && taken.len() == before {
                return Err(format!("a job that is due is missing after {}", self.done).into());
            }
            return Ok(len);
        }
        let jobs = if self.max > 1 { taken.len() } else { 1 };
        let len = self.codec.ack_reply(input, jobs)?;
        if len.is_some() {
            self.done += jobs as u64;
            for number in taken.numbers.drain(..jobs) {
                self.acked.take(number)?;
            }
            if taken.numbers.is_empty() {
                taken.clear();
            }
        }
        Ok(len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_is_taken_once() {
        let mut acked = AckedJobs::default();
        acked.put_until(3);
        assert!(acked.take(2).is_ok());
        assert!(acked.take(2).is_err());
        assert!(acked.take(3).is_err());
        assert_eq!((acked.next(), acked.left), (3, 2));
    }
}
