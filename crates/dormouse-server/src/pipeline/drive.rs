//! A connection, turn by turn.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use bytes::BytesMut;
use dormouse_core::backend::Answer;
use dormouse_core::command::{Command, Reply};
use dormouse_core::error::Error;
use dormouse_core::op::Unlock;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;

use super::input::Input;
use super::listen::Shared;
use super::output::Output;
use super::turn::{Item, Outcome, Step, Turn, outcomes_of_acks, outcomes_of_puts};
use super::{Farewell, Flow, Protocol};
use crate::access::veil;
use crate::desk::{Asked, Custody, lost, may_wait, unlock_of};

/// One connection.
pub(super) struct Connection<S, P: Protocol> {
    socket: S,
    protocol: P,
    shared: Shared,
    input: Input,
    output: Output,
    stopping: watch::Receiver<bool>,
}

/// Commands that go together.
struct Group<T> {
    commands: Vec<Command>,
    pending: Vec<Pending<T>>,
}

/// What waits for its command's answer.
enum Pending<T> {
    /// Nothing: it is said already.
    Said(BytesMut),
    Puts(Vec<T>),
    Acks(Vec<T>),
    Asked(T, Option<Unlock>),
}

/// A group under way.
struct Sent<T> {
    /// `None`: there was nothing to ask.
    asked: Option<Result<Asked, Error>>,
    may_wait: bool,
    pending: Vec<Pending<T>>,
}

