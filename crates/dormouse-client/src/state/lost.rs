//! Connections that break, servers that are silent, calls that nobody will answer.

use std::time::{Duration, Instant};

use dormouse_core::command::{Command, Reply};
use dormouse_core::error::{Code, Error};

use super::call::{Call, Sent, nothing};
use super::{Conn, ConnId, Phase, State, Todo};
use crate::limits::WAIT_IDLE_MS;
use crate::repeat::{harmless_for, is_only_read, not_repeated, unconfirmed, unreadable};

/// Why a connection is gone.
pub(crate) struct Loss {
    pub(crate) why: String,
    /// What came is no reply. The same command may be answered so again, after it has taken more
    /// jobs.
    is_garbage: bool,
}

impl Loss {
    pub(crate) fn broken(why: impl Into<String>) -> Loss {
        Loss { why: why.into(), is_garbage: false }
    }

    pub(crate) fn garbage(why: String) -> Loss {
        Loss { why, is_garbage: true }
    }
}

impl State {
    /// A connection is gone. Each of its calls is kept to be sent again, or answered. `partly` is
    /// the call of which the reader has some replies.
    pub(crate) fn lose(
        &mut self,
        id: ConnId,
        partly: Option<Sent>,
        server: &str,
        loss: &Loss,
        now: Instant,
        todo: &mut Todo,
    ) {
        let Some(mut conn) = self.conns.remove(&id) else { return };
        todo.close.push(std::sync::Arc::clone(&conn.stream));
        if self.commands == Some(id) {
            self.commands = None;
        }
        if conn.is_for_waits {
            self.waits -= 1;
            self.idle.retain(|(idle, _)| *idle != id);
        }
        if conn.withdrawn_by.is_none() && conn.is_young(now) {
            self.unstable_at = Some(now);
        }
        // The garbage came instead of the answer that was due next.
        let guilty = (loss.is_garbage && partly.is_none())
            .then(|| conn.sent.front().map(|sent| sent.call.ticket))
            .flatten();
        if let Some(sent) = partly {
            // Its load was taken off when the reader took it.
            let error = unconfirmed(&sent.call.command, server, &loss.why);
            let answer = sent.reader.finish_with(&error);
            todo.answer(&sent.call, answer);
        }
        let sent = std::mem::take(&mut conn.sent);
        // From the last to the first, because each goes to the front.
        for sent in sent.into_iter().rev() {
            self.parked.remove(&sent.call.ticket);
            let is_guilty = guilty == Some(sent.call.ticket);
            self.lose_call(&conn, sent, is_guilty, (server, loss), now, todo);
        }
        if let Some((ticket, sink)) = conn.withdrawn_by {
            todo.answers.push(&sink, ticket, Ok(Reply::Done));
        }
        todo.connect |= self.need().is_some();
    }

    fn lose_call(
        &mut self,
        conn: &Conn,
        sent: Sent,
        is_guilty: bool,
        (server, loss): (&str, &Loss),
        now: Instant,
        todo: &mut Todo,
    ) {
        let is_unsent = conn.is_unsent(&sent);
        let Sent { mut call, sent_at, wait, .. } = sent;
        if conn.withdrawn_by.is_some() {
            // A lease that was given in the last moment ends by itself; a lock is held.
            let answer = match &call.command {
                Command::Lock(_) if !is_unsent => {
                    Err(unconfirmed(&call.command, server, &loss.why))
                }
                command => nothing(command),
            };
            return self.answer(&call, answer, todo);
        }
        if is_guilty {
            let error = unreadable(&call.command, server, &loss.why);
            return self.answer(&call, Err(error), todo);
        }
        let until = call.until.get_or_insert(now + self.repeat_for);
        if !is_unsent && let Some(harmful_at) = sent_at.checked_add(harmless_for(&call.command)) {
            *until = harmful_at.min(*until);
        }
        if self.phase != Phase::Open || *until <= now {
            let error = unconfirmed(&call.command, server, &loss.why);
            return self.answer(&call, Err(error), todo);
        }
        call.is_repeat |= !is_unsent;
        if conn.is_for_waits {
            shorten_wait(&mut call.command, wait, now.duration_since(sent_at));
            self.queued_waits.push_front(call);
        } else {
            self.queued.push_front(call);
        }
    }

