//! A connection, turn by turn.

use std::future::{Future, poll_fn};
use std::io;
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use dormouse_core::backend::Answer;
use dormouse_core::command::{Command, Reply};
use dormouse_core::error::Error;
use dormouse_core::op::{Target, Unlock};
use dormouse_core::refusal::no_job;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::watch;

use super::answers::Answers;
use super::group::{Group, Pending};
use super::input::Input;
use super::listen::PipelineContext;
use super::output::Output;
use super::turn::{Item, Outcome, Step, Turn, outcomes_of_acks, outcomes_of_puts};
use super::{CloseReason, Flow, Protocol};
use crate::access::mask_absent;
use crate::client::{Custody, PendingBatch, may_wait};

/// How long a client that is told goodbye has to hear it.
const LINGER: Duration = Duration::from_secs(1);

/// One connection.
pub(super) struct Connection<S, P: Protocol> {
    socket: S,
    protocol: P,
    context: PipelineContext,
    input: Input,
    output: Output,
    stopping: watch::Receiver<bool>,
}

/// A group under way.
struct Sent<T> {
    /// `None`: there was nothing to ask.
    asked: Option<Result<PendingBatch, Error>>,
    may_wait: bool,
    pending: Vec<Pending<T>>,
    locks: Vec<(usize, Unlock)>,
}