impl<S, P> Connection<S, P>
where
    S: AsyncRead + AsyncWrite + Unpin,
    P: Protocol,
{
    pub(super) fn new(socket: S, protocol: P, shared: Shared) -> Connection<S, P> {
        let input = Input::new(shared.inputs.clone());
        let output = Output::new(shared.answers.clone());
        let stopping = shared.desk.stop_signal();
        Connection { socket, protocol, shared, input, output, stopping }
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
            if flow == Flow::Close || self.shared.desk.is_stopping() {
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

    /// What is left to do when it is over.
    pub(super) fn end(&mut self) {
        self.shared.desk.tell(self.protocol.end());
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
        if is_slow { self.dismiss(Farewell::Slow).await } else { Ok(false) }
    }

    async fn dismiss(&mut self, why: Farewell) -> io::Result<bool> {
        tracing::debug!(?why, "a connection is closed");
        self.protocol.farewell(why, &mut self.output.bytes);
        self.output.flush(&mut self.socket).await.map(|()| false)
    }

    /// Does what a turn asks, and answers.
    async fn answer(&mut self, turn: Turn<P::Then>) -> io::Result<()> {
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
                    let pages = Arc::clone(&self.shared.pages);
                    let _turn = pages.acquire().await;
                    self.settle(Group::of(step)).await?;
                }
                item => group.push(item),
            }
        }
        self.settle(group).await?;
        self.output.flush(&mut self.socket).await
    }

    fn must_look(&self, step: &Step<P::Then>) -> bool {
        step.check.as_ref().is_some_and(|(verb, _)| !self.protocol.grant().covers_all(*verb))
    }

    async fn look(&mut self, step: &mut Step<P::Then>) -> Result<(), Error> {
        let Some((verb, ids)) = step.check.take() else { return Ok(()) };
        let grant = self.protocol.grant().clone();
        let absent = grant.check_jobs(&self.shared.desk, verb, ids.into_iter()).await?;
        veil(&mut step.command, &absent);
        Ok(())
    }

    async fn settle(&mut self, group: Group<P::Then>) -> io::Result<()> {
        let sent = self.send(group);
        self.receive(sent).await
    }

    fn send(&self, group: Group<P::Then>) -> Sent<P::Then> {
        let Group { commands, pending } = group;
        let may_wait = commands.iter().any(may_wait);
        let asked = (!commands.is_empty()).then(|| self.shared.desk.send(commands));
        Sent { asked, may_wait, pending }
    }

    /// Waits for a group's answers, and writes them.
    async fn receive(&mut self, sent: Sent<P::Then>) -> io::Result<()> {
        let Sent { asked, may_wait, pending } = sent;
        let (answers, refused) = match asked {
            None => (Vec::new(), None),
            Some(Ok(asked)) => (self.wait(asked, may_wait).await?, None),
            Some(Err(error)) => (Vec::new(), Some(error)),
        };
        let mut answers = answers.into_iter();
        let mut next = || match (answers.next(), &refused) {
            (Some(answer), _) => answer,
            (None, Some(error)) => Err(error.clone()),
            (None, None) => Err(lost()),
        };
        for pending in pending {
            match pending {
                Pending::Said(said) => self.output.bytes.unsplit(said),
                Pending::Puts(thens) => {
                    let answer = next();
                    self.shared.note_puts(&answer);
                    self.write_each(outcomes_of_puts(answer, thens.len()), thens).await?;
                }
                Pending::Acks(thens) => {
                    let outcomes = outcomes_of_acks(next(), thens.len());
                    self.write_each(outcomes, thens).await?;
                }
                Pending::Asked(then, unlock) => {
                    let answer = self.take_charge(next(), unlock);
                    self.write(then, Outcome::Answer(answer)).await?;
                }
            }
        }
        Ok(())
    }

    /// What is granted is given back unless the client gets it; what does not fit now is not even
    /// written.
    fn take_charge(&mut self, answer: Answer, unlock: Option<Unlock>) -> Answer {
        let reply = answer?;
        let custody = Custody::of(&self.shared.desk, &reply, unlock);
        self.shared.room_for(&reply)?;
        if let Reply::Jobs(jobs) = &reply {
            self.shared.metrics.handed_out(jobs);
        }
        self.output.carry(custody);
        Ok(reply)
    }

    async fn write_each(&mut self, outcomes: Vec<Outcome>, thens: Vec<P::Then>) -> io::Result<()> {
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
    async fn write(&mut self, then: P::Then, outcome: Outcome) -> io::Result<()> {
        let mut next = self.protocol.write(then, outcome, &mut self.output.bytes);
        while let Some(step) = next {
            let Step { command, then, .. } = step;
            let (may_wait, unlock) = (may_wait(&command), unlock_of(&command));
            let answer = match self.shared.desk.send(vec![command]) {
                Ok(asked) => self.wait(asked, may_wait).await?.pop(),
                Err(error) => Some(Err(error)),
            };
            let answer = self.take_charge(answer.unwrap_or_else(|| Err(lost())), unlock);
            next = self.protocol.write(then, Outcome::Answer(answer), &mut self.output.bytes);
        }
        if self.output.is_large() { self.output.flush(&mut self.socket).await } else { Ok(()) }
    }

    /// Waits for answers. Of those that may wait: what is written already leaves first, and if the
    /// client leaves or the server stops meanwhile, they are answered with nothing.
    async fn wait(&mut self, mut asked: Asked, may_wait: bool) -> io::Result<Vec<Answer>> {
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

/// The output of a future that is done already.
async fn ready<F: Future + Unpin>(future: &mut F) -> Option<F::Output> {
    poll_fn(|cx| match Pin::new(&mut *future).poll(cx) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => Poll::Ready(None),
    })
    .await
}

impl<T> Group<T> {
    fn new() -> Group<T> {
        Group { commands: Vec::new(), pending: Vec::new() }
    }

    fn of(step: Step<T>) -> Group<T> {
        let mut group = Group::new();
        group.push(Item::Ask(step));
        group
    }

    fn push(&mut self, item: Item<T>) {
        let (command, pending) = match item {
            Item::Say(said) => return self.pending.push(Pending::Said(said)),
            Item::Puts(puts, thens) => (Command::Put(puts), Pending::Puts(thens)),
            Item::Acks(tokens, thens) => (Command::Ack(tokens), Pending::Acks(thens)),
            Item::Ask(Step { command, then, .. }) => {
                let unlock = unlock_of(&command);
                (command, Pending::Asked(then, unlock))
            }
        };
        self.commands.push(command);
        self.pending.push(pending);
    }
}
