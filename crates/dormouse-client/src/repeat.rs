//! Which commands may be sent again after their answer was lost, and what the second answer tells.
//!
//! A command may be sent twice if the second one changes nothing that the first one did not: it
//! only reads, or names one lease by its token, or one job by its id, or has a key that keeps the
//! first job. A key does so for as long as it is taken: a job that is done frees it, at once or
//! after its `key_ttl`. What is named by a key can be another job by now, and a lock is counted:
//! those are told as `unconfirmed`.

use std::time::Duration;

use dormouse_core::backend::Answer;
use dormouse_core::command::{Command, Reply};
use dormouse_core::error::{Code, Error};
use dormouse_core::op::{EndReply, KillTarget, OnConflict, Put, Target};

/// How long after the first sending a second one can do no harm: `MAX` = always, zero = never.
pub(crate) fn harmless_for(command: &Command) -> Duration {
    let is_always = match command {
        Command::Put(puts) => return puts.iter().map(taken_for).min().unwrap_or_default(),
        Command::Ack(_)
        // The job is gone the second time, and then nothing is put.
        | Command::Chain(_)
        | Command::Nack(_)
        | Command::Release(_)
        | Command::Extend(_)
        | Command::RenewLock(_) => true,
        Command::Kill(kills) => {
            kills.iter().all(|kill| matches!(kill.target, KillTarget::Token(_)))
        }
        Command::Cancel(cancels) => {
            cancels.iter().all(|cancel| matches!(cancel.target, Target::Id(_)))
        }
        other => is_only_read(other),
    };
    if is_always { Duration::MAX } else { Duration::ZERO }
}

/// How long the key of a put keeps its job the only one, if nobody cancels or kills it: nobody gets
/// it before its delay is over, and its key is taken for `key_ttl` after the ack. A time `at` is
/// one of the server's clock, which is not known here.
fn taken_for(put: &Put) -> Duration {
    if put.key.is_none() || put.on_conflict != OnConflict::Keep {
        return Duration::ZERO;
    }
    let ms = |ms: Option<i64>| ms.and_then(|ms| u64::try_from(ms).ok()).unwrap_or(0);
    let (key_ttl_ms, expires_ms) = (ms(put.key_ttl_ms), ms(put.expires_after_ms));
    // A job that nobody takes in time is dead, and then its key is free.
    let after_due_ms = if expires_ms > 0 { key_ttl_ms.min(expires_ms) } else { key_ttl_ms };
    Duration::from_millis(ms(put.delay_ms).saturating_add(after_due_ms))
}

/// Whether nothing is left behind by a command whose answer was lost; but for leases, which end.
pub(crate) fn is_only_read(command: &Command) -> bool {
    matches!(
        command,
        Command::Reserve(_)
            | Command::Get(_)
            | Command::TopicsOf(_)
            | Command::Peek(_)
            | Command::List(_)
            | Command::Topics(_)
            | Command::Stats(_)
            | Command::Forecast(_)
            | Command::Locks(_)
            | Command::GetSchedule(_)
            | Command::Schedules(_)
    )
}

/// The answer to a second sending. A refusal that the first one may have caused says nothing: it is
/// `unconfirmed`. An ack whose job is gone is done: the first one did it, or nothing is left to do.
pub(crate) fn after_repeat(command: &Command, mut answer: Answer) -> Answer {
    match (command, &mut answer) {
        (Command::Ack(_), Ok(Reply::Ended(items))) => {
            for item in items.iter_mut().filter(|item| **item == Ok(EndReply::Gone)) {
                *item = Ok(EndReply::Done);
            }
        }
        (Command::Nack(_) | Command::Release(_) | Command::Kill(_), Ok(Reply::Ended(items))) => {
            items.iter_mut().for_each(doubt);
        }
        (Command::Cancel(_), Ok(Reply::Changed(items))) => items.iter_mut().for_each(doubt),
        (Command::Chain(_), Ok(Reply::Chain(chain))) if chain.end == EndReply::Gone => {
            let text = "the connection broke before the answer, and sent again the job was gone: \
                        the first time may have done it and put the others; look for them";
            answer = Err(Error::new(Code::Unconfirmed, text));
        }
        _ => {}
    }
    answer
}

fn doubt<T>(item: &mut Result<T, Error>) {
    if let Err(error) = item
        && matches!(error.code, Code::LeaseLost | Code::NotFound | Code::Conflict)
    {
        error.code = Code::Unconfirmed;
        error.text = format!(
            "the connection broke before the answer, and sent again it was refused, perhaps \
             because the first time did it: {}",
            error.text
        )
        .into();
    }
}

/// To a command whose answer was lost, and that is not sent again.
pub(crate) fn unconfirmed(command: &Command, server: &str, why: &str) -> Error {
    let text = format!("the connection to {server} broke before the answer ({why})");
    in_doubt(command, &text)
}

/// To a command whose answer was lost, and that could not be sent again in time.
pub(crate) fn not_repeated(command: &Command, why: &str) -> Error {
    let text = "the connection broke before the answer, and it could not be sent again in time";
    in_doubt(command, &format!("{text} ({why})"))
}

