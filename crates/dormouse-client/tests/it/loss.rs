//! Connections that break: what is sent again, and what its caller hears.

use std::sync::Arc;
use std::thread;
use std::time::Instant;

use dormouse_client::{ConnectOptions, RemoteBackend};
use dormouse_core::backend::{Backend, Discard};
use dormouse_core::command::{Command, Reply};
use dormouse_core::error::Code;
use dormouse_core::op::{EndReply, Put, Release, Stats};

use crate::client::{ack, put, put_keyed, quick, reserve, send, topic};
use crate::fake::{Fake, LONG, Peer};

/// A client and its first connection.
fn open(fake: &Fake, options: ConnectOptions) -> (RemoteBackend, Peer) {
    let url = fake.url();
    let opening = thread::spawn(move || RemoteBackend::open(&url, &options));
    let peer = fake.greet();
    (opening.join().expect("no panic").expect("it is open"), peer)
}

#[test]
fn answers_belong_to_their_commands_in_whatever_pieces_they_come() {
    let fake = Fake::new();
    let (backend, mut peer) = open(&fake, ConnectOptions::default());
    let many = Command::Put(vec![Put::new(topic(), "a"), Put::new(topic(), "b")]);
    let (first, second, third) =
        (send(&backend, put()), send(&backend, many), send(&backend, ack()));
    for _ in 0..3 {
        peer.expect("PUT");
    }
    peer.expect("ACK");
    let reply = |id| format!("*4\r\n$1\r\n{id}\r\n+created\r\n_\r\n:0\r\n");
    let all = format!("{}{}{}+OK\r\n", reply(1), reply(2), reply(3));
    for byte in all.chars() {
        peer.say(&byte.to_string());
    }
    assert_eq!(first.ids(), [1]);
    assert_eq!(second.ids(), [2, 3]);
    assert_eq!(third.answer(), Ok(Reply::Ended(vec![Ok(EndReply::Done)])));
}

#[test]
fn a_lost_answer_of_a_put_is_unconfirmed_unless_its_key_is_taken_for_a_while() {
    let fake = Fake::new();
    let (backend, mut peer) = open(&fake, ConnectOptions::default());
    let plain = send(&backend, put());
    let (free, held) = (send(&backend, put_keyed(None)), send(&backend, put_keyed(Some(60_000))));
    for _ in 0..3 {
        peer.expect("PUT");
    }
    drop(peer);
    plain.refused(Code::Unconfirmed, "with a key");
    // A worker may have acked the job, and then the key is free.
    free.refused(Code::Unconfirmed, "key_ttl");
    let mut peer = fake.greet();
    let again = peer.expect("PUT");
    assert!(again.contains(&"60000".to_owned()), "{again:?}");
    peer.say("*4\r\n$2\r\n42\r\n+duplicate\r\n+ready\r\n:0\r\n");
    assert_eq!(held.ids(), [42]);
}

#[test]
fn a_put_is_not_sent_again_after_its_key_may_be_free() {
    let fake = Fake::new();
    let options = ConnectOptions { repeat_for: 10 * LONG, ..ConnectOptions::default() };
    let (backend, mut peer) = open(&fake, options);
    let pending = send(&backend, put_keyed(Some(300)));
    peer.expect("PUT");
    drop((peer, fake));
    pending.refused(Code::Unconfirmed, "key_ttl");
}

#[test]
fn items_that_were_answered_stay_so() {
    let fake = Fake::new();
    let (backend, mut peer) = open(&fake, ConnectOptions::default());
    let many = Command::Put(vec![Put::new(topic(), "a"), Put::new(topic(), "b")]);
    let pending = send(&backend, many);
    peer.expect("PUT");
    peer.expect("PUT");
    peer.created(5);
    drop(peer);
    let Ok(Reply::Put(items)) = pending.answer() else { panic!("no list") };
    assert_eq!(items[0].as_ref().map(|put| put.id.0), Ok(5));
    assert_eq!(items[1].as_ref().map_err(|error| error.code), Err(Code::Unconfirmed));
}

#[test]
fn a_refusal_that_the_first_time_may_have_caused_is_unconfirmed() {
    let fake = Fake::new();
    let (backend, mut peer) = open(&fake, ConnectOptions::default());
    let token = "7.9".parse().expect("a token");
    let release = Command::Release(vec![Release::now(token)]);
    let (released, acked) = (send(&backend, release), send(&backend, ack()));
    peer.expect("RELEASE");
    peer.expect("ACK");
    drop(peer);
    let mut peer = fake.greet();
    peer.expect("RELEASE");
    peer.expect("ACK");
    peer.say("-LEASELOST it went on\r\n+GONE\r\n");
    released.refused(Code::Unconfirmed, "it went on");
    // It is gone because the first ack arrived.
    assert_eq!(acked.answer(), Ok(Reply::Ended(vec![Ok(EndReply::Done)])));
}

#[test]
fn garbage_ends_the_connection_and_not_the_client() {
    let fake = Fake::new();
    let (backend, mut peer) = open(&fake, ConnectOptions::default());
    let pending = send(&backend, put());
    peer.expect("PUT");
    peer.say("what is this\r\n");
    pending.refused(Code::Unconfirmed, "what is this");
    let pending = send(&backend, put());
    let mut peer = fake.greet();
    peer.expect("PUT");
    peer.created(1);
    assert_eq!(pending.ids(), [1]);
}

