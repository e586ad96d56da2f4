//! The thread that reads every connection, writes what sockets did not take at once, and keeps
//! time.

use std::collections::HashMap;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use dormouse_core::backend::ReplyGroups;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::codec::{Garbage, Scanner};
use crate::limits::READ_BYTES;
use crate::shared::Shared;
use crate::state::{ConnId, Loss, Phase, Sent, Todo};
use crate::stream::Stream;

/// The input of one connection.
#[derive(Default)]
struct Inbound {
    buffer: BytesMut,
    scanner: Scanner,
    /// The call of which not all replies have come.
    partly: Option<Sent>,
}

/// A connection to wait for.
struct Watched {
    id: ConnId,
    stream: Arc<Stream>,
    is_blocked: bool,
    has_failed: bool,
}

/// Runs until the client is closed.
pub(crate) fn run(shared: &Shared) {
    let mut inbounds: HashMap<ConnId, Inbound> = HashMap::new();
    let (mut watched, mut portion) = (Vec::new(), vec![0; READ_BYTES]);
    let mut was_busy = true;
    loop {
        let prepared = prepare(shared, &mut inbounds, &mut watched, was_busy);
        let Some(timeout) = prepared else { return };
        let ready = wait(shared, &watched, timeout);
        was_busy = ready.iter().any(|flags| !flags.is_empty());
        shared.woken();
        for (conn, flags) in watched.iter().zip(ready) {
            if flags.contains(PollFlags::OUT) {
                shared.flush_blocked(conn.id);
            }
            let is_readable = !(flags - PollFlags::OUT).is_empty();
            if is_readable || conn.has_failed {
                let inbound = inbounds.entry(conn.id).or_default();
                let mut read = read(shared, conn, inbound, &mut portion);
                if conn.has_failed {
                    read = read.and(Err(Loss::broken("it takes nothing any more")));
                }
                if let Err(loss) = read {
                    let partly = inbound.partly.take();
                    lose(shared, conn.id, partly, &loss);
                }
            }
        }
    }
}

/// Does what is due by the clock, and lists the connections. `None` = the end; else how long there
/// is time, if not for ever.
fn prepare(
    shared: &Shared,
    inbounds: &mut HashMap<ConnId, Inbound>,
    watched: &mut Vec<Watched>,
    was_busy: bool,
) -> Option<Option<Duration>> {
    let now = Instant::now();
    let mut todo = Todo::default();
    let mut state = shared.lock();
    let is_over = state.phase == Phase::Closed;
    let is_due = state.next_time().is_some_and(|at| at <= now);
    let silent = if is_due { state.check_time(now, &mut todo) } else { Vec::new() };
    drop(state);
    shared.perform(todo);
    for id in silent {
        let partly = inbounds.get_mut(&id).and_then(|inbound| inbound.partly.take());
        lose(shared, id, partly, &Loss::broken("no answer came in time"));
    }
    if is_over {
        end(shared, inbounds);
        return None;
    }
    let mut state = shared.lock();
    watched.clear();
    watched.extend(state.conns().map(|(id, conn)| Watched {
        id,
        stream: Arc::clone(&conn.stream),
        is_blocked: conn.is_blocked(),
        has_failed: conn.has_failed,
    }));
    let sleep = state.reader_sleep(now, was_busy);
    drop(state);
    if inbounds.len() > watched.len() {
        inbounds.retain(|id, _| watched.iter().any(|conn| conn.id == *id));
    }
    if watched.iter().any(|conn| conn.has_failed) {
        return Some(Some(Duration::ZERO));
    }
    Some(sleep)
}

/// Waits for sockets; gives the state of each.
fn wait(shared: &Shared, watched: &[Watched], timeout: Option<Duration>) -> Vec<PollFlags> {
    let mut fds = Vec::with_capacity(watched.len() + 1);
    for conn in watched {
        let out = if conn.is_blocked { PollFlags::OUT } else { PollFlags::empty() };
        fds.push(PollFd::from_borrowed_fd(conn.stream.as_fd(), PollFlags::IN | out));
    }
    fds.push(PollFd::from_borrowed_fd(shared.wake_fd(), PollFlags::IN));
    // Rounded up: a wait that ends too early would only be repeated.
    let timeout = timeout.map(|timeout| timeout + Duration::from_millis(1));
    let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
    // It fails only if it is interrupted: then nothing is ready.
    if poll(&mut fds, timeout.as_ref()).is_err() {
        return vec![PollFlags::empty(); watched.len()];
    }
    fds.iter().take(watched.len()).map(PollFd::revents).collect()
}

