//! Every property is seen to fail on a history that breaks it.

use super::*;
use crate::checker::event::{Answer, Ask, Dumped, Mode, PutAsk, Taken, Verb};

/// Writes histories: each call is recorded, and its answer unless it is cut off.
#[derive(Default)]
struct Story {
    history: History,
    events: Vec<Event>,
    calls: u64,
    now_us: u64,
}

impl Story {
    fn cut_off(&mut self, ask: Ask) -> &mut Story {
        self.now_us += 10_000;
        self.calls += 1;
        self.events.push(Event::Asked { call: self.calls, at_us: self.now_us, ask });
        self
    }

    fn told(&mut self, ask: Ask, answer: Answer) -> &mut Story {
        self.cut_off(ask);
        self.now_us += 10;
        self.events.push(Event::Told { call: self.calls, at_us: self.now_us, answer });
        self
    }

    fn put(&mut self, number: u64, key: Option<&str>, answer: Answer) -> &mut Story {
        self.told(Ask::Put(put(number, key)), answer)
    }

    fn take(&mut self, id: u64, fence: u64, number: u64) -> &mut Story {
        let jobs = vec![taken(id, fence, number)];
        self.told(Ask::Reserve { max: 1, wait_ms: 0 }, Answer::Jobs(jobs))
    }

    fn token(&mut self, verb: Verb, token: (u64, u64), answer: Answer) -> &mut Story {
        let delay_ms = (verb == Verb::Nack).then_some(100);
        self.told(Ask::Token { verb, token, forged: false, delay_ms }, answer)
    }

    fn dump(&mut self, jobs: &[(u64, u64)]) -> &mut Story {
        let jobs: Vec<Dumped> = jobs.iter().map(|(id, number)| dumped(*id, *number)).collect();
        let counts = [jobs.len() as u64, 0, 0];
        self.events.push(Event::Dump { jobs, counts });
        self
    }

    fn killed(&mut self) -> &mut Story {
        self.history.add_round(std::mem::take(&mut self.events));
        self
    }

    /// Ends with a drain that found nothing.
    fn check(&mut self) -> Result<Summary, String> {
        self.killed();
        self.history.check_killed()?;
        self.dump(&[]).killed();
        self.history.check()
    }

    fn fails(&mut self, property: &str) {
        let text = self.check().unwrap_err();
        assert!(text.starts_with(property), "{text}");
    }
}

fn put(number: u64, key: Option<&str>) -> PutAsk {
    PutAsk {
        number,
        topic: "red".to_owned(),
        key: key.map(str::to_owned),
        mode: Mode::Keep,
        key_ttl_ms: if key.is_some_and(|key| key.starts_with("hold")) { 400 } else { 0 },
        delay_ms: None,
        at_ms: None,
        ttr_ms: 60_000,
        attempts_max: 2,
        priority: 1_024,
    }
}

fn taken(id: u64, fence: u64, number: u64) -> Taken {
    let topic = "red".to_owned();
    Taken { id, fence, attempt: 1, ttr_ms: 60_000, topic, key: None, number: Some(number) }
}

fn dumped(id: u64, number: u64) -> Dumped {
    let (topic, number) = ("red".to_owned(), Some(number));
    Dumped { id, topic, key: None, number, dead: false, fence: 0 }
}

#[test]
fn a_plain_life_is_fine() {
    let mut story = Story::default();
    story.put(1, None, Answer::Created(7)).dump(&[(7, 1)]).take(7, 1, 1);
    story.token(Verb::Ack, (7, 1), Answer::Done).token(Verb::Ack, (7, 1), Answer::Gone);
    let summary = story.check().unwrap();
    assert_eq!((summary.calls, summary.jobs, summary.takes), (4, 1, 1));
}

#[test]
fn what_was_cut_off_may_or_may_not_have_happened() {
    for jobs in [&[(7, 1)][..], &[]] {
        let mut story = Story::default();
        story.put(1, None, Answer::Created(7)).take(7, 1, 1).cut_off(Ask::CancelId(7)).killed();
        story.dump(jobs);
        assert!(story.check().is_ok(), "{jobs:?}");
    }
}

#[test]
fn early_is_found() {
    let mut story = Story::default();
    let late = PutAsk { delay_ms: Some(5_000), ..put(1, None) };
    story.told(Ask::Put(late), Answer::Created(7)).take(7, 1, 1);
    story.token(Verb::Ack, (7, 1), Answer::Done).fails("P1");
}

#[test]
fn early_after_a_nack_is_found() {
    let mut story = Story::default();
    story.put(1, None, Answer::Created(7)).take(7, 1, 1).token(Verb::Nack, (7, 1), Answer::Done);
    let again = Taken { attempt: 2, ..taken(7, 2, 1) };
    story.told(Ask::Reserve { max: 1, wait_ms: 0 }, Answer::Jobs(vec![again]));
    story.token(Verb::Ack, (7, 2), Answer::Done).fails("P1");
}

