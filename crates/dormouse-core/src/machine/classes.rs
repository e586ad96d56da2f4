//! Walking the classes of a topic: page by page, because a topic may have ten thousand.

use std::collections::VecDeque;

use super::Machine;
use crate::error::Fatal;
use crate::place::Class;
use crate::timeline::Timeline;
use crate::topic::TopicNo;

/// Classes that are asked for at once.
const PAGE: usize = 32;

/// Where a walk over the classes of waiting jobs of a topic stands.
#[derive(Debug)]
pub(crate) struct ClassWalk {
    /// Where the next page begins; `None` = there is none.
    from: Option<Class>,
    page: VecDeque<Class>,
}

impl ClassWalk {
    /// A walk over the classes from this one on.
    pub(crate) fn from(class: Class) -> ClassWalk {
        ClassWalk { from: Some(class), page: VecDeque::new() }
    }

    /// A walk over all classes.
    pub(crate) fn new() -> ClassWalk {
        ClassWalk::from(Class::FIRST)
    }
}

impl<T: Timeline> Machine<T> {
    /// The next class of a walk.
    pub(crate) fn next_class(
        &mut self,
        topic: TopicNo,
        walk: &mut ClassWalk,
    ) -> Result<Option<Class>, Fatal> {
        if walk.page.is_empty()
            && let Some(from) = walk.from.take()
        {
            walk.page = self.timeline.classes(topic, from, PAGE)?.into();
            let is_full = walk.page.len() >= PAGE;
            walk.from = walk.page.back().filter(|_| is_full).map(|last| last.following());
        }
        Ok(walk.page.pop_front())
    }
}