/// Reads what has come, and delivers the answers in it.
fn read(
    shared: &Shared,
    conn: &Watched,
    inbound: &mut Inbound,
    portion: &mut [u8],
) -> Result<(), Loss> {
    loop {
        match conn.stream.read(portion) {
            Ok(0) => return Err(Loss::broken("the server closed it")),
            Ok(read) => {
                inbound.buffer.extend_from_slice(&portion[..read]);
                let (frames, garbage) = split(inbound);
                if frames.is_empty() {
                    // A large reply takes its time: the server is not silent.
                    if let Some(conn) = shared.lock().conn(conn.id) {
                        conn.heard_at = Instant::now();
                    }
                } else {
                    deliver(shared, conn.id, inbound, frames)?;
                }
                if let Some(garbage) = garbage {
                    return Err(Loss::garbage(garbage.0));
                }
                if read < portion.len() && conn.stream.is_drained() {
                    return Ok(());
                }
            }
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(Loss::broken(error.to_string())),
        }
    }
}

/// Takes the whole replies off the input; and what comes behind them, if it is none.
fn split(inbound: &mut Inbound) -> (Vec<Bytes>, Option<Garbage>) {
    let mut frames = Vec::new();
    let Inbound { buffer, scanner, .. } = inbound;
    loop {
        match scanner.next(buffer) {
            Ok(Some(length)) => frames.push(buffer.split_to(length).freeze()),
            Ok(None) => return (frames, None),
            Err(garbage) => return (frames, Some(garbage)),
        }
    }
}

/// Reads replies for the calls they belong to, in order.
fn deliver(
    shared: &Shared,
    id: ConnId,
    inbound: &mut Inbound,
    frames: Vec<Bytes>,
) -> Result<(), Loss> {
    let now = Instant::now();
    let owed = inbound.partly.as_ref().map_or(0, |sent| sent.reader.missing());
    let mut todo = Todo::default();
    let answered = {
        let mut state = shared.lock();
        state.take_answered(id, frames.len(), owed, now, &mut todo)
    };
    let mut calls = inbound.partly.take().into_iter().chain(answered);
    let mut answers = ReplyGroups::default();
    let mut current = calls.next();
    let mut is_unasked = false;
    for frame in frames {
        // A reply that nobody asked for: the server says why it closes.
        let Some(sent) = &mut current else {
            is_unasked = true;
            break;
        };
        sent.reader.add(&sent.call.command, &frame);
        if sent.reader.missing() == 0
            && let Some(Sent { call, reader, .. }) = current.take()
        {
            let answer = call.judge(reader.finish());
            answers.push(&call.sink, call.ticket, answer);
            current = calls.next();
        }
    }
    inbound.partly = current;
    answers.append(&mut todo.answers);
    todo.answers = answers;
    shared.perform(todo);
    shared.quiet.notify_all();
    if is_unasked { Err(Loss::broken("the server closes it")) } else { Ok(()) }
}

/// A connection is gone.
fn lose(shared: &Shared, id: ConnId, partly: Option<Sent>, loss: &Loss) {
    let mut todo = Todo::default();
    let mut state = shared.lock();
    let server = state.conn(id).map(|conn| conn.server).unwrap_or_default();
    let server = shared.connector.url(server);
    state.lose(id, partly, &server, loss, Instant::now(), &mut todo);
    drop(state);
    shared.perform(todo);
    shared.quiet.notify_all();
}

/// The last: whoever still waits hears that no answer will come.
fn end(shared: &Shared, inbounds: &mut HashMap<ConnId, Inbound>) {
    let ids: Vec<ConnId> = shared.lock().conns().map(|(id, _)| id).collect();
    for id in ids {
        let partly = inbounds.get_mut(&id).and_then(|inbound| inbound.partly.take());
        lose(shared, id, partly, &Loss::broken("the queue was closed"));
    }
}
