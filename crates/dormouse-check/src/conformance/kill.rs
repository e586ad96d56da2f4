//! kill: to dead, with the reason.

use super::prelude::*;

cases! { kill:
    a_waiting_job_by_id
    a_waiting_job_by_key
    a_leased_job_by_its_token
    after_the_lease_ran_out_the_token_still_kills
    a_leased_job_by_id_is_a_conflict
    a_dead_job_is_a_conflict
    a_missing_job
    keeps_error_and_sets_priority
    keeps_the_key_until_another_takes_it
    one_of_many
    a_batch_answers_per_item
}

fn a_waiting_job_by_id(s: &mut Subject) {
    for delay_ms in [0, 60_000] {
        let id = s.put(delayed("mail", delay_ms));
        s.maybe_reopen();
        assert_eq!(s.kill(kill_resting(by_id(id))), Ok(EndReply::Done));
        s.maybe_reopen();
        let view = s.view(id);
        assert_eq!((view.state, view.due_at), (State::Dead, s.now()));
        assert_eq!((view.job.progress.kills, view.job.progress.attempts), (1, 0));
    }
    s.advance(60_000);
    assert_eq!(s.reserve("mail", 2), []);
    assert_eq!(s.stats("mail").counts.dead, 2);
}

fn a_waiting_job_by_key(s: &mut Subject) {
    let id = s.put(keyed("mail", "k"));
    s.maybe_reopen();
    assert_eq!(s.kill(kill_resting(by_key("mail", "k"))), Ok(EndReply::Done));
    assert_eq!(s.state(id), State::Dead);
}

fn a_leased_job_by_its_token(s: &mut Subject) {
    let id = s.put(job("mail"));
    let token = s.reserve_one("mail").token;
    s.maybe_reopen();
    assert_eq!(s.kill(kill_held(token)), Ok(EndReply::Done));
    s.maybe_reopen();
    assert_eq!(s.state(id), State::Dead);
    let stats = s.stats("mail");
    assert_eq!((stats.counts.leased, stats.counts.dead, stats.counts.kills), (0, 1, 1));
}

fn after_the_lease_ran_out_the_token_still_kills(s: &mut Subject) {
    let id = s.put(Put { ttr_ms: Some(10), ..job("mail") });
    let token = s.reserve_one("mail").token;
    s.advance(10);
    s.maybe_reopen();
    assert_eq!(s.kill(kill_held(token)), Ok(EndReply::Done));
    assert_eq!(s.state(id), State::Dead);
}

fn a_leased_job_by_id_is_a_conflict(s: &mut Subject) {
    let id = s.put(job("mail"));
    s.reserve_one("mail");
    s.maybe_reopen();
    let words = [&number(id)[..], "leased", "token"];
    let error = refused(s.kill(kill_resting(by_id(id))), Code::Conflict, &words);
    assert_eq!(error.job, Some((id, State::Leased)));
    assert_eq!(s.state(id), State::Leased);
}

fn a_dead_job_is_a_conflict(s: &mut Subject) {
    let id = s.put(job("mail"));
    s.kill(kill_resting(by_id(id))).expect("a kill");
    s.maybe_reopen();
    let error = refused(s.kill(kill_resting(by_id(id))), Code::Conflict, &[&number(id), "dead"]);
    assert_eq!(error.job, Some((id, State::Dead)));
    assert_eq!(s.view(id).job.progress.kills, 1);
}

fn a_missing_job(s: &mut Subject) {
    refused(s.kill(kill_resting(by_id(JobId(9)))), Code::NotFound, &["job 9"]);
    refused(s.kill(kill_resting(by_key("mail", "k"))), Code::NotFound, &["mail", "k"]);
    let token = Token { id: JobId(9), fence: 1 };
    assert_eq!(s.kill(kill_held(token)), Ok(EndReply::Gone));
}

fn keeps_error_and_sets_priority(s: &mut Subject) {
    let id = s.put(job("mail"));
    let error = Some(bytes("poison"));
    let kill = Kill { error: error.clone(), priority: Some(3), ..kill_resting(by_id(id)) };
    s.kill(kill).expect("a kill");
    s.maybe_reopen();
    let progress = s.view(id).job.progress;
    assert_eq!((progress.error, progress.priority), (error, 3));
    s.revive(by_id(id)).expect("a revive");
    assert_eq!(s.reserve_one("mail").priority, 3);
}

fn keeps_the_key_until_another_takes_it(s: &mut Subject) {
    let id = s.put(keyed("mail", "k"));
    s.kill(kill_resting(by_id(id))).expect("a kill");
    s.maybe_reopen();
    let view = s.get(by_key("mail", "k")).expect("the dead job");
    assert_eq!((view.job.id, view.state), (id, State::Dead));
    s.revive(by_key("mail", "k")).expect("a revive");
    let kept = s.try_put(keyed("mail", "k")).expect("a duplicate");
    assert_eq!((kept.id, kept.state), (id, Some(State::Ready)));
}

fn one_of_many(s: &mut Subject) {
    let ids = s.put_many((0..MANY).map(|n| delayed("mail", n as i64)));
    s.maybe_reopen();
    for &id in ids.iter().step_by(97) {
        s.kill(kill_resting(by_id(id))).expect("a kill");
    }
    s.maybe_reopen();
    s.advance(MANY as u64);
    let killed: Vec<_> = ids.iter().copied().step_by(97).collect();
    let stats = s.stats("mail");
    assert_eq!(stats.counts.dead, killed.len() as u64);
    assert_eq!(stats.ready, (MANY - killed.len()) as u64);
    let given: Vec<_> = s.reserve("mail", MANY).iter().map(|job| job.id).collect();
    assert!(given.iter().all(|id| !killed.contains(id)), "a killed job was given");
}

fn a_batch_answers_per_item(s: &mut Subject) {
    let id = s.put(job("mail"));
    let items =
        vec![kill_resting(by_id(JobId(0))), kill_resting(by_id(id)), kill_resting(by_id(id))];
    let Ok(Reply::Ended(answers)) = s.ask(Command::Kill(items)) else { panic!("no answers") };
    let codes: Vec<_> = answers.into_iter().map(|item| item.map_err(|error| error.code)).collect();
    assert_eq!(codes, [Err(Code::NotFound), Ok(EndReply::Done), Err(Code::Conflict)]);
}
