//! Admission: how much a backend takes before it answers `busy`, the same rule everywhere.
//!
//! A backend keeps a [`Load`] of what it holds, asks [`Admission::admit`] before it takes a batch,
//! and subtracts what it is done with. When it holds nothing, any batch is admitted, so a batch
//! above the limits is not refused for ever.

use crate::command::Command;
use crate::error::{Code, Error};
use crate::limits::{INBOX_BYTES_MAX, INBOX_RELIEF, INBOX_REQUESTS_MAX};

/// Requests and their bytes, as [`Command::weight`] counts them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// Requests.
    pub requests: usize,
    /// Bytes of them.
    pub bytes: usize,
}

impl std::ops::SubAssign for Load {
    fn sub_assign(&mut self, done: Load) {
        self.requests -= done.requests;
        self.bytes -= done.bytes;
    }
}

/// The demands of a batch.
#[derive(Clone, Copy, Debug)]
pub struct Admission {
    load: Load,
    has_put: bool,
}

impl Admission {
    /// Weighs a batch.
    pub fn of<'c>(commands: impl Iterator<Item = &'c Command>) -> Admission {
        let mut admission = Admission { load: Load::default(), has_put: false };
        for command in commands {
            admission.load.requests += 1;
            admission.load.bytes += command.weight();
            admission.has_put |= matches!(
                command,
                Command::Put(_)
                    | Command::Chain(_)
                    | Command::PutSchedule(_)
                    | Command::RunSchedule(_)
            );
        }
        admission
    }

    /// The load that the batch adds once it is admitted.
    pub fn load(&self) -> Load {
        self.load
    }

    /// The load with this batch, or `busy`. Batches without a put take work away, so they are
    /// admitted when those with one no longer are.
    pub fn admit(&self, held: Load) -> Result<Load, Error> {
        let share = if self.has_put { 1 } else { INBOX_RELIEF };
        let (requests_max, bytes_max) = (share * INBOX_REQUESTS_MAX, share * INBOX_BYTES_MAX);
        let Load { requests, bytes } = held;
        let after =
            Load { requests: requests + self.load.requests, bytes: bytes + self.load.bytes };
        if requests > 0 && (after.requests > requests_max || after.bytes > bytes_max) {
            return Err(Error::new(
                Code::Busy,
                format!(
                    "{requests} requests of {bytes} bytes wait already, the limits are \
                     {requests_max} and {bytes_max}; try again in a moment"
                ),
            ));
        }
        Ok(after)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::op::Put;
    use crate::topic::TopicName;

    fn put() -> Command {
        Command::Put(vec![Put::new(TopicName::new("t").expect("a name"), vec![0; 1_000])])
    }

    fn admission(command: &Command) -> Admission {
        Admission::of(std::iter::once(command))
    }

    #[test]
    fn puts_are_refused_before_what_takes_work_away() {
        let (put, ack) = (put(), Command::Ack(Vec::new()));
        let full = Load { requests: INBOX_REQUESTS_MAX, bytes: 0 };
        let heavy = Load { requests: 1, bytes: INBOX_BYTES_MAX };
        for held in [full, heavy] {
            let refused = admission(&put).admit(held).expect_err("no room");
            assert_eq!(refused.code, Code::Busy);
            assert!(admission(&ack).admit(held).is_ok(), "{held:?}");
            let twice = Load { requests: 2 * held.requests, bytes: 2 * held.bytes };
            assert!(admission(&ack).admit(twice).is_err(), "{twice:?}");
        }
    }

    #[test]
    fn one_batch_is_always_admitted() {
        let large = vec![put(); INBOX_REQUESTS_MAX + 1];
        let large = Admission::of(large.iter());
        let mut load = large.admit(Load::default()).expect("nothing is held");
        assert!(load.bytes > INBOX_BYTES_MAX);
        assert!(large.admit(load).is_err());
        load -= large.load();
        assert_eq!(load, Load::default());
    }
}
