//! Jobs whose topics only the backend knows: may the caller touch them?

use std::collections::BTreeSet;

use dormouse_core::command::{Command, Reply};
use dormouse_core::error::{Code, Error};
use dormouse_core::job::{JobId, Token};
use dormouse_core::op::{KillTarget, Target};

use super::{Grant, Verb};
use crate::client::{BackendClient, unexpected};

/// A job that is never there: ids begin at 1.
const NOBODY: JobId = JobId(0);

impl Grant {
    /// May they do this with these jobs? Gives those that are not there: they may come to be before
    /// the next command, in a topic nobody asked about, so who is limited to some topics must not
    /// name them again; see `mask_absent`.
    pub(crate) async fn check_jobs(
        &self,
        client: &BackendClient,
        verb: Verb,
        ids: impl Iterator<Item = JobId>,
    ) -> Result<BTreeSet<JobId>, Error> {
        let mut absent = BTreeSet::new();
        if self.covers_all(verb) {
            return Ok(absent);
        }
        if !self.may_somewhere(verb) {
            return self.check_verb(verb).map(|()| absent);
        }
        let mut unknown: Vec<JobId> = ids.collect();
        while !unknown.is_empty() {
            let targets = unknown.iter().copied().map(Target::Id).collect();
            let Reply::Views(views) = client.call(Command::Get(targets)).await? else {
                return Err(unexpected(&Reply::Done));
            };
            let mut later = Vec::new();
            for (id, view) in unknown.into_iter().zip(views) {
                match view {
                    Ok(view) => self.check(verb, view.topic.as_str())?,
                    Err(error) if error.code == Code::NotFound => drop(absent.insert(id)),
                    // It did not fit into this reply: the next one begins with it.
                    Err(error) if error.code == Code::TooLarge => later.push(id),
                    Err(error) => return Err(error),
                }
            }
            unknown = later;
        }
        Ok(absent)
    }
}

/// Lets a command name nobody where it names an absent job.
pub(crate) fn mask_absent(command: &mut Command, absent: &BTreeSet<JobId>) {
    let hide = |id: &mut JobId| {
        if absent.contains(id) {
            *id = NOBODY;
        }
    };
    let hide_token = |token: &mut Token| hide(&mut token.id);
    let hide_target = |target: &mut Target| {
        if let Target::Id(id) = target {
            hide(id);
        }
    };
    match command {
        Command::Ack(tokens) => tokens.iter_mut().for_each(hide_token),
        Command::Nack(items) => items.iter_mut().for_each(|item| hide_token(&mut item.token)),
        Command::Release(items) => items.iter_mut().for_each(|item| hide_token(&mut item.token)),
        Command::Extend(items) => items.iter_mut().for_each(|item| hide_token(&mut item.token)),
        Command::Cancel(items) => items.iter_mut().for_each(|item| hide_target(&mut item.target)),
        Command::Reschedule(items) => {
            items.iter_mut().for_each(|item| hide_target(&mut item.target));
        }
        Command::Revive(targets) | Command::Get(targets) => {
            targets.iter_mut().for_each(hide_target);
        }
        Command::Kill(items) => items.iter_mut().for_each(|item| match &mut item.target {
            KillTarget::Token(token) => hide_token(token),
            KillTarget::Resting(target) => hide_target(target),
        }),
        Command::ReserveId(reserve) => hide(&mut reserve.id),
        _ => {}
    }
}
