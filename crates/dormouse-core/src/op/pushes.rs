//! pushes: a page of the topics that are pushed.

use std::sync::Arc;

use crate::command::{Command, Reply, operation};
use crate::limits::PUSHES_PAGE_BYTES_MAX;
use crate::machine::{Machine, Rule};
use crate::op::list::check_limit;
use crate::timeline::Timeline;
use crate::topic::{Push, TopicName};

/// A page of the topics that are pushed, in the order of their names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pushes {
    /// After this one.
    pub after: Option<TopicName>,
    /// Nothing is listed if no push has changed since a page with this revision.
    pub seen: Option<u64>,
    /// How many at most.
    pub limit: usize,
}

/// A page of the topics that are pushed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PushesPage {
    /// The topics. They may be fewer than were asked for and not be the last.
    pub pushes: Vec<(TopicName, Arc<Push>)>,
    /// There are more.
    pub more: bool,
    /// Another one after every change of a push.
    pub revision: u64,
}

operation! {
    Pushes => PushesPage,
        request => Command::Pushes(request), Reply::Pushes(reply) => Ok(reply);
}

impl<T: Timeline> Machine<T> {
    pub(crate) fn pushes_page(&self, page: &Pushes) -> Rule<Reply> {
        check_limit(page.limit)?;
        let revision = self.topics.push_revision();
        let mut found = PushesPage { pushes: Vec::new(), more: false, revision };
        if page.seen == Some(revision) {
            return Ok(Reply::Pushes(found));
        }
        let mut bytes = 0;
        for topic in self.topics.pushed_after(page.after.as_ref()) {
            if found.pushes.len() >= page.limit || bytes > PUSHES_PAGE_BYTES_MAX {
                found.more = true;
                break;
            }
            let Some(push) = &topic.settings.push else { continue };
            bytes += push.record.len();
            found.pushes.push((topic.name.clone(), Arc::clone(push)));
        }
        Ok(Reply::Pushes(found))
    }
}
