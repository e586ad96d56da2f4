//! Jobs of a state that fit a filter, found page by page. A scan looks at a bounded number of jobs
//! and tells where the next one goes on: a filter that fits nothing costs no more than another.

use bytes::Bytes;
use dormouse_core::error::Error;
use dormouse_core::job::State;
use dormouse_core::limits::{ERROR_BYTES_MAX, KEY_BYTES_MAX, TTL_MS_MAX};
use dormouse_core::op::{JobView, List, ListRange, Page, check};
use dormouse_core::topic::TopicName;

use crate::client::BackendClient;
use crate::limits::{SCAN_BYTES_MAX, SCAN_JOBS_MAX};

/// Jobs that one page of a scan has at most.
const PAGE_JOBS: usize = 256;

/// What a job must have to be found.
#[derive(Debug, Default)]
pub(crate) struct JobFilter {
    error_prefix: Option<Bytes>,
    key_prefix: Option<Bytes>,
    due_until: Option<u64>,
}

impl JobFilter {
    /// Checks the limits of what was given; `None` = nothing was.
    pub(crate) fn new(
        error_prefix: Option<String>,
        key_prefix: Option<String>,
        older_than_ms: Option<i64>,
        now_ms: u64,
    ) -> Result<Option<JobFilter>, Error> {
        let is_given = error_prefix.is_some() || key_prefix.is_some() || older_than_ms.is_some();
        let prefix = |field: &str, text: Option<String>, max: usize| match text {
            Some(text) if text.len() > max => {
                let bytes = text.len();
                Err(Error::invalid(format!("{field} has {bytes} bytes; give at most {max}")))
            }
            text => Ok(text.map(Bytes::from)),
        };
        let error_prefix = prefix("error_prefix", error_prefix, ERROR_BYTES_MAX)?;
        let key_prefix = prefix("key_prefix", key_prefix, KEY_BYTES_MAX)?;
        let age_ms = older_than_ms.map(|ms| check::span("older_than", ms, 0, TTL_MS_MAX));
        let due_until = age_ms.transpose()?.map(|ms| now_ms.saturating_sub(ms));
        Ok(is_given.then_some(JobFilter { error_prefix, key_prefix, due_until }))
    }

    fn fits(&self, view: &JobView) -> bool {
        let begins = |text: Option<&Bytes>, prefix: &Option<Bytes>| match prefix {
            Some(prefix) => text.is_some_and(|text| text.starts_with(prefix)),
            None => true,
        };
        begins(view.job.progress.error.as_ref(), &self.error_prefix)
            && begins(view.job.key(), &self.key_prefix)
            && self.due_until.is_none_or(|until| view.due_at <= until)
    }
}

/// A look at the jobs of one state.
#[derive(Debug)]
pub(crate) struct Scan {
    list: List,
    filter: JobFilter,
    looked: u64,
    bytes: u64,
    is_over: bool,
    /// The last page had more jobs that fit than were wanted: it is read again, shorter.
    is_again: bool,
}

impl Scan {
    pub(crate) fn new(
        topic: TopicName,
        state: State,
        cursor: Option<String>,
        filter: JobFilter,
    ) -> Scan {
        let list = List { topic, state, cursor, limit: PAGE_JOBS, range: ListRange::default() };
        Scan { list, filter, looked: 0, bytes: 0, is_over: false, is_again: false }
    }

    /// Only jobs within this range, in its order.
    pub(crate) fn within(mut self, range: ListRange) -> Scan {
        self.list.range = range;
        self
    }

    /// Whether it may look at more.
    pub(crate) fn goes_on(&self) -> bool {
        !self.is_over && self.looked < SCAN_JOBS_MAX && self.bytes < SCAN_BYTES_MAX
    }

    /// Looks at a page; gives the jobs that fit, at most `max`.
    pub(crate) async fn page(
        &mut self,
        client: &BackendClient,
        max: usize,
    ) -> Result<Vec<JobView>, Error> {
        loop {
            let page = client.call(self.portion()).await?;
            if let Some(jobs) = self.take(page, max) {
                return Ok(jobs);
            }
        }
    }

    /// The page to read next.
    pub(crate) fn portion(&self) -> List {
        self.list.clone()
    }

    /// Takes that page; gives the jobs that fit, at most `max`, or nothing if it has to be read
    /// again.
    pub(crate) fn take(&mut self, page: Page, max: usize) -> Option<Vec<JobView>> {
        if let Some(limit) = self.jobs_up_to(&page, max) {
            // More fit than are wanted. A cursor stands behind a page, so it has to end earlier.
            // If jobs were moved between two reads, so few as are wanted cannot be too many.
            self.list.limit = if self.is_again { max.max(1) } else { limit };
            self.is_again = true;
            return None;
        }
        (self.is_again, self.list.limit) = (false, PAGE_JOBS);
        self.looked += page.jobs.len() as u64;
        self.bytes += page.jobs.iter().map(|view| u64::from(view.job.progress.bytes)).sum::<u64>();
        self.is_over = page.cursor.is_none();
        self.list.cursor = page.cursor;
        Some(page.jobs.into_iter().filter(|view| self.filter.fits(view)).collect())
    }

    /// Of a page with more than `max` jobs that fit, the number of jobs up to the last wanted one.
    fn jobs_up_to(&self, page: &Page, max: usize) -> Option<usize> {
        let fitting = page.jobs.iter().enumerate().filter(|(_, view)| self.filter.fits(view));
        let indexes: Vec<usize> =
            fitting.map(|(index, _)| index).take(max.saturating_add(1)).collect();
        (indexes.len() > max).then(|| max.checked_sub(1).map_or(1, |last| indexes[last] + 1))
    }

    /// The number of jobs it has looked at, and where the next scan goes on; `None` = this was the
    /// end.
    pub(crate) fn into_end(self) -> (u64, Option<String>) {
        (self.looked, self.list.cursor)
    }
}
