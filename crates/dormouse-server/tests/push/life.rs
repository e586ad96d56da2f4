//! Starts, changes and stops.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use dormouse_core::backend::{Backend, Request, Sink};
use dormouse_core::command::{Command, Reply};
use dormouse_core::error::Error;
use dormouse_core::job::State;
use dormouse_disk::engine::Engine;
use dormouse_server::push::PushSettings;

use crate::receiver::{Act, Receiver, answer, ok};
use crate::rig::{Rig, job, to, topic, topics, until};

fn late(ms: u64) -> Act {
    match ok() {
        Act::Send(bytes) => Act::Late(Duration::from_millis(ms), bytes),
        other => other,
    }
}

#[tokio::test]
async fn a_stop_finishes_what_is_under_way() {
    let receiver = Receiver::new(|_, _| late(300)).await;
    let mut settings = to(&receiver.url("/"));
    settings.concurrency = 2;
    let rig = Rig::new(settings).await;
    let ids: Vec<_> = (0..10).map(|n| rig.put(job(&n.to_string()))).collect();
    until("two are under way", || receiver.count() == 2).await;
    let Rig { engine, clock, server, push, topics } = rig;
    server.stop(Duration::from_secs(20)).await;
    let rig = Ended { engine };
    let gone = ids.iter().filter(|id| rig.state(**id).is_none()).count();
    assert_eq!(gone, 2, "those under way, and no others");
    assert_eq!(receiver.count(), 2);
    let ready = ids.iter().filter(|id| rig.state(**id) == Some((State::Ready, 0))).count();
    assert_eq!(ready, 8);
    drop((clock, push, topics));
}

#[tokio::test]
async fn a_stop_gives_back_what_does_not_finish() {
    let receiver = Receiver::new(|_, _| Act::Silence).await;
    let rig = Rig::new(to(&receiver.url("/"))).await;
    let ids: Vec<_> = (0..10).map(|n| rig.put(job(&n.to_string()))).collect();
    until("all are under way", || receiver.count() == 10).await;
    let Rig { engine, server, .. } = rig;
    let begun = Instant::now();
    server.stop(Duration::from_millis(200)).await;
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    let rig = Ended { engine };
    for id in ids {
        assert_eq!(rig.state(id), Some((State::Ready, 0)), "unspent");
    }
}

#[tokio::test]
async fn topics_are_pushed_while_they_have_settings() {
    let (first, second) = (Receiver::new(|_, _| ok()).await, Receiver::new(|_, _| ok()).await);
    let rig = Rig::with(&[], |_| {}).await;
    let id = rig.put(job("a"));
    assert_eq!(rig.push.status(&topic("t")), None);
    rig.topics.send(topics(&[("t", to(&first.url("/")))])).unwrap();
    rig.gone(id).await;
    rig.topics.send(topics(&[("t", to(&second.url("/")))])).unwrap();
    while second.count() == 0 {
        rig.pushed(job("b")).await.unwrap();
    }
    rig.topics.send(topics(&[])).unwrap();
    until("it is not pushed", || rig.push.status(&topic("t")).is_none()).await;
    rig.metrics_without("dormouse_push").await;
    let id = rig.put(job("c"));
    let view = rig.get(id).unwrap();
    assert_eq!((view.state, view.job.progress.reserves), (State::Ready, 0), "its jobs stay");
}

#[tokio::test]
async fn an_idle_topic_costs_nothing() {
    let receiver = Receiver::new(|_, _| ok()).await;
    let rig = Rig::new(to(&receiver.url("/"))).await;
    let id = rig.put(job("a"));
    rig.gone(id).await;
    let stats = |rig: &Rig| {
        let metrics = tokio::runtime::Handle::current().metrics();
        (metrics.num_alive_tasks(), rig.push.status(&topic("t")).unwrap().delivered)
    };
    let before = stats(&rig);
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(stats(&rig), before);
}

/// The engine of a server that has stopped.
struct Ended {
    engine: dormouse_disk::engine::Engine,
}

impl Ended {
    /// State and attempts of a job; `None` if it is gone.
    fn state(&self, id: dormouse_core::job::JobId) -> Option<(State, u32)> {
        use dormouse_core::backend::{Backend as _, Request, Ticket};
        use dormouse_core::command::Operation as _;
        use dormouse_core::op::{Get, Target};
        let (sink, answers) = std::sync::mpsc::channel();
        let request = Request::new(Ticket::next(), Get(vec![Target::Id(id)]).into());
        self.engine.submit(vec![request], std::sync::Arc::new(sink)).unwrap();
        let (_, answer) = answers.recv_timeout(Duration::from_secs(30)).unwrap();
        let view = Get::from_reply(answer.unwrap()).unwrap().remove(0).ok()?;
        Some((view.state, view.job.progress.attempts))
    }
}

