//! Checks that several operations share: the size of a batch.

use super::prelude::*;

cases! { check:
    a_batch_at_its_limit
    batches_over_their_limit_do_nothing
    errors_have_stable_codes
}

fn a_batch_at_its_limit(s: &mut Subject) {
    let ids = s.put_many((0..limits::BATCH_MAX).map(|_| job("mail")));
    assert_eq!(ids.len(), limits::BATCH_MAX);
    s.maybe_reopen();
    let mut tokens = Vec::new();
    // A backend may answer with fewer jobs than there are, rather than late.
    while tokens.len() < limits::BATCH_MAX {
        let jobs = s.reserve("mail", limits::BATCH_MAX - tokens.len());
        assert!(!jobs.is_empty(), "{} jobs were given, and no more", tokens.len());
        tokens.extend(jobs.iter().map(|job| job.token));
    }
    let Ok(Reply::Ended(answers)) = s.ask(Command::Ack(tokens)) else { panic!("no answers") };
    assert!(answers.len() == limits::BATCH_MAX && answers.iter().all(|a| *a == Ok(EndReply::Done)));
}

fn batches_over_their_limit_do_nothing(s: &mut Subject) {
    fn over<T: Clone>(item: T) -> Vec<T> {
        vec![item; limits::BATCH_MAX + 1]
    }
    let id = s.put(job("mail"));
    let token = s.reserve_one("mail").token;
    let before = (s.view(id), s.stats("mail"));
    let reschedule = Reschedule { target: by_id(id), delay_ms: None, at_ms: None };
    let commands = [
        Command::Put(over(job("mail"))),
        Command::Ack(over(token)),
        Command::Nack(over(failed(token))),
        Command::Release(over(give_back(token))),
        Command::Extend(over(Extend { token, ttr_ms: Some(1) })),
        Command::Kill(over(kill_held(token))),
        Command::Cancel(over(Cancel { target: by_id(id), unless_leased: false })),
        Command::Reschedule(over(reschedule)),
        Command::Revive(over(by_id(id))),
        Command::Get(over(by_id(id))),
    ];
    for command in commands {
        refused(s.ask(command), Code::Invalid, &["batch", "4097", "4096", "send"]);
        assert_eq!((s.view(id), s.stats("mail")), before);
    }
}

fn errors_have_stable_codes(_: &mut Subject) {
    let codes = [
        (Code::Invalid, "invalid", false),
        (Code::NotFound, "not_found", false),
        (Code::Conflict, "conflict", false),
        (Code::LeaseLost, "lease_lost", false),
        (Code::TooLarge, "too_large", false),
        (Code::Busy, "busy", true),
        (Code::Full, "full", true),
        (Code::Unconfirmed, "unconfirmed", false),
        (Code::Unavailable, "unavailable", true),
    ];
    for (code, word, retryable) in codes {
        assert_eq!((code.as_str(), code.is_retryable()), (word, retryable));
    }
}
