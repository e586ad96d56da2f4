//! list: a page of jobs of a state.

use bytes::Bytes;
use dormouse_core::error::Error;
use dormouse_core::limits::REPLY_BYTES_MAX;
use dormouse_core::op::{JobView, List, ListOrder, ListRange, Page, check, check_limit};

use super::{NextCommand, ReplyKind, job, peek};
use crate::access::Verb;
use crate::pipeline::Turn;
use crate::resp::args::{Args, is, unknown};
use crate::resp::conn::{Conn, PendingReply};
use crate::resp::encode::Out;
use crate::scan::{JobFilter, Scan};
use crate::units::wall_ms;

/// Items of a page unless LIMIT is given.
pub(super) const LIMIT_DEFAULT: usize = 100;

const OPTIONS: &[&str] = &[
    "CURSOR",
    "LIMIT",
    "FROM",
    "TO",
    "DUE",
    "NEWEST",
    "NOBODIES",
    "ERROR_PREFIX",
    "KEY_PREFIX",
    "OLDER_THAN",
];

pub(in crate::resp) fn run(
    conn: &mut Conn,
    args: &mut Args<'_>,
    turn: &mut Turn<PendingReply>,
) -> Result<(), Error> {
    let topic = conn.topic(Verb::List, args.must("topic")?)?;
    let state = peek::state(args.must("state")?)?;
    let mut list =
        List { topic, state, cursor: None, limit: LIMIT_DEFAULT, range: ListRange::default() };
    let mut bodies = true;
    let (mut error_prefix, mut key_prefix, mut older_than_ms) = (None, None, None);
    while let Some(word) = args.next() {
        if is(word, "CURSOR") {
            list.cursor = Some(args.text("CURSOR")?.to_owned());
        } else if is(word, "LIMIT") {
            list.limit = args.number("LIMIT")?;
        } else if is(word, "FROM") {
            list.range.from_ms = Some(check::instant("from", args.instant("FROM")?)?);
        } else if is(word, "TO") {
            list.range.to_ms = Some(check::instant("to", args.instant("TO")?)?);
        } else if is(word, "DUE") {
            list.range.order = ListOrder::Due;
        } else if is(word, "NEWEST") {
            list.range.order = ListOrder::Newest;
        } else if is(word, "NOBODIES") {
            bodies = false;
        } else if is(word, "ERROR_PREFIX") {
            error_prefix = Some(args.text("ERROR_PREFIX")?.to_owned());
        } else if is(word, "KEY_PREFIX") {
            key_prefix = Some(args.text("KEY_PREFIX")?.to_owned());
        } else if is(word, "OLDER_THAN") {
            older_than_ms = Some(args.span("OLDER_THAN")?);
        } else {
            return Err(unknown(word, OPTIONS));
        }
    }
    match JobFilter::new(error_prefix, key_prefix, older_than_ms, wall_ms())? {
        None => conn.send_last(turn, list, ReplyKind::Page { bodies }),
        Some(filter) => {
            check_limit(list.limit)?;
            let filtered = FilteredList::new(list, filter, bodies);
            conn.send_last(turn, filtered.scan.portion(), ReplyKind::Filtered(Box::new(filtered)));
        }
    }
    Ok(())
}

/// A page of the jobs that fit a filter, read in portions.
pub(in crate::resp) struct FilteredList {
    scan: Scan,
    limit: usize,
    bodies: bool,
    found: Vec<JobView>,
    bytes: u64,
}

impl FilteredList {
    fn new(list: List, filter: JobFilter, bodies: bool) -> FilteredList {
        let limit = list.limit;
        let scan = Scan::new(list.topic, list.state, list.cursor, filter).within(list.range);
        FilteredList { scan, limit, bodies, found: Vec::new(), bytes: 0 }
    }

    /// Adds a portion to the page, and sends for the next.
    pub(super) fn on_page(mut self: Box<Self>, out: &mut Out<'_>, page: Page) -> NextCommand {
        for mut view in self.scan.take(page, self.limit - self.found.len()).unwrap_or_default() {
            if !self.bodies {
                view.job.content.body = Bytes::new();
            }
            self.bytes += view.job.content.bytes();
            self.found.push(view);
        }
        let has_room = self.found.len() < self.limit && self.bytes < REPLY_BYTES_MAX;
        if has_room && self.scan.goes_on() {
            return Ok(Some((self.scan.portion().into(), ReplyKind::Filtered(self))));
        }
        let (looked, cursor) = self.scan.into_end();
        let page = Page { jobs: self.found, cursor };
        out.list(3);
        write_fields(out, &page, self.bodies);
        out.number(looked);
        Ok(None)
    }
}

/// The cursor of the next page, or null if this is the last; then the jobs.
pub(super) fn write(out: &mut Out<'_>, page: &Page, bodies: bool) {
    out.list(2);
    write_fields(out, page, bodies);
}

fn write_fields(out: &mut Out<'_>, page: &Page, bodies: bool) {
    match &page.cursor {
        Some(cursor) => out.string(cursor.as_bytes()),
        None => out.null(),
    }
    out.list(page.jobs.len());
    for view in &page.jobs {
        job::write_view(out, view, bodies);
    }
}