impl<S, P> Connection<S, P>
where
    S: AsyncRead + AsyncWrite + Unpin,
    P: Protocol,
{
    pub(super) fn new(socket: S, protocol: P, context: PipelineContext) -> Connection<S, P> {
        let input = Input::new(context.inputs.clone());
        let output = Output::new(context.answers.clone());
        let stopping = context.client.stop_signal();
        Connection { socket, protocol, context, input, output, stopping }
    }

    /// Goes on until the client leaves, the protocol closes or the server stops.
    pub(super) async fn converse(&mut self) -> io::Result<()> {
        loop {
            let mut turn = Turn::new();
            let before = self.input.bytes.len();
            let flow = self.protocol.read(&mut self.input.bytes, &mut turn);
            if self.input.bytes.len() < before {
                self.input.taken();
            }
            let is_full = !turn.has_room();
            if !turn.is_empty() {
                self.answer(turn).await?;
            }
            if flow == Flow::Close {
                return self.hang_up().await;
            }
            if self.context.client.is_stopping() {
                return Ok(());
            }
            if is_full {
                continue;
            }
            if self.input.is_over() || !self.listen().await? {
                return Ok(());
            }
        }
    }

    /// Waits for more input; false = the connection is to be closed.
    async fn listen(&mut self) -> io::Result<bool> {
        if let Err(why) = self.input.admit() {
            return self.dismiss(why).await;
        }
        let deadline = self.input.deadline();
        let patience = async {
            match deadline {
                Some(deadline) => tokio::time::sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        };
        let is_slow = tokio::select! {
            biased;
            filled = self.input.fill(&mut self.socket) => return filled.map(|()| true),
            () = patience => true,
            _ = self.stopping.wait_for(|&stopping| stopping) => false,
        };
        if is_slow { self.dismiss(CloseReason::Slow).await } else { Ok(false) }
    }

    async fn dismiss(&mut self, why: CloseReason) -> io::Result<bool> {
        tracing::debug!(?why, "a connection is closed");
        self.protocol.on_close(why, &mut self.output.bytes);
        self.output.flush(&mut self.socket).await?;
        self.hang_up().await.map(|()| false)
    }

    /// Says no more, and listens to nothing for a moment: a socket that is closed with something
    /// unread throws away what was said last.
    async fn hang_up(&mut self) -> io::Result<()> {
        // Who hears the end takes it for the end of everything that is the connection's.
        self.end();
        let silence = async {
            self.socket.shutdown().await?;
            while !self.input.is_over() {
                self.input.bytes.clear();
                self.input.fill(&mut self.socket).await?;
            }
            Ok(())
        };
        tokio::time::timeout(LINGER, silence).await.unwrap_or(Ok(()))
    }

    /// Does what a turn asks, and answers.
    async fn answer(&mut self, turn: Turn<P::PendingReply>) -> io::Result<()> {
        let mut group = Group::new();
        for item in turn.into_items() {
            match item {
                Item::Ask(mut step) if self.must_look(&step) => {
                    self.settle(group).await?;
                    group = Group::new();
                    match self.look(&mut step).await {
                        Ok(()) => group.push(Item::Ask(step)),
                        Err(error) => self.write(step.then, Outcome::Answer(Err(error))).await?,
                    }
                }
                // As long as a put is not synced, a reserve behind it is given what comes after it.
                Item::Ask(step) if is_reserve(&step) && group.has_puts() => {
                    self.settle(group).await?;
                    self.settle(Group::of(step)).await?;
                    group = Group::new();
                }
                // It is the last, so nothing comes behind it. Both are sent at once: a worker's ack
                // and its next reserve are one trip.
                Item::Ask(step) if may_wait(&step.command) => {
                    let sent = self.send(group);
                    let waiting = self.send(Group::of(step));
                    self.receive(sent).await?;
                    self.receive(waiting).await?;
                    group = Group::new();
                }
                Item::Ask(step) if matches!(step.command, Command::List(_)) => {
                    self.settle(group).await?;
                    group = Group::new();
                    self.page(step).await?;
                }
                item => group.push(item),
            }
        }
        self.settle(group).await?;
        self.output.flush(&mut self.socket).await
    }

    fn must_look(&self, step: &Step<P::PendingReply>) -> bool {
        step.check.as_ref().is_some_and(|(verb, _)| !self.protocol.grant().covers_all(*verb))
    }

    async fn look(&mut self, step: &mut Step<P::PendingReply>) -> Result<(), Error> {
        let Some((verb, ids)) = step.check.take() else { return Ok(()) };
        let grant = self.protocol.grant().clone();
        let absent = grant.check_jobs(&self.context.client, verb, ids.iter().copied()).await?;
        match (ids.as_slice(), &step.command) {
            // These tell by themselves that the job is gone.
            (_, Command::Ack(_) | Command::Nack(_) | Command::Release(_) | Command::Get(_)) => {}
            ([id], _) if absent.contains(id) => {
                return Err(no_job(&Target::Id(*id)));
            }
            _ => {}
        }
        mask_absent(&mut step.command, &absent);
        Ok(())
    }

    /// Large answers are asked for one after the other. Others may go on while this one is sent.
    async fn page(&mut self, step: Step<P::PendingReply>) -> io::Result<()> {
        let pages = Arc::clone(&self.context.pages);
        let turn = pages.acquire().await;
        let mut sent = self.send(Group::of(step));
        let answers = self.answers_of(&mut sent).await?;
        drop(turn);
        self.tell(sent.pending, answers).await
    }

    async fn settle(&mut self, group: Group<P::PendingReply>) -> io::Result<()> {
        let sent = self.send(group);
        self.receive(sent).await
    }

    fn send(&self, group: Group<P::PendingReply>) -> Sent<P::PendingReply> {
        let Group { commands, pending, locks } = group;
        let may_wait = commands.iter().any(may_wait);
        let asked = (!commands.is_empty()).then(|| self.context.client.send(commands));
        Sent { asked, may_wait, pending, locks }
    }

    /// Waits for a group's answers, and writes them.
    async fn receive(&mut self, mut sent: Sent<P::PendingReply>) -> io::Result<()> {
        let answers = self.answers_of(&mut sent).await?;
        self.tell(sent.pending, answers).await
    }

    async fn answers_of(&mut self, sent: &mut Sent<P::PendingReply>) -> io::Result<Answers> {
        let answers = match sent.asked.take() {
            None => return Ok(Answers::none(&self.context)),
            Some(Ok(asked)) => self.wait(asked, sent.may_wait).await?,
            Some(Err(error)) => {
                let said =
                    |pending: &&Pending<P::PendingReply>| matches!(pending, Pending::Said(_));
                let count = sent.pending.len() - sent.pending.iter().filter(said).count();
                vec![Err(error); count]
            }
        };
        Ok(Answers::of(&self.context, answers, mem::take(&mut sent.locks)))
    }

    async fn tell(
        &mut self,
        pending: Vec<Pending<P::PendingReply>>,
        mut answers: Answers,
    ) -> io::Result<()> {
        for pending in pending {
            match pending {
                Pending::Said(said) => self.output.bytes.unsplit(said),
                Pending::Puts(thens) => {
                    let (answer, _) = answers.next();
                    self.context.note_puts(&answer);
                    self.write_each(outcomes_of_puts(answer, thens.len()), thens).await?;
                }
                Pending::Acks(thens) => {
                    let outcomes = outcomes_of_acks(answers.next().0, thens.len());
                    self.write_each(outcomes, thens).await?;
                }
                Pending::Asked(then) => {
                    let (answer, custody) = answers.next();
                    self.take_charge(&answer, custody);
                    self.write(then, Outcome::Answer(answer)).await?;
                }
            }
        }
        Ok(())
    }

    /// What is granted is given back unless the client gets it.
    fn take_charge(&mut self, answer: &Answer, custody: Option<Custody>) {
        if let Ok(Reply::Jobs(jobs)) = answer {
            self.context.metrics.handed_out(jobs);
        }
        self.output.carry(custody);
    }

    async fn write_each(
        &mut self,
        outcomes: Vec<Outcome>,
        thens: Vec<P::PendingReply>,
    ) -> io::Result<()> {
        for (outcome, then) in outcomes.into_iter().zip(thens) {
            let next = self.protocol.write(then, outcome, &mut self.output.bytes);
            debug_assert!(next.is_none(), "only what was asked last may go on");
            if self.output.is_large() {
                self.output.flush(&mut self.socket).await?;
            }
        }
        Ok(())
    }

    /// Writes one outcome, and does what it leads to.
    async fn write(&mut self, then: P::PendingReply, outcome: Outcome) -> io::Result<()> {
        let mut next = self.protocol.write(then, outcome, &mut self.output.bytes);
        while let Some(step) = next {
            let mut sent = self.send(Group::of(step));
            let (answer, custody) = self.answers_of(&mut sent).await?.next();
            let Some(Pending::Asked(then)) = sent.pending.pop() else { break };
            self.take_charge(&answer, custody);
            next = self.protocol.write(then, Outcome::Answer(answer), &mut self.output.bytes);
        }
        if self.output.is_large() { self.output.flush(&mut self.socket).await } else { Ok(()) }
    }

    /// Waits for answers. Of those that may wait: what is written already leaves first, and if the
    /// client leaves or the server stops meanwhile, they are answered with nothing.
    async fn wait(&mut self, mut asked: PendingBatch, may_wait: bool) -> io::Result<Vec<Answer>> {
        if !may_wait {
            return Ok(asked.await);
        }
        if let Some(answers) = ready(&mut asked).await {
            return Ok(answers);
        }
        self.output.flush(&mut self.socket).await?;
        let mut is_withdrawn = self.input.is_over();
        if is_withdrawn {
            asked.withdraw();
        }
        loop {
            tokio::select! {
                biased;
                answers = &mut asked => return Ok(answers),
                filled = self.input.fill(&mut self.socket), if self.input.may_read_ahead() => {
                    filled?;
                    if self.input.is_over() {
                        asked.withdraw();
                    }
                }
                _ = self.stopping.wait_for(|&stopping| stopping), if !is_withdrawn => {
                    asked.withdraw();
                    is_withdrawn = true;
                }
            }
        }
    }
}

impl<S, P: Protocol> Connection<S, P> {
    /// What is left to do when it is over; the first time only.
    fn end(&mut self) {
        self.context.client.submit_unread(self.protocol.end());
    }
}

fn is_reserve<T>(step: &Step<T>) -> bool {
    matches!(step.command, Command::Reserve(_))
}

impl<S, P: Protocol> Drop for Connection<S, P> {
    /// However it ended.
    fn drop(&mut self) {
        self.end();
    }
}

/// The output of a future that is done already.
async fn ready<F: Future + Unpin>(future: &mut F) -> Option<F::Output> {
    poll_fn(|cx| match Pin::new(&mut *future).poll(cx) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => Poll::Ready(None),
    })
    .await
}

#[cfg(test)]
mod tests;
