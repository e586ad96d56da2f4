//! get, peek, list, stats, topics, forecast, kick: looking, and moving what one sees.

use dormouse_core::command::{Command, Reply};
use dormouse_core::job::{JobId, State};
use dormouse_core::op::*;

use crate::support::*;

fn list(rig: &mut Rig, state: State, limit: usize) -> Vec<u64> {
    let (mut found, mut cursor) = (Vec::new(), None);
    loop {
        let list = List { topic: topic("t"), state, cursor, limit, range: ListRange::default() };
        let Ok(Reply::Page(page)) = rig.run(Command::List(list)) else { panic!() };
        assert!(page.jobs.len() <= limit);
        assert!(page.jobs.iter().all(|view| view.state == state));
        found.extend(page.jobs.iter().map(|view| view.job.id.0));
        cursor = page.cursor;
        if cursor.is_none() {
            return found;
        }
    }
}

fn peek(rig: &mut Rig, state: State) -> Option<u64> {
    match rig.run(Command::Peek(Peek { topic: topic("t"), state })) {
        Ok(Reply::View(view)) => view.map(|view| {
            assert_eq!(view.state, state);
            view.job.id.0
        }),
        other => panic!("{other:?}"),
    }
}

/// Jobs in every state: ready 1-4, delayed 5-8, leased 9-10, dead 11-12.
fn some_of_each() -> Rig {
    let mut rig = Rig::new();
    let base = || Put::new(topic("t"), "");
    let at = |ms: u64| Some((WALL_0 + ms) as i64);
    for _ in 0..2 {
        rig.put(base());
    }
    rig.put(Put { priority: Some(5), ..base() });
    rig.put(Put { at_ms: at(0), ..base() });
    for delay_ms in [900, 300] {
        rig.put(Put { delay_ms: Some(delay_ms), ..base() });
    }
    rig.put(Put { priority: Some(5), delay_ms: Some(700), ..base() });
    rig.put(Put { at_ms: at(500), ..base() });
    for ttr_ms in [20_000, 10_000] {
        let id = rig.put(base());
        let take = ReserveId { id, ttr_ms: Some(ttr_ms), session: None };
        rig.run(Command::ReserveId(take)).unwrap();
    }
    for _ in 0..2 {
        let id = rig.put(base());
        rig.kill(KillTarget::Resting(Target::Id(id))).unwrap();
    }
    rig
}

#[test]
fn lists_show_each_state_whole_whatever_the_page() {
    let mut rig = some_of_each();
    for limit in [1, 2, 3, 1_000] {
        assert_eq!(list(&mut rig, State::Ready, limit), [3, 1, 2, 4]);
        assert_eq!(list(&mut rig, State::Delayed, limit), [7, 6, 5, 8]);
        assert_eq!(list(&mut rig, State::Leased, limit), [9, 10]);
        assert_eq!(list(&mut rig, State::Dead, limit), [11, 12]);
    }
}

#[test]
fn peek_shows_the_next_of_each_state() {
    let mut rig = some_of_each();
    assert_eq!(peek(&mut rig, State::Ready), Some(3));
    assert_eq!(peek(&mut rig, State::Delayed), Some(6));
    assert_eq!(peek(&mut rig, State::Leased), Some(10));
    assert_eq!(peek(&mut rig, State::Dead), Some(11));
    let Ok(Reply::View(view)) =
        rig.run(Command::Peek(Peek { topic: topic("none"), state: State::Ready }))
    else {
        panic!()
    };
    assert_eq!(view, None);
}

#[test]
fn stats_count_exactly() {
    let mut rig = some_of_each();
    let stats = rig.stats("t").unwrap();
    assert_eq!((stats.delayed, stats.ready, stats.urgent), (4, 4, 1));
    let counts = stats.counts;
    assert_eq!((counts.waiting, counts.leased, counts.dead), (8, 2, 2));
    assert_eq!((counts.puts, counts.reserves, counts.kills), (12, 2, 2));
    assert_eq!(stats.oldest_ready_ms, Some(0));
    rig.pass(500);
    let stats = rig.stats("t").unwrap();
    assert_eq!((stats.delayed, stats.ready, stats.urgent), (2, 6, 1));
    assert_eq!(stats.oldest_ready_ms, Some(500));
    rig.put_now("u");
    let Ok(Reply::Stats(all)) = rig.run(Command::Stats(Stats { topic: None })) else { panic!() };
    assert_eq!((all.delayed, all.ready, all.topics), (2, 7, 2));
    assert_eq!(all.counts.puts, 13);
}

