//! Starts, changes and stops.

use std::time::{Duration, Instant};

use dormouse_core::job::State;

use crate::receiver::{Act, Receiver, ok};
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
