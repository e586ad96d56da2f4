//! The engine's threads: how they end, and that a failure reaches everybody.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use dormouse_core::backend::{Answer, Backend, Request, Sink, Ticket};
use dormouse_core::command::{Command, Reply};
use dormouse_core::error::Code;
use dormouse_core::op::{Put, Reserve};
use dormouse_core::topic::TopicName;
use dormouse_disk::engine::{Durability, Engine, Options};

/// Long enough for any machine; a test that waits so long has failed.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Passes answers on, and drops the engine it holds with the first one.
struct Holder {
    engine: Mutex<Option<Engine>>,
    answers: Mutex<Sender<Answer>>,
}

impl Sink for Holder {
    fn deliver(&self, answers: &mut Vec<(Ticket, Answer)>) {
        self.engine.lock().unwrap().take();
        for (_, answer) in answers.drain(..) {
            let _ = self.answers.lock().unwrap().send(answer);
        }
    }
}

fn holder(engine: Option<Engine>) -> (Arc<Holder>, Receiver<Answer>) {
    let (answers, arrived) = channel();
    (Arc::new(Holder { engine: Mutex::new(engine), answers: Mutex::new(answers) }), arrived)
}

fn topic() -> TopicName {
    TopicName::new("orders").unwrap()
}

fn put() -> Vec<Request> {
    let command = Command::Put(vec![Put::new(topic(), "body")]);
    vec![Request::new(Ticket::next(), command)]
}

fn call(engine: &Engine, command: Command) -> Answer {
    let (sink, arrived) = holder(None);
    engine.submit(vec![Request::new(Ticket::next(), command)], sink).unwrap();
    arrived.recv_timeout(TIMEOUT).unwrap()
}

#[test]
fn a_sink_may_drop_the_last_handle() {
    let dir = tempfile::tempdir().unwrap();
    for engine in
        [Engine::memory(Options::default()), Engine::open(dir.path(), Options::default()).unwrap()]
    {
        let submitter = engine.clone();
        let (sink, arrived) = holder(Some(engine));
        submitter.submit(put(), sink).unwrap();
        drop(submitter);
        assert!(matches!(arrived.recv_timeout(TIMEOUT), Ok(Ok(Reply::Put(_)))));
    }
}

#[test]
fn a_closed_directory_can_be_opened_at_once() {
    let dir = tempfile::tempdir().unwrap();
    for round in 0..10 {
        let engine = Engine::open(dir.path(), Options::default()).unwrap();
        let put = Command::Put(vec![Put::new(topic(), "body")]);
        assert!(matches!(call(&engine, put), Ok(Reply::Put(done)) if done[0].is_ok()), "{round}");
        engine.close().unwrap();
        let refused = engine.submit(self::put(), holder(None).0).unwrap_err();
        assert_eq!(refused.code, Code::Unavailable);
    }
}

#[test]
fn relaxed_answers_survive_a_clean_stop() {
    let dir = tempfile::tempdir().unwrap();
    let relaxed = Options { durability: Durability::Relaxed { ms: 50 }, ..Options::default() };
    let engine = Engine::open(dir.path(), relaxed).unwrap();
    for _ in 0..100 {
        let put = Command::Put(vec![Put::new(topic(), "body")]);
        assert!(matches!(call(&engine, put), Ok(Reply::Put(done)) if done[0].is_ok()));
    }
    engine.close().unwrap();
    let engine = Engine::open(dir.path(), Options::default()).unwrap();
    let reserve =
        Reserve { topics: vec![topic()], max: 200, wait_ms: 0, ttr_ms: None, session: None };
    let Ok(Reply::Jobs(jobs)) = call(&engine, Command::Reserve(reserve)) else { panic!() };
    assert_eq!(jobs.len(), 100);
}

#[test]
fn closing_answers_what_waits() {
    let engine = Engine::memory(Options::default());
    let (sink, arrived) = holder(None);
    let reserve =
        Reserve { topics: vec![topic()], max: 1, wait_ms: 60_000, ttr_ms: None, session: None };
    let waiting = Request::new(Ticket::next(), Command::Reserve(reserve));
    engine.submit(vec![waiting], sink).unwrap();
    engine.close().unwrap();
    let answer = arrived.recv_timeout(TIMEOUT).unwrap();
    assert_eq!(answer.unwrap_err().code, Code::Unavailable);
}

/// Panics with the first answer.
struct Bomb;

impl Sink for Bomb {
    fn deliver(&self, _answers: &mut Vec<(Ticket, Answer)>) {
        panic!("a sink of the test panics");
    }
}

fn both(test: impl Fn(Engine)) {
    let dir = tempfile::tempdir().unwrap();
    test(Engine::memory(Options::default()));
    test(Engine::open(dir.path(), Options::default()).unwrap());
}

fn wait_for_a_job() -> Request {
    let reserve =
        Reserve { topics: vec![topic()], max: 1, wait_ms: 60_000, ttr_ms: None, session: None };
    Request::new(Ticket::next(), Command::Reserve(reserve))
}

#[test]
fn a_sink_that_panics_leaves_nobody_waiting() {
    both(|engine| {
        let (sink, arrived) = holder(None);
        // Two wait, the second behind a reserve whose answer is a panic on the engine thread.
        engine.submit(vec![wait_for_a_job()], sink.clone()).unwrap();
        let other = TopicName::new("other").unwrap();
        let bad = Reserve { topics: vec![other], max: 1, wait_ms: 0, ttr_ms: None, session: None };
        let bad = Request::new(Ticket::next(), Command::Reserve(bad));
        engine.submit(vec![bad], Arc::new(Bomb)).unwrap();
        for _ in 0..2 {
            if engine.submit(vec![wait_for_a_job()], sink.clone()).is_ok() {
                let answer = arrived.recv_timeout(TIMEOUT).unwrap();
                assert_eq!(answer.unwrap_err().code, Code::Unavailable);
            }
        }
        let error = engine.wait_stopped().unwrap_err();
        assert_eq!(error.code, Code::Unavailable);
        assert!(error.text.contains("panicked"), "{error}");
        assert_eq!(engine.close().unwrap_err(), error, "everybody is told the same");
    });
}

#[test]
fn a_panic_at_a_durable_answer_leaves_nobody_waiting() {
    both(|engine| {
        let (sink, arrived) = holder(None);
        engine.submit(put(), Arc::new(Bomb)).unwrap();
        let others = (0..10).filter(|_| engine.submit(put(), sink.clone()).is_ok()).count();
        for _ in 0..others {
            // Taken before or after: it has an answer.
            let _ = arrived.recv_timeout(TIMEOUT).unwrap();
        }
        assert!(engine.wait_stopped().unwrap_err().text.contains("panicked"));
    });
}

#[test]
fn all_who_wait_for_the_end_are_told() {
    both(|engine| {
        let (told, ends) = channel();
        let waiting: Vec<_> = (0..3)
            .map(|_| {
                let (engine, told) = (engine.clone(), told.clone());
                std::thread::spawn(move || told.send(engine.wait_stopped()).unwrap())
            })
            .collect();
        assert!(ends.recv_timeout(Duration::from_millis(50)).is_err(), "nothing has ended");
        assert!(call(&engine, put().remove(0).command).is_ok(), "waiting closes nothing");
        engine.close().unwrap();
        for thread in waiting {
            assert_eq!(ends.recv_timeout(TIMEOUT), Ok(Ok(())));
            thread.join().unwrap();
        }
    });
}
