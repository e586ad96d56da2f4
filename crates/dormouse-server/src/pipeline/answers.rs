//! Answers that have come and are not written yet: weighed, and what they grant in good hands.

use std::vec;

use crate::limits::OUTPUT_BYTES;
use dormouse_core::backend::Answer;
use dormouse_core::command::Reply;
use dormouse_core::op::{JobView, LeasedJob, Unlock};

use super::listen::PipelineContext;
use crate::budget::Held;
use crate::client::{Custody, no_reply};

/// What a topic takes in a page of them, roughly.
const TOPIC_BYTES: u64 = 512;

/// The answers of one group, in order. What is not taken from here is given back.
pub(super) struct Answers {
    items: vec::IntoIter<(Answer, Option<Custody>)>,
    #[expect(dead_code, reason = "its drop gives the bytes back")]
    held: Held,
}

impl Answers {
    /// Nothing was asked.
    pub(super) fn none(context: &PipelineContext) -> Answers {
        Answers { items: Vec::new().into_iter(), held: context.answers.hold() }
    }

    /// Takes charge of what was granted. Who is told more than all may hold together is refused:
    /// what was granted goes back then. Little is never refused.
    pub(super) fn of(
        context: &PipelineContext,
        answers: Vec<Answer>,
        locks: Vec<(usize, Unlock)>,
    ) -> Answers {
        let (mut held, mut total) = (context.answers.hold(), 0);
        let mut locks = locks.into_iter().peekable();
        let mut items = Vec::with_capacity(answers.len());
        for (index, answer) in answers.into_iter().enumerate() {
            let unlock = locks.next_if(|(at, _)| *at == index).map(|(_, unlock)| unlock);
            let custody = answer.as_ref().ok().and_then(|reply| custody(context, reply, unlock));
            let bytes = answer.as_ref().map_or(0, weight);
            total += bytes;
            let room = if total <= OUTPUT_BYTES { Ok(()) } else { context.answers.room_for(bytes) };
            items.push(match room {
                Ok(()) => {
                    held.take(bytes);
                    (answer, custody)
                }
                Err(error) => (Err(error), None),
            });
        }
        Answers { items: items.into_iter(), held }
    }

    /// The next one.
    pub(super) fn next(&mut self) -> (Answer, Option<Custody>) {
        self.items.next().unwrap_or_else(|| (Err(no_reply()), None))
    }
}

fn custody(context: &PipelineContext, reply: &Reply, unlock: Option<Unlock>) -> Option<Custody> {
    let grants = match reply {
        Reply::Jobs(jobs) => !jobs.is_empty(),
        Reply::Lock(_) => unlock.is_some(),
        _ => false,
    };
    grants.then(|| Custody::of(&context.client, reply, unlock))
}

/// What a reply holds, as far as that can be much.
fn weight(reply: &Reply) -> usize {
    let viewed = |view: &JobView| u64::from(view.job.progress.bytes);
    let bytes = match reply {
        Reply::Jobs(jobs) => jobs.iter().map(LeasedJob::bytes).sum(),
        Reply::Page(page) => page.jobs.iter().map(viewed).sum(),
        Reply::Views(views) => views.iter().flatten().map(viewed).sum(),
        Reply::View(view) => view.as_ref().map_or(0, viewed),
        Reply::Topics(page) => page.topics.len() as u64 * TOPIC_BYTES,
        _ => 0,
    };
    // Bounded by what a reply may hold.
    bytes as usize
}