/// Fails the first ends of leases, as a backend whose disk or Redis is away for a while: some
/// batches are not taken, and of others the items fail.
struct Away {
    engine: Engine,
    left: AtomicUsize,
    /// Removals of pushes that it saw.
    removals: AtomicUsize,
    /// So many of the next batches with acks are never answered; who waits for them waits on.
    silent: AtomicUsize,
    unanswered: Mutex<Vec<Arc<dyn Sink>>>,
}

impl Backend for Away {
    fn submit(&self, mut batch: Vec<Request>, sink: Arc<dyn Sink>) -> Result<(), Error> {
        let is_removal = |request: &Request| match &request.command {
            Command::SetPush(set) => set.push.is_none(),
            _ => false,
        };
        self.removals.fetch_add(batch.iter().filter(|one| is_removal(one)).count(), SeqCst);
        let acks = batch.iter().any(|request| matches!(request.command, Command::Ack(_)));
        let is_silent = |left: usize| left.checked_sub(1);
        if acks && self.silent.fetch_update(SeqCst, SeqCst, is_silent).is_ok() {
            self.unanswered.lock().unwrap().push(sink);
            return Ok(());
        }
        let items = |request: &Request| match &request.command {
            Command::Ack(tokens) => tokens.len(),
            Command::Nack(nacks) => nacks.len(),
            _ => 0,
        };
        let fails = || self.left.fetch_update(SeqCst, SeqCst, |left| left.checked_sub(1)).ok();
        if let Some(left) = batch.iter().any(|one| items(one) > 0).then(fails).flatten() {
            let error = || Error::unavailable("away for a while");
            if left % 2 == 0 {
                return Err(error());
            }
            for request in batch.extract_if(.., |request| items(request) > 0) {
                let each = (0..items(&request)).map(|_| Err(error()));
                sink.deliver(&mut vec![(request.ticket, Ok(Reply::Ended(each.collect())))]);
            }
            if batch.is_empty() {
                return Ok(());
            }
        }
        self.engine.submit(batch, sink)
    }
}

async fn away(settings: &[(&str, PushSettings)], is_stored: bool) -> (Rig, Arc<Away>) {
    let mut backend = None;
    let rig = Rig::over(
        settings,
        |options| {
            if is_stored {
                options.topics = None;
            }
        },
        |engine| {
            let [left, removals, silent] = [6, 0, 0].map(AtomicUsize::new);
            let unanswered = Mutex::default();
            let away = Arc::new(Away { engine, left, removals, silent, unanswered });
            backend = Some(Arc::clone(&away));
            away
        },
    )
    .await;
    (rig, backend.unwrap())
}

#[tokio::test]
async fn an_end_that_is_not_taken_comes_again() {
    let receiver = Receiver::new(|number, _| match number {
        1 => answer(500, &[], "no"),
        _ => ok(),
    })
    .await;
    let mut settings = to(&receiver.url("/"));
    settings.concurrency = 1;
    let (rig, backend) = away(&[("t", settings)], false).await;
    let first = rig.put(job("first"));
    rig.gone(first).await;
    assert_eq!(backend.left.load(SeqCst), 0);
    backend.left.store(4, SeqCst);
    let second = rig.put(job("second"));
    let view = rig.in_state(second, State::Delayed).await;
    assert_eq!(view.job.progress.attempts, 1);
    assert_eq!(receiver.count(), 2, "nothing is pushed again");
}

/// One part of a store that is away held up the ends of all others.
#[tokio::test]
async fn an_end_that_is_not_answered_holds_up_no_other() {
    let receiver = Receiver::new(|_, _| ok()).await;
    let (rig, backend) = away(&[("t", to(&receiver.url("/")))], false).await;
    backend.left.store(0, SeqCst);
    backend.silent.store(1, SeqCst);
    let first = rig.put(job("first"));
    rig.in_state(first, State::Leased).await;
    until("its ack is sent", || backend.silent.load(SeqCst) == 0).await;
    let second = rig.put(job("second"));
    rig.gone(second).await;
    rig.in_state(first, State::Leased).await;
}

#[tokio::test]
async fn a_removal_is_told_even_if_there_is_no_push() {
    let (rig, backend) = away(&[], true).await;
    rig.done(404, "DELETE /v1/topics/t/push", "").await;
    assert_eq!(backend.removals.load(SeqCst), 1, "one that broke off may have left something");
    let stats = rig.call(dormouse_core::op::Stats { topic: Some(topic("t")) });
    assert!(stats.is_err(), "nothing comes of it: {stats:?}");
}