/// Sent again, it would take more jobs each time.
#[test]
fn a_command_that_is_answered_with_garbage_is_not_sent_again() {
    let fake = Fake::new();
    let (backend, mut peer) = open(&fake, ConnectOptions::default());
    let before = send(&backend, put());
    let (reserved, behind) = (send(&backend, reserve(0)), send(&backend, ack()));
    peer.expect("PUT");
    peer.expect("RESERVE");
    peer.expect("ACK");
    peer.say("*4\r\n$1\r\n1\r\n+created\r\n+ready\r\n:0\r\nwhat is this\r\n");
    assert_eq!(before.ids(), [1], "its answer came before");
    reserved.refused(Code::Unavailable, "what is this");
    let mut peer = fake.greet();
    peer.expect("ACK");
    peer.say("+OK\r\n");
    assert_eq!(behind.answer(), Ok(Reply::Ended(vec![Ok(EndReply::Done)])));
}

#[test]
fn a_reply_of_another_kind_is_an_error_of_its_own_command() {
    let fake = Fake::new();
    let (backend, mut peer) = open(&fake, ConnectOptions::default());
    let (first, second) = (send(&backend, put()), send(&backend, ack()));
    peer.expect("PUT");
    peer.say(":7\r\n+OK\r\n");
    first.refused(Code::Unavailable, "versions that belong together");
    assert_eq!(second.answer(), Ok(Reply::Ended(vec![Ok(EndReply::Done)])));
}

/// Half a reply, and a server that then says nothing: as one that is stopped by a signal.
#[test]
fn a_silent_server_is_given_up() {
    let fake = Fake::new();
    let (backend, mut peer) = open(&fake, quick());
    let begun = Instant::now();
    let pending = send(&backend, put());
    peer.expect("PUT");
    peer.say("*4\r\n$1\r\n1\r\n+crea");
    pending.refused(Code::Unconfirmed, "no answer came in time");
    assert!(begun.elapsed() >= quick().answer_timeout);
}

#[test]
fn without_a_server_commands_are_given_up_with_the_reason() {
    let fake = Fake::new();
    let url = fake.url();
    let (backend, peer) = open(&fake, quick());
    drop((peer, fake));
    let begun = Instant::now();
    // The first may go out before the loss is noticed: it only reads.
    let stats = Command::Stats(Stats { topic: None });
    send(&backend, stats).refused(Code::Unavailable, "given up after 0.5 s");
    send(&backend, put()).refused(Code::Unavailable, &url);
    assert!(begun.elapsed() >= quick().repeat_for);
}

#[test]
fn a_token_that_is_refused_later_ends_all_at_once() {
    let fake = Fake::new();
    let (backend, peer) = open(&fake, ConnectOptions::default());
    drop(peer);
    let pending = send(&backend, ack());
    let mut peer = fake.accept();
    peer.expect("HELLO");
    peer.say("-WRONGPASS not known\r\n");
    pending.refused(Code::Unauthorized, "not known");
}

#[test]
fn what_cannot_be_carried_says_so() {
    let fake = Fake::new();
    let (backend, _peer) = open(&fake, ConnectOptions::default());
    send(&backend, Command::OpenSession).refused(Code::Invalid, "sessions");
    let large = Command::Put(vec![Put::new(topic(), vec![0; 16 << 20])]);
    send(&backend, large).refused(Code::TooLarge, "keep large bodies elsewhere");
    assert_eq!(send(&backend, Command::Put(Vec::new())).ids(), [0_u64; 0]);
}

/// The socket takes only a part: the rest goes when the server reads again.
#[test]
fn a_pipeline_that_the_socket_does_not_take_at_once() {
    let fake = Fake::new();
    let (backend, mut peer) = open(&fake, ConnectOptions::default());
    let body = vec![b'x'; 1 << 20];
    let pending: Vec<_> = (0..32)
        .map(|_| send(&backend, Command::Put(vec![Put::new(topic(), body.clone())])))
        .collect();
    for id in 0..32 {
        peer.expect("PUT");
        peer.created(id);
    }
    for (id, pending) in (0..32).zip(pending) {
        assert_eq!(pending.ids(), [id]);
    }
}

#[test]
fn close_waits_for_answers_and_refuses_what_comes_later() {
    let fake = Fake::new();
    let (backend, mut peer) = open(&fake, ConnectOptions::default());
    let backend = Arc::new(backend);
    let pending = send(&backend, put());
    peer.expect("PUT");
    let closing = {
        let backend = Arc::clone(&backend);
        thread::spawn(move || backend.close())
    };
    while backend.submit(Vec::new(), Arc::new(Discard)).is_ok() {
        thread::yield_now();
    }
    peer.created(1);
    assert_eq!(pending.ids(), [1]);
    closing.join().expect("no panic");
    backend.close();
}

#[test]
fn close_does_not_wait_for_what_waits() {
    let fake = Fake::new();
    let (backend, _peer) = open(&fake, ConnectOptions::default());
    let pending = send(&backend, reserve(60_000));
    let mut waiting = fake.greet();
    waiting.expect("RESERVE");
    let closing = thread::spawn(move || backend.close());
    assert!(waiting.command().is_empty(), "its sending side is ended");
    waiting.say("*0\r\n");
    assert_eq!(pending.answer(), Ok(Reply::Jobs(Vec::new())));
    closing.join().expect("no panic");
}
