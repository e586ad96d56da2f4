//! list-tubes: tubes that are used or watched, and those that have jobs from any protocol.

use crate::limits::BEANSTALK_LISTED_TUBES_MAX;
use bytes::BytesMut;
use dormouse_core::error::Error;
use dormouse_core::op::{TopicStats, Topics, TopicsPage};
use dormouse_core::topic::TopicName;

use super::PendingReply;
use super::watch::list;
use crate::beanstalk::parse::is_tube_name;
use crate::beanstalk::{Beanstalk, reply};
use crate::pipeline::{Next, Request, Turn};
use crate::walk::PORTION;

/// Tubes with jobs, gathered page by page.
#[derive(Default)]
pub(crate) struct Listing {
    pub(super) found: Vec<TopicName>,
    /// The number of topics read, and the last one's name.
    looked_at: usize,
    after: Option<TopicName>,
    /// There are more topics than may be read.
    pub(super) is_cut: bool,
}

impl Listing {
    /// The request for the next page.
    pub(super) fn request(&self) -> Topics {
        Topics { after: self.after.clone(), limit: PORTION }
    }

    /// Adds a page, and calls `show` for each tube with jobs; true if there are more pages.
    pub(super) fn take(
        &mut self,
        page: Result<TopicsPage, Error>,
        mut show: impl FnMut(&TopicStats),
    ) -> Result<bool, Error> {
        let page = page?;
        self.looked_at += page.topics.len();
        self.after = page.topics.last().map(|(name, _)| name.clone());
        for (name, stats) in page.topics {
            let counts = &stats.counts;
            if counts.waiting + counts.leased + counts.dead > 0 {
                show(&stats);
                if is_tube_name(name.as_str()) {
                    self.found.push(name);
                }
            }
        }
        self.is_cut = page.more && self.looked_at >= BEANSTALK_LISTED_TUBES_MAX;
        Ok(page.more && !self.is_cut)
    }
}

impl Beanstalk {
    pub(super) fn list_tubes(turn: &mut Turn<PendingReply>) {
        let listing = Box::new(Listing::default());
        turn.send_last(Request::new(listing.request(), PendingReply::Listed(listing)));
    }

    pub(super) fn listed(
        &mut self,
        mut listing: Box<Listing>,
        page: Result<TopicsPage, Error>,
        out: &mut BytesMut,
    ) -> Next<PendingReply> {
        match listing.take(page, |_| {}) {
            Ok(true) => {
                return Some(Request::new(listing.request(), PendingReply::Listed(listing)));
            }
            Ok(false) => {
                let names = self.shared.tubes.settle(&listing.found, listing.is_cut);
                reply::yaml(&list(names.iter().map(TopicName::as_str)), out);
            }
            Err(error) => reply::error(&error, out),
        }
        None
    }
}
