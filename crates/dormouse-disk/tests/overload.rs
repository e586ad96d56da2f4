//! More than the disk can take: puts are refused, operations that remove work are not.

mod common;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use dormouse_core::backend::{Backend, Request};
use dormouse_core::command::{Command, Reply};
use dormouse_core::error::Code;
use dormouse_core::limits::{INBOX_BYTES_MAX, INBOX_REQUESTS_MAX};
use dormouse_core::op::{Cancel, Put, Target};
use dormouse_disk::engine::{Engine, Options};

use common::gate::{Gate, GateDisk};
use common::{TIMEOUT, call, put_one, request, reserve, reserve_of, sink, topic};

fn cancel_of(id: dormouse_core::job::JobId) -> Command {
    Command::Cancel(vec![Cancel { target: Target::Id(id), unless_leased: false }])
}

#[test]
fn acks_cancels_and_reserves_are_taken_when_puts_are_not() {
    let dir = tempfile::tempdir().unwrap();
    let disk = GateDisk::new(dir.path());
    let engine = Engine::open_on(Arc::new(disk.clone()), Options::default()).unwrap();
    let ids: Vec<_> = (0..30).map(|_| put_one(&engine, Put::new(topic("t"), "x"))).collect();
    let leased = reserve(&engine, "t", 10);
    disk.set(Gate::Shut);

    let body = Bytes::from(vec![0; 256 << 10]);
    let (puts, put_answers) = sink();
    let (mut taken, mut refusals) = (0, 0);
    let refused = loop {
        let put = request(Command::Put(vec![Put::new(topic("big"), body.clone())]));
        match engine.submit(vec![put], puts.clone()) {
            Ok(()) => (taken, refusals) = (taken + 1, 0),
            // The engine thread may still be on its way to where it waits.
            Err(_) if refusals < 20 => {
                refusals += 1;
                std::thread::sleep(Duration::from_millis(20));
            }
            Err(error) => break error,
        }
    };
    assert_eq!(refused.code, Code::Busy);
    assert!(refused.text.contains(&INBOX_BYTES_MAX.to_string()), "{refused}");
    assert!(taken >= INBOX_BYTES_MAX / body.len() - 1, "{taken} puts");

    let (others, answers) = sink();
    let acks = leased.iter().map(|job| Command::Ack(vec![job.token]));
    let cancels = ids[10..20].iter().map(|&id| cancel_of(id));
    let commands = acks.chain(cancels).chain((0..10).map(|_| reserve_of("t", 1)));
    for command in commands {
        engine.submit(vec![request(command)], others.clone()).unwrap();
    }
    assert!(answers.try_recv().is_err(), "answered while nothing can be synced");

    // Even they have an end.
    let page = || -> Vec<Request> { (0..1_000).map(|_| request(reserve_of("none", 1))).collect() };
    let mut pages = 0;
    let refused = loop {
        match engine.submit(page(), others.clone()) {
            Ok(()) => pages += 1,
            Err(error) => break error,
        }
    };
    assert_eq!(refused.code, Code::Busy);
    assert!(pages >= INBOX_REQUESTS_MAX / 1_000, "{pages} pages");

    disk.set(Gate::Open);
    let answer = || answers.recv_timeout(TIMEOUT).unwrap().unwrap();
    let mut replies: Vec<Reply> = (0..30 + pages * 1_000).map(|_| answer()).collect();
    replies.retain(|reply| !matches!(reply, Reply::Jobs(jobs) if jobs.is_empty()));
    let count = |wanted: fn(&Reply) -> bool| replies.iter().filter(|reply| wanted(reply)).count();
    assert_eq!(count(|reply| matches!(reply, Reply::Ended(ends) if ends[0].is_ok())), 10);
    assert_eq!(count(|reply| matches!(reply, Reply::Changed(done) if done[0].is_ok())), 10);
    assert_eq!(count(|reply| matches!(reply, Reply::Jobs(jobs) if jobs.len() == 1)), 10);
    for _ in 0..taken {
        put_answers.recv_timeout(TIMEOUT).unwrap().unwrap();
    }
    assert!(call(&engine, Command::Put(vec![Put::new(topic("t"), "x")])).is_ok());
}
