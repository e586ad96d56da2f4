//! Dead letters. A job that dies where the topic has a dead topic is set aside by the script that
//! ends it; the letter is put into the dead topic, and then the job is erased. If a server ends in
//! between, another one does the rest; several may do it at once. A marker in the dead topic, one
//! per death, decides what becomes of the letter: the first script that writes it has put the
//! letter or given it up, and all servers go by that.

use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use dormouse_core::error::{Code, Error};
use dormouse_core::job::{Job, JobId};
use dormouse_core::machine::dead_letter;
use dormouse_core::op::Put;
use dormouse_core::topic::TopicName;
use tokio::time::timeout;

use super::Fanout;
use crate::codec::put::{Marker, OwnPut};
use crate::dispatch::Topic;
use crate::limits::LETTER_MARKER_TTL_MS;
use crate::partition::{Effect, Partition, PartitionRequest, registered_anew};
use crate::wire::{Op, Reader, Writer, malformed, number, progress, record};

/// Letters of one portion.
const PORTION: u64 = 32;
/// What the marker of a letter names that was given up.
const GIVEN_UP: JobId = JobId(0);
/// How long the answer about a death waits for its letter.
const ANSWER_DELAY_MAX: Duration = Duration::from_millis(500);

/// Letters to send.
struct Portion {
    /// Where they go, which may be another topic than the settings name by now; `None` = there are
    /// none.
    to: Option<TopicName>,
    jobs: Vec<Job>,
    /// Letters beyond these.
    left: u64,
}

impl Fanout<'_> {
    /// Sends a portion of the letters of a partition, unless another task does; true = there are
    /// more.
    pub(crate) async fn send_some_letters(self, partition: &Rc<Partition>) -> Result<bool, Error> {
        match partition.letters.try_lock() {
            Ok(_turn) => self.send_portion(partition).await,
            Err(_) => Ok(false),
        }
    }

    /// Sends the letters of a partition, until none waits. One task of a server at a time does it:
    /// others would put each letter again, to no effect.
    async fn send_letters(self, partition: &Rc<Partition>) -> Result<(), Error> {
        let _turn = partition.letters.lock().await;
        while self.send_portion(partition).await? {}
        Ok(())
    }

    /// Sends some letters; true = there are more.
    async fn send_portion(self, partition: &Rc<Partition>) -> Result<bool, Error> {
        let Portion { to, jobs, left } = self.read_letters(partition).await?;
        let (Some(to), Some(from)) = (to, &partition.topic) else { return Ok(left > 0) };
        let topic = self.dispatcher.find_or_create(&to).await?;
        let mut pending = Vec::with_capacity(jobs.len());
        for job in &jobs {
            let letter = dead_letter(from, to.clone(), job, &job.progress);
            pending.push(self.send_letter(&topic, job, letter)?);
        }
        let (mut ends, mut failed) = (Vec::with_capacity(jobs.len()), None);
        for (job, sent) in jobs.iter().zip(pending) {
            match sent.await {
                Ok(is_sent) => {
                    let mut end = Writer::default();
                    end.id(job.id).u32(job.progress.kills).u8(u8::from(is_sent));
                    ends.push(end.take());
                }
                Err(error) => failed = Some(error),
            }
        }
        if !ends.is_empty() {
            let op = Op::new("end_letters", ends);
            self.submit_op(partition, Effect::Change, op).await?;
        }
        failed.map_or(Ok(left > 0), Err)
    }

    /// The jobs that died first, as they were then.
    async fn read_letters(self, partition: &Partition) -> Result<Portion, Error> {
        let op = Op::new("letters", vec![number(PORTION)]);
        let mut raw = self.submit_op(partition, Effect::Change, op).await?;
        let mut from = Reader::new(&raw.answer);
        let (left, to, count) = (from.u64()?, from.short_bytes()?, from.u16()?);
        let to = std::str::from_utf8(to).ok().and_then(|name| TopicName::new(name).ok());
        let mut jobs = Vec::with_capacity(usize::from(count));
        for _ in 0..count {
            let (id, text, record) = (from.id()?, from.short_bytes()?, raw.records.next()?);
            // An empty one was removed before the lost reply was requested again.
            if !record.is_empty() {
                let progress = progress::decode(text, false)?;
                jobs.push(Job { id, content: record::decode(&record)?.0, progress });
            }
        }
        if to.is_none() && !jobs.is_empty() {
            return Err(malformed("dead letters that go nowhere"));
        }
        Ok(Portion { to: to.filter(|_| !jobs.is_empty()), jobs, left })
    }

    /// Submits a letter now, and returns a future of whether it is in the dead topic; false = there
    /// is no room for it. An error leaves it for later.
    fn send_letter(
        self,
        topic: &Topic,
        job: &Job,
        put: Put,
    ) -> Result<impl Future<Output = Result<bool, Error>>, Error> {
        let key = put.key.clone().unwrap_or_default();
        let home = Rc::clone(topic.partition_of_key(&key).ok_or_else(registered_anew)?);
        // A job that is revived may die again.
        let name = Bytes::from(format!("dormouse:letter:{}:{}", job.id, job.progress.kills));
        let marker = Marker { name: name.clone(), ttl_ms: LETTER_MARKER_TTL_MS };
        let letter = OwnPut { marker: Some(marker), ..put.into() };
        let request = |reply_to| PartitionRequest::OwnPut { puts: vec![letter], reply_to };
        let put = self.submit(&home, request);
        Ok(async move {
            match put.await?.pop() {
                Some(Ok(reply)) => Ok(reply.id != GIVEN_UP),
                // Too many priorities are invalid.
                Some(Err(error)) if matches!(error.code, Code::Full | Code::Invalid) => {
                    self.give_up_letter(&home, name).await
                }
                Some(Err(error)) => Err(error),
                None => Err(Error::unavailable("Redis gave no answer about a dead letter")),
            }
        })
    }

    /// There is no room for a letter. Unless another server has put it meanwhile, none will: true =
    /// it is there.
    async fn give_up_letter(self, home: &Partition, marker: Bytes) -> Result<bool, Error> {
        let op = Op::new("give_up_letter", vec![marker, number(LETTER_MARKER_TTL_MS)]);
        let raw = self.submit_op(home, Effect::Change, op).await?;
        Ok(Reader::new(&raw.answer).id()? != GIVEN_UP)
    }

    /// Sends letters before deaths are answered, so that who caused them finds the letters. If that
    /// takes too long, they are sent later: what was begun can be repeated.
    pub(super) async fn send_letters_of(self, partitions: &[Rc<Partition>]) {
        let has_one = |it: &&Rc<Partition>| it.config.borrow().settings.dead_topic.is_some();
        for partition in partitions.iter().filter(has_one) {
            match timeout(ANSWER_DELAY_MAX, self.send_letters(partition)).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => {
                    tracing::debug!(
                        "redis: cannot send dead letters of {}: {error}",
                        partition.tag
                    );
                }
                Err(_) => partition.expect_tick(0),
            }
        }
    }
}