    /// No server could be reached. A reason that does not pass is the answer to all that is kept.
    pub(crate) fn connect_failed(&mut self, error: Error, todo: &mut Todo) {
        if error.code != Code::Unavailable {
            for call in self.take_queued() {
                self.answer(&call, Err(error.clone()), todo);
            }
        }
        self.trouble = Some(error);
    }

    fn take_queued(&mut self) -> Vec<Call> {
        self.queued.drain(..).chain(self.queued_waits.drain(..)).collect()
    }

    /// The server that is silent while it owes an answer; and gives up what was kept for too long.
    pub(crate) fn check_time(&mut self, now: Instant, todo: &mut Todo) -> Vec<ConnId> {
        self.close_idle(now, todo);
        let is_late = |call: &Call| call.until.is_some_and(|until| until <= now);
        for is_wait in [false, true] {
            let queue = if is_wait { &mut self.queued_waits } else { &mut self.queued };
            if !queue.iter().any(is_late) {
                continue;
            }
            let (late, kept): (Vec<Call>, Vec<Call>) =
                std::mem::take(queue).into_iter().partition(is_late);
            *queue = kept.into();
            for call in late {
                let error = self.gave_up(&call);
                self.answer(&call, Err(error), todo);
            }
        }
        let silent = |conn: &Conn| conn.overdue_at(self.answer_timeout).is_some_and(|at| at <= now);
        self.conns.iter().filter(|(_, conn)| silent(conn)).map(|(id, _)| *id).collect()
    }

    fn gave_up(&self, call: &Call) -> Error {
        let seconds = self.repeat_for.as_secs_f32();
        let why = match &self.trouble {
            Some(error) => error.text.to_string(),
            None => {
                let urls = &self.urls;
                format!("no connection to {urls} was ready in time; the server may be overloaded")
            }
        };
        if call.is_repeat && !is_only_read(&call.command) {
            return not_repeated(&call.command, &why);
        }
        Error::unavailable(format!("given up after {seconds} s: {why}"))
    }

    /// When `check_time` has something to do.
    pub(crate) fn next_time(&self) -> Option<Instant> {
        let queued = self.queued.iter().chain(&self.queued_waits).filter_map(|call| call.until);
        let answers = self.conns.values().filter_map(|conn| conn.overdue_at(self.answer_timeout));
        let kept = Duration::from_millis(WAIT_IDLE_MS);
        let idle = self.idle.iter().map(|(_, since)| *since + kept);
        queued.chain(answers).chain(idle).min()
    }

    /// Takes no more. What waits is ended, what was not sent is refused.
    pub(crate) fn close(&mut self, todo: &mut Todo) {
        self.phase = Phase::Closing;
        for call in self.take_queued() {
            self.answer(&call, Err(closed()), todo);
        }
        for conn in self.conns.values_mut().filter(|conn| conn.is_for_waits) {
            todo.finish.push(std::sync::Arc::clone(&conn.stream));
            if let Some(sent) = conn.sent.front_mut() {
                sent.wait = Duration::ZERO;
            }
        }
        (todo.connect, todo.wake) = (true, true);
    }

    /// Whether every answer has come that can come.
    pub(crate) fn is_quiet(&self) -> bool {
        self.conns.values().all(Conn::is_quiet)
    }
}

/// What everybody hears after `close`.
pub(crate) fn closed() -> Error {
    Error::unavailable("this queue was closed; connect again")
}

/// A reserve that waits again waits for the rest of its time.
fn shorten_wait(command: &mut Command, wait: Duration, passed: Duration) {
    if let Command::Reserve(reserve) = command {
        let left_ms = wait.saturating_sub(passed).as_millis();
        reserve.wait_ms = i64::try_from(left_ms).unwrap_or(i64::MAX).max(1);
    }
}
