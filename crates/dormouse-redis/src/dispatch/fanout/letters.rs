//! Dead letters. A job that dies where the topic has a dead topic is set aside by the script that
//! ends it; the letter is put into the dead topic under a key of its own, and then the job is
//! erased. If a server ends in between, another one does the rest: the letter's key tells that it
//! is there.

use std::rc::Rc;
use std::time::Duration;

use dormouse_core::error::{Code, Error};
use dormouse_core::job::Job;
use dormouse_core::machine::dead_letter;
use dormouse_core::op::Put;
use tokio::time::timeout;

use super::Fanout;
use crate::dispatch::Topic;
use crate::limits::LETTER_KEY_TTL_MS;
use crate::partition::{Effect, Partition, PartitionRequest, registered_anew};
use crate::wire::{Op, Reader, Writer, number, progress, record};

/// Letters of one portion.
const PORTION: u64 = 32;
/// How long the answer about a death waits for its letter.
const ANSWER_DELAY_MAX: Duration = Duration::from_millis(500);

impl Fanout<'_> {
    /// Sends the letters of a partition, until none waits. One task at a time does it: others would
    /// put each letter again.
    pub(crate) async fn send_letters(self, partition: &Rc<Partition>) -> Result<(), Error> {
        let _turn = partition.letters.lock().await;
        while self.send_portion(partition).await? {}
        Ok(())
    }

    /// Sends some letters; true = there may be more.
    async fn send_portion(self, partition: &Rc<Partition>) -> Result<bool, Error> {
        let jobs = self.read_letters(partition).await?;
        let dead_topic = partition.config.borrow().settings.dead_topic.clone();
        let topic = match &dead_topic {
            Some(name) => Some(self.dispatcher.find_or_create(name).await?),
            None => None,
        };
        let mut pending = Vec::with_capacity(jobs.len());
        for job in &jobs {
            pending.push(match (&partition.topic, &dead_topic, &topic) {
                (Some(from), Some(to), Some(topic)) => Some(
                    self.send_letter(topic, dead_letter(from, to.clone(), job, &job.progress))?,
                ),
                // There is no dead topic any more: they rest as dead.
                _ => None,
            });
        }
        let (mut ends, mut failed) = (Vec::with_capacity(jobs.len()), None);
        for (job, sent) in jobs.iter().zip(pending) {
            let is_sent = match sent {
                Some(sent) => sent.await,
                None => Ok(false),
            };
            match is_sent {
                Ok(is_sent) => {
                    ends.push(Writer::default().id(job.id).u8(u8::from(is_sent)).take());
                }
                Err(error) => failed = Some(error),
            }
        }
        if !ends.is_empty() {
            let op = Op::new("end_letters", ends);
            self.submit_op(partition, Effect::Change, op).await?;
        }
        failed.map_or(Ok(!jobs.is_empty()), Err)
    }

    /// The jobs that died first, as they were then.
    async fn read_letters(self, partition: &Partition) -> Result<Vec<Job>, Error> {
        let op = Op::new("letters", vec![number(PORTION)]);
        let mut raw = self.submit_op(partition, Effect::Read, op).await?;
        let mut from = Reader::new(&raw.answer);
        let count = from.u16()?;
        let mut jobs = Vec::with_capacity(usize::from(count));
        for _ in 0..count {
            let (id, text, record) = (from.id()?, from.short_bytes()?, raw.records.next()?);
            // An empty one was removed before the lost reply was requested again.
            if !record.is_empty() {
                let progress = progress::decode(text, false)?;
                jobs.push(Job { id, content: record::decode(&record)?.0, progress });
            }
        }
        Ok(jobs)
    }

    /// Submits a letter now, and returns a future of whether it is in the dead topic; false = there
    /// is no room for it. An error leaves it for later.
    fn send_letter(
        self,
        topic: &Topic,
        letter: Put,
    ) -> Result<impl Future<Output = Result<bool, Error>> + use<>, Error> {
        let key = letter.key.clone().unwrap_or_default();
        let home = topic.partition_of_key(&key).ok_or_else(registered_anew)?;
        let letter = Put { key_ttl_ms: Some(LETTER_KEY_TTL_MS), ..letter };
        let request = |reply_to| PartitionRequest::Put { puts: vec![letter], reply_to };
        let put = self.submit(home, request);
        Ok(async move {
            match put.await?.pop() {
                Some(Ok(_)) => Ok(true),
                // Too many priorities are invalid.
                Some(Err(error)) if matches!(error.code, Code::Full | Code::Invalid) => Ok(false),
                Some(Err(error)) => Err(error),
                None => Err(Error::unavailable("Redis gave no answer about a dead letter")),
            }
        })
    }

    /// Sends letters before deaths are answered, so that who caused them finds the letters. If that
    /// takes too long, they are sent later.
    pub(super) async fn send_letters_of(self, partitions: &[Rc<Partition>]) {
        let has_one = |it: &&Rc<Partition>| it.config.borrow().settings.dead_topic.is_some();
        for partition in partitions.iter().filter(has_one) {
            let sent = timeout(ANSWER_DELAY_MAX, self.send_letters(partition)).await;
            if let Ok(Err(error)) = sent {
                tracing::debug!("redis: cannot send dead letters of {}: {error}", partition.tag);
            }
        }
    }
}
