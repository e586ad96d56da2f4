//! Reserves that wait: a connection for each, used again, withdrawn, moved to another server.

use std::thread;
use std::time::{Duration, Instant};

use dormouse_client::{ConnectOptions, RemoteBackend};
use dormouse_core::backend::Ticket;
use dormouse_core::command::{Command, Reply};
use dormouse_core::error::Code;

use crate::client::{ack, lock, quick, reserve, send};
use crate::fake::{Fake, Peer};

fn open(url: &str, fake: &Fake, options: ConnectOptions) -> (RemoteBackend, Peer) {
    let url = url.to_owned();
    let opening = thread::spawn(move || RemoteBackend::open(&url, &options));
    let peer = fake.greet();
    (opening.join().expect("no panic").expect("it is open"), peer)
}

const NOTHING: Result<Reply, dormouse_core::error::Error> = Ok(Reply::Jobs(Vec::new()));

#[test]
fn a_wait_holds_up_no_command_and_its_connection_is_used_again() {
    let fake = Fake::new();
    let (backend, mut commands) = open(&fake.url(), &fake, ConnectOptions::default());
    let waiting = send(&backend, reserve(60_000));
    let mut waits = fake.greet();
    let words = waits.expect("RESERVE");
    assert!(words.windows(2).any(|pair| pair == ["WAIT", "60000"]), "{words:?}");
    let acked = send(&backend, ack());
    commands.expect("ACK");
    commands.say("+OK\r\n");
    assert!(acked.answer().is_ok());
    waits.say("*0\r\n");
    assert_eq!(waiting.answer(), NOTHING);
    let again = send(&backend, reserve(1_000));
    waits.expect("RESERVE");
    waits.say("*0\r\n");
    assert_eq!(again.answer(), NOTHING);
}

#[test]
fn a_reserve_that_does_not_wait_needs_no_connection_of_its_own() {
    let fake = Fake::new();
    let (backend, mut commands) = open(&fake.url(), &fake, ConnectOptions::default());
    let pending = send(&backend, reserve(0));
    commands.expect("RESERVE");
    commands.say("*0\r\n");
    assert_eq!(pending.answer(), NOTHING);
}

#[test]
fn one_wait_too_many_is_busy() {
    let fake = Fake::new();
    let options = ConnectOptions { waits_max: 1, ..ConnectOptions::default() };
    let (backend, _commands) = open(&fake.url(), &fake, options);
    let first = send(&backend, reserve(60_000));
    send(&backend, reserve(60_000)).refused(Code::Busy, "waits_max");
    let mut waits = fake.greet();
    waits.expect("RESERVE");
    waits.say("*0\r\n");
    assert_eq!(first.answer(), NOTHING);
}

/// The server answers what is withdrawn, with what it has.
#[test]
fn a_withdrawal_ends_the_sending_side_and_takes_the_last_answer() {
    let fake = Fake::new();
    let (backend, _commands) = open(&fake.url(), &fake, ConnectOptions::default());
    let waiting = send(&backend, reserve(60_000));
    let mut waits = fake.greet();
    waits.expect("RESERVE");
    let withdrawn = send(&backend, Command::Withdraw(waiting.ticket));
    assert!(waits.command().is_empty());
    waits.say("*0\r\n");
    assert_eq!(waiting.answer(), NOTHING);
    assert_eq!(withdrawn.answer(), Ok(Reply::Done));
    let unknown = send(&backend, Command::Withdraw(Ticket::next()));
    assert_eq!(unknown.answer(), Ok(Reply::Done));
}

#[test]
fn a_withdrawal_from_a_server_that_goes() {
    let fake = Fake::new();
    let (backend, _commands) = open(&fake.url(), &fake, ConnectOptions::default());
    let waiting = send(&backend, reserve(60_000));
    let mut waits = fake.greet();
    waits.expect("RESERVE");
    let withdrawn = send(&backend, Command::Withdraw(waiting.ticket));
    drop(waits);
    assert_eq!(waiting.answer(), NOTHING);
    assert_eq!(withdrawn.answer(), Ok(Reply::Done));
}

/// It may have been granted in the last moment.
#[test]
fn a_withdrawn_lock_from_a_server_that_goes_is_unconfirmed() {
    let fake = Fake::new();
    let (backend, _commands) = open(&fake.url(), &fake, ConnectOptions::default());
    let waiting = send(&backend, lock(60_000));
    let mut waits = fake.greet();
    waits.expect("LOCK");
    let withdrawn = send(&backend, Command::Withdraw(waiting.ticket));
    drop(waits);
    waiting.refused(Code::Unconfirmed, "may or may not be held");
    assert_eq!(withdrawn.answer(), Ok(Reply::Done));
}

/// A server that ends each connection at once gets no storm of them.
#[test]
fn connections_for_waits_that_break_at_once_are_opened_with_pauses() {
    let fake = Fake::new();
    let (backend, _commands) = open(&fake.url(), &fake, ConnectOptions::default());
    let waiting = send(&backend, reserve(60_000));
    let begun = Instant::now();
    for _ in 0..6 {
        fake.greet().expect("RESERVE");
    }
    // Half of 20, 40, 80, 160 and 320 ms.
    assert!(begun.elapsed() >= Duration::from_millis(310), "{:?}", begun.elapsed());
    let mut waits = fake.greet();
    waits.expect("RESERVE");
    waits.say("*0\r\n");
    assert_eq!(waiting.answer(), NOTHING);
}

#[test]
fn a_wait_without_a_connection_is_withdrawn_at_once() {
    let fake = Fake::new();
    let (backend, _commands) = open(&fake.url(), &fake, ConnectOptions::default());
    let waiting = send(&backend, reserve(60_000));
    let withdrawn = send(&backend, Command::Withdraw(waiting.ticket));
    assert_eq!(waiting.answer(), NOTHING);
    assert_eq!(withdrawn.answer(), Ok(Reply::Done));
}

#[test]
fn a_wait_goes_on_at_the_next_server() {
    let (first, second) = (Fake::new(), Fake::new());
    let urls = format!("{},{}", first.url(), second.url());
    let (backend, commands) = open(&urls, &first, ConnectOptions::default());
    let waiting = send(&backend, reserve(60_000));
    let mut waits = first.greet();
    waits.expect("RESERVE");
    drop((waits, commands, first));
    let mut waits = second.greet();
    waits.expect("RESERVE");
    waits.say("*0\r\n");
    assert_eq!(waiting.answer(), NOTHING);
}

#[test]
fn a_wait_is_given_up_after_its_own_time() {
    let fake = Fake::new();
    let (backend, commands) = open(&fake.url(), &fake, quick());
    let waiting = send(&backend, reserve(100));
    let mut waits = fake.greet();
    waits.expect("RESERVE");
    drop((waits, commands, fake));
    waiting.refused(Code::Unavailable, "no server can be reached");
}
