//! ack, nack, release, extend, kill: end or renew a lease by its token.

use std::time::Duration;

use bytes::Bytes;
use dormouse_core::job::{JobId, Token};
use dormouse_core::op::{self, ChainReply, EndReply, ExtendReply, KillTarget, Target, refused_put};

use crate::call::{Call, Items};
use crate::change::by_key;
use crate::put::Put;
use crate::queue::Queue;
use crate::time::span_ms;

impl Queue {
    /// The job is done and removed. A second ack answers `Gone` and is harmless.
    pub fn ack(&self, token: Token) -> Call<Token, EndReply> {
        Call::new(self, Ok(token), |queue, token| queue.call_one(op::Ack(vec![token])))
    }

    /// Acks many; answers per token, in order.
    pub fn ack_many(
        &self,
        tokens: impl IntoIterator<Item = Token>,
    ) -> Call<Vec<Token>, Items<EndReply>> {
        Call::new(self, Ok(tokens.into_iter().collect()), |queue, tokens| {
            queue.call(op::Ack(tokens))
        })
    }

    /// The job is done, and those that come after it are put in the same step: all of it, or
    /// nothing. If a put is refused, the answer names it and the lease goes on. On `Gone`, as to
    /// an ack that is sent again, nothing was put.
    ///
    /// On Redis, jobs of other partitions are put before the ack, under keys that make a repeat
    /// harmless.
    ///
    /// ```
    /// # use dormouse::{EndReply, Put, Queue};
    /// let queue = Queue::memory();
    /// queue.put("resize", "cat.jpg").wait()?;
    /// let job = queue.reserve_one("resize").wait()?.expect("it is due");
    /// let next = [Put::new("upload", "cat-small.jpg").key("cat"), Put::new("notify", "cat.jpg")];
    /// let reply = job.ack_and_put(next).wait()?;
    /// assert_eq!((reply.end, reply.puts.len()), (EndReply::Done, 2));
    /// # Ok::<(), dormouse::Error>(())
    /// ```
    pub fn ack_and_put(
        &self,
        token: Token,
        puts: impl IntoIterator<Item = Put>,
    ) -> Call<op::Chain, ChainReply> {
        let puts = puts
            .into_iter()
            .enumerate()
            .map(|(index, put)| put.into_job().map_err(|error| refused_put(index, error)));
        let chain = puts.collect::<Result<_, _>>().map(|puts| op::Chain { token, puts });
        Call::new(self, chain, Queue::call)
    }

    /// The attempt failed: the job is retried after its backoff, or is dead if that was its last
    /// attempt.
    ///
    /// ```
    /// # use dormouse::{Queue, LeasedJob};
    /// # use std::time::Duration;
    /// # async fn f(queue: Queue, job: LeasedJob) -> Result<(), dormouse::Error> {
    /// queue.nack(job.token()).delay(Duration::from_secs(5)).error("mail server is away").await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn nack(&self, token: Token) -> Call<op::Nack, EndReply> {
        let options = op::Nack { token, delay_ms: None, priority: None, error: None };
        Call::new(self, Ok(options), Queue::call)
    }

    /// Nacks many; answers per item, in order.
    pub fn nack_many(&self, items: Vec<op::Nack>) -> Call<Vec<op::Nack>, Items<EndReply>> {
        Call::new(self, Ok(items), Queue::call)
    }

    /// Gives the job back: it is ready again with no attempt spent.
    pub fn release(&self, token: Token) -> Call<op::Release, EndReply> {
        Call::new(self, Ok(op::Release::now(token)), Queue::call)
    }

    /// Releases many; answers per token, in order.
    pub fn release_many(
        &self,
        tokens: impl IntoIterator<Item = Token>,
    ) -> Call<Vec<op::Release>, Items<EndReply>> {
        Call::new(self, Ok(tokens.into_iter().map(op::Release::now).collect()), Queue::call)
    }

    /// Renews the lease, for its own length or a given one from now.
    pub fn extend(&self, token: Token) -> Call<op::Extend, ExtendReply> {
        Call::new(self, Ok(op::Extend { token, ttr_ms: None }), Queue::call)
    }

    /// Renews many for their own lengths; answers per token, in order.
    pub fn extend_many(
        &self,
        tokens: impl IntoIterator<Item = Token>,
    ) -> Call<Vec<op::Extend>, Items<ExtendReply>> {
        let items = tokens.into_iter().map(|token| op::Extend { token, ttr_ms: None }).collect();
        Call::new(self, Ok(items), Queue::call)
    }

    /// Makes a leased job dead, until it is revived.
    pub fn kill(&self, token: Token) -> Call<op::Kill, EndReply> {
        self.kill_target(Ok(KillTarget::Token(token)))
    }

    /// Makes a delayed or ready job dead.
    pub fn kill_id(&self, id: JobId) -> Call<op::Kill, EndReply> {
        self.kill_target(Ok(KillTarget::Resting(Target::Id(id))))
    }

    /// Makes the delayed or ready job of this key dead.
    pub fn kill_key(&self, topic: &str, key: impl AsRef<[u8]>) -> Call<op::Kill, EndReply> {
        self.kill_target(by_key(topic, key.as_ref()).map(KillTarget::Resting))
    }

    fn kill_target(
        &self,
        target: Result<KillTarget, dormouse_core::error::Error>,
    ) -> Call<op::Kill, EndReply> {
        let options = target.map(|target| op::Kill { target, error: None, priority: None });
        Call::new(self, options, Queue::call)
    }
}

impl Call<op::Nack, EndReply> {
    /// Replaces the job's backoff.
    pub fn delay(self, delay: Duration) -> Self {
        self.set(|nack| nack.delay_ms = Some(span_ms(delay)))
    }

    /// Changes the job's priority.
    pub fn priority(self, priority: u32) -> Self {
        self.set(|nack| nack.priority = Some(priority))
    }

    /// The reason, kept with the job; a long text is cut.
    pub fn error(self, text: impl Into<String>) -> Self {
        self.set(|nack| nack.error = Some(Bytes::from(text.into())))
    }
}

impl Call<op::Release, EndReply> {
    /// Ready after this delay instead of now.
    pub fn delay(self, delay: Duration) -> Self {
        self.set(|release| release.delay_ms = Some(span_ms(delay)))
    }

    /// Changes the job's priority.
    pub fn priority(self, priority: u32) -> Self {
        self.set(|release| release.priority = Some(priority))
    }
}

impl Call<op::Extend, ExtendReply> {
    /// Replaces the lease's own length.
    pub fn ttr(self, ttr: Duration) -> Self {
        self.set(|extend| extend.ttr_ms = Some(span_ms(ttr)))
    }
}

impl Call<op::Kill, EndReply> {
    /// The reason, kept with the job; a long text is cut.
    pub fn error(self, text: impl Into<String>) -> Self {
        self.set(|kill| kill.error = Some(Bytes::from(text.into())))
    }

    /// Changes the job's priority.
    pub fn priority(self, priority: u32) -> Self {
        self.set(|kill| kill.priority = Some(priority))
    }
}