#[test]
fn a_lost_job_is_found() {
    Story::default().put(1, None, Answer::Created(7)).fails("P2");
    // Also one whose put was not answered, once it was seen.
    let mut story = Story::default();
    story.cut_off(Ask::Put(put(1, None))).killed().dump(&[(7, 1)]).fails("P2");
}

#[test]
fn an_invented_job_is_found() {
    Story::default().put(1, None, Answer::Created(7)).take(8, 1, 1).fails("P3");
    Story::default().put(1, None, Answer::Duplicate(7)).take(7, 1, 1).fails("P3");
    Story::default().put(1, None, Answer::Created(7)).dump(&[(7, 2)]).fails("P3");
    let mut story = Story::default();
    story.cut_off(Ask::Put(put(1, None))).killed().dump(&[(7, 1), (8, 1)]).fails("P3");
}

#[test]
fn two_leases_at_once_are_found() {
    let mut story = Story::default();
    story.put(1, None, Answer::Created(7)).take(7, 1, 1).take(7, 2, 1);
    story.token(Verb::Ack, (7, 2), Answer::Done).fails("P4");
    let mut story = Story::default();
    story.put(1, None, Answer::Created(7)).take(7, 2, 1).killed().take(7, 1, 1);
    story.token(Verb::Ack, (7, 1), Answer::Done).fails("P4");
}

#[test]
fn a_stale_token_that_works_is_found() {
    let mut story = Story::default();
    story.put(1, None, Answer::Created(7)).take(7, 1, 1).killed().take(7, 2, 1);
    story.token(Verb::Ack, (7, 1), Answer::Done).fails("P5");
}

#[test]
fn a_good_token_that_is_refused_is_found() {
    let lost = Answer::Refused("lease_lost".to_owned());
    let mut story = Story::default();
    story.put(1, None, Answer::Created(7)).take(7, 1, 1).token(Verb::Nack, (7, 1), lost.clone());
    story.told(Ask::CancelId(7), Answer::Changed(7)).fails("P5");
    // After a kill the lease may be lost.
    let mut story = Story::default();
    story.put(1, None, Answer::Created(7)).take(7, 1, 1).killed().token(Verb::Nack, (7, 1), lost);
    assert!(story.told(Ask::CancelId(7), Answer::Changed(7)).check().is_ok());
}

#[test]
fn what_comes_back_is_found() {
    for end in [true, false] {
        let mut story = Story::default();
        story.put(1, None, Answer::Created(7)).take(7, 1, 1);
        if end {
            story.token(Verb::Ack, (7, 1), Answer::Done);
        } else {
            story.told(Ask::CancelId(7), Answer::Changed(7));
        }
        story.killed().dump(&[(7, 1)]).fails("P6, P7");
    }
    let mut story = Story::default();
    story.put(1, None, Answer::Created(7)).dump(&[(7, 1)]).cut_off(Ask::CancelId(7)).killed();
    story.dump(&[]).killed().dump(&[(7, 1)]).fails("P11");
}

#[test]
fn too_many_attempts_are_found() {
    let mut story = Story::default();
    story.put(1, None, Answer::Created(7));
    for fence in 1..=3 {
        story.take(7, fence, 1).token(Verb::Nack, (7, fence), Answer::Done);
        story.now_us += 1_000_000;
    }
    story.told(Ask::CancelId(7), Answer::Changed(7)).fails("P8");
}

#[test]
fn a_second_job_of_a_key_is_found() {
    let mut story = Story::default();
    story.put(1, Some("keep-1"), Answer::Created(7)).put(2, Some("keep-1"), Answer::Created(8));
    story.told(Ask::CancelId(7), Answer::Changed(7)).told(Ask::CancelId(8), Answer::Changed(8));
    story.fails("P9");
    let mut story = Story::default();
    story.put(1, Some("hold-1"), Answer::Created(7)).take(7, 1, 1);
    story.token(Verb::Ack, (7, 1), Answer::Done).put(2, Some("hold-1"), Answer::Created(8));
    story.told(Ask::CancelId(8), Answer::Changed(8)).fails("P9");
}

#[test]
fn wrong_counts_are_found() {
    let mut story = Story::default();
    story.put(1, None, Answer::Created(7)).dump(&[(7, 1)]);
    if let Some(Event::Dump { counts, .. }) = story.events.last_mut() {
        counts[0] = 2;
    }
    story.told(Ask::CancelId(7), Answer::Changed(7)).fails("P14");
}