/// To a command whose answer is no reply: sent again, it would most likely get the same.
pub(crate) fn unreadable(command: &Command, server: &str, why: &str) -> Error {
    if !is_only_read(command) {
        return unconfirmed(command, server, why);
    }
    Error::unavailable(format!(
        "{server} answered with what cannot be read ({why}); use versions that belong together, \
         and ask for less at once"
    ))
}

fn in_doubt(command: &Command, cause: &str) -> Error {
    let (what, fix) = match command {
        Command::Put(_) => (
            "these jobs may or may not exist",
            "put jobs with a key and a key_ttl longer than repeat_for, then they are put again \
             without harm",
        ),
        Command::Lock(_) => {
            ("the lock may or may not be held", "take it again and give it back once more")
        }
        _ => ("it may or may not have happened", "look, and do it again if it did not"),
    };
    Error::new(Code::Unconfirmed, format!("{cause}: {what}; {fix}"))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use dormouse_core::job::{JobId, Token};
    use dormouse_core::op::{Cancel, Kill, Lock, Unlock};
    use dormouse_core::topic::TopicName;

    use super::*;

    fn put(key: Option<&'static str>, on_conflict: OnConflict) -> Put {
        let topic = TopicName::new("t").unwrap();
        let key = key.map(|key| Bytes::from_static(key.as_bytes()));
        Put { key, on_conflict, ..Put::new(topic, "x") }
    }

    #[test]
    fn only_harmless_commands_are_sent_again() {
        let token = Token { id: JobId(1), fence: 2 };
        let by_key = Target::Key { topic: TopicName::new("t").unwrap(), key: "k".into() };
        let cancel = |target| Command::Cancel(vec![Cancel { target, unless_leased: false }]);
        let kill = |target| Command::Kill(vec![Kill { target, priority: None, error: None }]);
        let lock = Lock { name: "l".into(), owner: "o".into(), ttl_ms: 1, wait_ms: 0 };
        let unlock = Unlock { name: "l".into(), owner: "o".into() };
        let kept = || Put { key_ttl_ms: Some(1), ..put(Some("k"), OnConflict::Keep) };
        for (command, expected) in [
            (Command::Put(vec![kept(), kept()]), true),
            (Command::Put(vec![kept(), put(None, OnConflict::Keep)]), false),
            (Command::Put(vec![put(Some("k"), OnConflict::Replace)]), false),
            (Command::Put(vec![put(Some("k"), OnConflict::Reject)]), false),
            (Command::Ack(vec![token]), true),
            (Command::Get(vec![by_key.clone()]), true),
            (cancel(Target::Id(JobId(1))), true),
            (cancel(by_key.clone()), false),
            (kill(KillTarget::Token(token)), true),
            (kill(KillTarget::Resting(Target::Id(JobId(1)))), false),
            (Command::Revive(vec![Target::Id(JobId(1))]), false),
            (Command::Lock(lock), false),
            (Command::Unlock(unlock), false),
        ] {
            assert_eq!(!harmless_for(&command).is_zero(), expected, "{command:?}");
        }
    }

    /// A job that is acked at once frees its key: only what the put says holds it longer.
    #[test]
    fn a_put_is_sent_again_while_its_key_is_taken() {
        let check = |delay_ms, key_ttl_ms, expires_after_ms, expected_ms| {
            let put = put(Some("k"), OnConflict::Keep);
            let put = Put { delay_ms, key_ttl_ms, expires_after_ms, ..put };
            let taken = harmless_for(&Command::Put(vec![put.clone()]));
            assert_eq!(taken, Duration::from_millis(expected_ms), "{put:?}");
        };
        check(None, None, None, 0);
        check(Some(30), None, None, 30);
        check(Some(30), Some(7), None, 37);
        check(Some(30), Some(7), Some(0), 37);
        check(Some(30), Some(7), Some(5), 35);
        check(Some(-1), Some(7), None, 7);
        check(Some(i64::MAX), Some(i64::MAX), None, u64::MAX - 1);
        let at = Put { at_ms: Some(i64::MAX), ..put(Some("k"), OnConflict::Keep) };
        assert_eq!(harmless_for(&Command::Put(vec![at])), Duration::ZERO);
    }

    #[test]
    fn a_refusal_of_the_second_sending_is_no_answer() {
        let token = Token { id: JobId(1), fence: 2 };
        let refused = |code| Err(Error::new(code, "no"));
        let check = |command: &Command, code: Code, expected: Code| {
            let reply = Reply::Ended(vec![Ok(EndReply::Gone), refused(code)]);
            let Ok(Reply::Ended(items)) = after_repeat(command, Ok(reply)) else { panic!() };
            let is_ack = matches!(command, Command::Ack(_));
            assert_eq!(items[0], Ok(if is_ack { EndReply::Done } else { EndReply::Gone }));
            assert_eq!(items[1].as_ref().unwrap_err().code, expected);
        };
        let release = Command::Release(vec![dormouse_core::op::Release::now(token)]);
        check(&release, Code::LeaseLost, Code::Unconfirmed);
        check(&release, Code::Busy, Code::Busy);
        check(&Command::Ack(vec![token]), Code::LeaseLost, Code::LeaseLost);
    }
}