#[test]
fn topics_are_paged_by_name() {
    let mut rig = Rig::new();
    for name in ["b", "a", "c", "d"] {
        rig.put_now(name);
    }
    let lease = rig.take("c");
    rig.ack(lease.token).unwrap();
    let mut page = |after: Option<&str>, limit| {
        let topics = Topics { after: after.map(topic), limit };
        let Ok(Reply::Topics(page)) = rig.run(Command::Topics(topics)) else { panic!() };
        let names: Vec<_> = page.topics.iter().map(|(name, _)| name.to_string()).collect();
        (names.join(" "), page.more)
    };
    assert_eq!(page(None, 2), ("a b".to_owned(), true));
    assert_eq!(page(Some("b"), 2), ("d".to_owned(), false));
    assert_eq!(page(Some("aa"), 1), ("b".to_owned(), true));
}

#[test]
fn the_forecast_counts_per_step_by_the_calendar() {
    let mut rig = some_of_each();
    let mut forecast = |from_ms, to_ms, step_ms| {
        let forecast = Forecast { topic: topic("t"), from_ms, to_ms, step_ms };
        match rig.run(Command::Forecast(forecast)) {
            Ok(Reply::Forecast(steps)) => steps,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(forecast(WALL_0, WALL_0 + 1_000, 250), [4, 1, 2, 1]);
    assert_eq!(forecast(WALL_0 + 1, WALL_0 + 1_000, 600), [2, 2]);
    assert_eq!(forecast(WALL_0 + 300, WALL_0 + 301, 1), [1]);
    assert_eq!(forecast(WALL_0 + 301, WALL_0 + 500, 1_000), [0]);
    assert_eq!(forecast(0, u64::MAX, u64::MAX / 2), [8, 0, 0]);
    assert_eq!(rig.stats("t").unwrap().ready, 4);
}

#[test]
fn kick_makes_the_earliest_delayed_jobs_ready() {
    let mut rig = some_of_each();
    let kick = |max| Command::Kick(Kick { topic: topic("t"), max });
    assert_eq!(rig.run(kick(2)), Ok(Reply::Count(2)));
    assert_eq!(list(&mut rig, State::Delayed, 10), [7, 5]);
    let kicked = rig.view(Target::Id(JobId(8))).unwrap();
    assert_eq!((kicked.state, kicked.job.progress.kicks), (State::Ready, 1));
    assert_eq!(kicked.due_at, WALL_0);
    assert_eq!(rig.run(kick(100)), Ok(Reply::Count(2)));
    assert_eq!(rig.run(kick(100)), Ok(Reply::Count(0)));
    assert_eq!(rig.stats("t").unwrap().ready, 8);
}

#[test]
fn kick_reads_beyond_a_page() {
    let mut rig = Rig::new();
    for n in 0..200 {
        rig.put(Put {
            delay_ms: Some(1_000 + n),
            priority: Some((n % 2) as u32),
            ..Put::new(topic("t"), "")
        });
    }
    assert_eq!(rig.run(Command::Kick(Kick { topic: topic("t"), max: 150 })), Ok(Reply::Count(150)));
    let left = list(&mut rig, State::Delayed, 1_000);
    assert!(left.iter().all(|&id| id > 150) && left.len() == 50);
}

#[test]
fn purge_leaves_leased_jobs_alone() {
    let mut rig = some_of_each();
    assert_eq!(rig.run(Command::Purge(topic("t").into())), Ok(Reply::Count(10)));
    let stats = rig.stats("t").unwrap();
    assert_eq!((stats.delayed, stats.ready, stats.counts.leased), (0, 0, 2));
    assert_eq!(rig.run(Command::Purge(topic("t").into())), Ok(Reply::Count(0)));
    assert_eq!(rig.run(Command::Purge(topic("none").into())), Ok(Reply::Count(0)));
    rig.pass(20_000);
    assert_eq!(rig.stats("t").unwrap().ready, 2);
}
