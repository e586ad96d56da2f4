//! Whether two answers are the same, but for what must differ.

use std::fmt::Debug;

use dormouse_core::backend::Answer;
use dormouse_core::command::{Command, Reply};
use dormouse_core::error::Error;
use dormouse_core::image::Counts;
use dormouse_core::job::State;
use dormouse_core::op::*;

use crate::oracle::names::Names;

/// Compares the answer of Redis with the one of the rules, and learns the names in them.
pub(crate) fn judge(
    names: &mut Names,
    asked: Option<&Command>,
    rules: &Answer,
    redis: Answer,
) -> Result<(), String> {
    let (mut want, mut have) = (rules.clone(), redis);
    let shown = format!("Redis answers {have:?}\n    the rules say {rules:?}");
    let wrong = |why: String| format!("{why}\n    {shown}");
    learn_jobs(names, &want, &have).map_err(wrong)?;
    names.to_rules(&mut have).map_err(wrong)?;
    learn_rest(names, asked, &want, &mut have).map_err(wrong)?;
    for answer in [&mut want, &mut have] {
        mask(answer);
        match (asked, answer) {
            (Some(Command::Stats(Stats { topic: Some(_) })), Ok(Reply::Stats(stats))) => {
                mask_totals(stats);
            }
            // Of topics that are only watched, Redis counts all.
            (Some(Command::Stats(_)), Ok(Reply::Stats(stats))) if stats.waiters > 0 => {
                stats.topics = 0;
            }
            _ => {}
        }
    }
    if want == have { Ok(()) } else { Err(format!("they differ\n    {shown}")) }
}

/// Jobs that both created are the same job.
fn learn_jobs(names: &mut Names, want: &Answer, have: &Answer) -> Result<(), String> {
    if let (Ok(Reply::Schedule(want)), Ok(Reply::Schedule(have))) = (want, have)
        && let (Some(want), Some(have)) = (want.last, have.last)
    {
        return names.pair_newest(want.id, have.id);
    }
    if let (Ok(Reply::Chain(want)), Ok(Reply::Chain(have))) = (want, have) {
        let mut pairs = want.puts.iter().zip(&have.puts);
        return pairs.try_for_each(|(want, have)| pair_created(names, want, have));
    }
    let (Ok(Reply::Put(want)), Ok(Reply::Put(have))) = (want, have) else { return Ok(()) };
    for pair in want.iter().zip(have) {
        if let (Ok(want), Ok(have)) = pair {
            pair_created(names, want, have)?;
        }
    }
    Ok(())
}

fn pair_created(names: &mut Names, want: &PutReply, have: &PutReply) -> Result<(), String> {
    match (want.outcome, have.outcome) {
        (PutOutcome::Created, PutOutcome::Created) => names.pair_jobs(want.id, have.id),
        _ => Ok(()),
    }
}

/// Fences and sessions of the same answer are the same.
fn learn_rest(
    names: &mut Names,
    asked: Option<&Command>,
    want: &Answer,
    have: &mut Answer,
) -> Result<(), String> {
    match (want, have) {
        (Ok(Reply::Jobs(want)), Ok(Reply::Jobs(have))) => {
            for (want, have) in want.iter().zip(have) {
                if want.id == have.id {
                    names.pair_tokens(want.token, have.token)?;
                    have.token.fence = want.token.fence;
                }
            }
        }
        // Ids lead to topics there, whatever became of the job.
        (Ok(Reply::TopicsOf(want)), Ok(Reply::TopicsOf(have))) => {
            let gone = want.iter().zip(have).filter(|(want, _)| want.is_err());
            gone.for_each(|(want, have)| have.clone_from(want));
        }
        (Ok(Reply::Session(want)), Ok(Reply::Session(have))) => {
            names.pair_sessions(*want, *have);
            *have = *want;
        }
        (Ok(Reply::Lock(want)), Ok(Reply::Lock(have))) => {
            let name = match asked {
                Some(Command::Lock(lock)) => &lock.name,
                Some(Command::RenewLock(renew)) => &renew.name,
                _ => return Err("a lock is answered that nobody asked for".to_owned()),
            };
            names.pair_locks(name, want.fence, have.fence)?;
            have.fence = want.fence;
        }
        _ => {}
    }
    Ok(())
}

/// Takes out what need not be the same; see `DIFFERENCES`.
fn mask(answer: &mut Answer) {
    let reply = match answer {
        Ok(reply) => reply,
        Err(error) => return mask_text(error),
    };
    match reply {
        Reply::Put(items) => mask_texts(items),
        Reply::Ended(items) => mask_texts(items),
        Reply::Extended(items) => mask_texts(items),
        Reply::Changed(items) => mask_texts(items),
        Reply::Views(items) => mask_texts(items),
        Reply::TopicsOf(items) => mask_texts(items),
        // In order per partition only.
        Reply::Locks(page) => {
            page.cursor = None;
            page.locks.sort_by(|one, other| one.name.cmp(&other.name));
        }
        Reply::Topics(page) => {
            page.topics.iter_mut().for_each(|(_, stats)| mask_totals(stats));
            page.topics.retain(|(_, stats)| !is_only_watched(stats));
        }
        _ => {}
    }
}

fn mask_texts<T>(items: &mut [Result<T, Error>]) {
    items.iter_mut().filter_map(|item| item.as_mut().err()).for_each(mask_text);
}

/// Programs look at the code.
fn mask_text(error: &mut Error) {
    error.text = "".into();
}

/// The topic exists only because a request waits for it.
fn is_only_watched(stats: &TopicStats) -> bool {
    let watched = TopicStats { waiters: stats.waiters, topics: 1, ..TopicStats::default() };
    stats.waiters > 0 && *stats == watched
}

/// A topic that vanished and came again begins to count anew by the rules, not on Redis.
fn mask_totals(stats: &mut TopicStats) {
    let Counts { waiting, leased, dead, bytes, .. } = stats.counts;
    stats.counts = Counts { waiting, leased, dead, bytes, ..Counts::default() };
}

/// Compares all pages of a list: the size of each, then the jobs.
pub(crate) fn judge_pages(
    names: &Names,
    state: State,
    rules: Vec<Vec<JobView>>,
    redis: Vec<Vec<JobView>>,
) -> Result<(), String> {
    let sizes = |pages: &[Vec<JobView>]| pages.iter().map(Vec::len).collect::<Vec<_>>();
    same("sizes of pages", &sizes(&redis), &sizes(&rules))?;
    let mut want: Vec<JobView> = rules.into_iter().flatten().collect();
    let jobs = redis.into_iter().flatten().collect();
    let mut have = Ok(Reply::Page(Page { jobs, cursor: None }));
    names.to_rules(&mut have)?;
    let Ok(Reply::Page(Page { jobs: mut have, .. })) = have else { return Ok(()) };
    // The rules sort waiting jobs by clock before they sort them by time; Redis has one clock.
    let rank = |view: &JobView| match state {
        State::Leased => (0, 0, view.job.id),
        State::Dead | State::Done => (0, view.due_at, view.job.id),
        State::Delayed | State::Ready => (view.job.progress.priority, view.due_at, view.job.id),
    };
    want.sort_by_key(rank);
    if state == State::Leased {
        have.sort_by_key(rank);
    }
    same("jobs of a list", &have, &want)
}

/// An error that shows both, unless they are equal.
pub(crate) fn same<T: PartialEq + Debug>(what: &str, have: &T, want: &T) -> Result<(), String> {
    if have == want {
        return Ok(());
    }
    Err(format!("{what}\n    on Redis {have:?}\n    the rules {want:?}"))
}
