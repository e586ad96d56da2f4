//! stats: the counts of all tubes, of all connections, and of the process.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::BytesMut;
use dormouse_core::error::Error;
use dormouse_core::op::{Stats, TopicStats, TopicsPage};

use super::PendingReply;
use super::list::Listing;
use crate::beanstalk::host::Usage;
use crate::beanstalk::{Beanstalk, clock, reply};
use crate::pipeline::{Next, Request, Turn};

/// The size of a binlog file of the original; there are none here.
const BINLOG_BYTES_MAX: u64 = 10_485_760;

/// The version of the original that this server behaves like; some clients expect three numbers.
const VERSION: &str = concat!("1.13.0+dormouse.", env!("CARGO_PKG_VERSION"));

/// Counts of all tubes, added up page by page.
pub(crate) struct TotalsScan {
    totals: TopicStats,
    listing: Listing,
    sum: Sum,
}

#[derive(Clone, Copy, Default)]
struct Sum {
    urgent: u64,
    ready: u64,
    delayed: u64,
}

impl Beanstalk {
    pub(super) fn stats(turn: &mut Turn<PendingReply>) {
        turn.send_last(Request::new(Stats { topic: None }, PendingReply::Totals));
    }

    pub(super) fn totals(
        &self,
        totals: Result<TopicStats, Error>,
        out: &mut BytesMut,
    ) -> Next<PendingReply> {
        match totals {
            Ok(totals) => {
                let (listing, sum) = (Listing::default(), Sum::default());
                let request = listing.request();
                let adding = Box::new(TotalsScan { totals, listing, sum });
                return Some(Request::new(request, PendingReply::Added(adding)));
            }
            Err(error) => reply::error(&error, out),
        }
        None
    }

    pub(super) fn added(
        &self,
        mut adding: Box<TotalsScan>,
        page: Result<TopicsPage, Error>,
        out: &mut BytesMut,
    ) -> Next<PendingReply> {
        let TotalsScan { totals, listing, sum } = &mut *adding;
        let add = |stats: &TopicStats| {
            sum.urgent += stats.urgent;
            sum.ready += stats.ready;
            sum.delayed += stats.delayed;
        };
        match listing.take(page, add) {
            Ok(true) => return Some(Request::new(listing.request(), PendingReply::Added(adding))),
            Ok(false) => {
                let tubes = self.shared.tubes.settle(&listing.found, listing.is_cut).len() as u64;
                // With more topics than are read, only the total of waiting jobs is known.
                if listing.is_cut {
                    *sum = Sum { urgent: 0, ready: totals.counts.waiting, delayed: 0 };
                }
                let tubes = if listing.is_cut { tubes.max(totals.topics) } else { tubes };
                reply::yaml(&self.describe(totals, *sum, tubes), out);
            }
            Err(error) => reply::error(&error, out),
        }
        None
    }

    fn describe(&self, totals: &TopicStats, sum: Sum, tubes: u64) -> String {
        let shared = &self.shared;
        let mut text = Text(String::from("---\n"));
        text.number("current-jobs-urgent", sum.urgent);
        text.number("current-jobs-ready", sum.ready);
        text.number("current-jobs-reserved", totals.counts.leased);
        text.number("current-jobs-delayed", sum.delayed);
        text.number("current-jobs-buried", totals.counts.dead);
        for (name, count) in shared.commands.read() {
            text.number(&format!("cmd-{name}"), count);
        }
        text.number("job-timeouts", totals.counts.expiries);
        text.number("total-jobs", totals.counts.puts);
        text.number("max-job-size", shared.job_bytes_max as u64);
        text.number("current-tubes", tubes);
        let connections = &shared.connections;
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        text.number("current-connections", read(&connections.connections));
        text.number("current-producers", read(&connections.producers));
        text.number("current-workers", read(&connections.workers));
        text.number("current-waiting", read(&connections.waiting));
        text.number("total-connections", read(&connections.connections_ever));
        self.describe_process(&mut text);
        text.0
    }

    fn describe_process(&self, text: &mut Text) {
        let (shared, usage) = (&self.shared, Usage::read());
        text.number("pid", std::process::id().into());
        text.quoted("version", VERSION);
        text.bare("rusage-utime", &seconds(usage.user_ms));
        text.bare("rusage-stime", &seconds(usage.system_ms));
        let uptime = clock::now().saturating_duration_since(shared.started);
        text.number("uptime", uptime.as_secs());
        text.number("binlog-oldest-index", 0);
        text.number("binlog-current-index", 0);
        text.number("binlog-records-migrated", 0);
        text.number("binlog-records-written", 0);
        text.number("binlog-max-size", BINLOG_BYTES_MAX);
        text.bare("draining", if shared.drain.has_begun() { "true" } else { "false" });
        text.bare("id", &shared.host.id);
        text.quoted("hostname", &shared.host.hostname);
        text.quoted("os", &shared.host.os);
        text.quoted("platform", &shared.host.platform);
    }
}

/// A map in YAML. Writing to a string does not fail.
struct Text(String);

impl Text {
    fn number(&mut self, key: &str, value: u64) {
        let _ = writeln!(self.0, "{key}: {value}");
    }

    fn bare(&mut self, key: &str, value: &str) {
        let _ = writeln!(self.0, "{key}: {value}");
    }

    fn quoted(&mut self, key: &str, value: &str) {
        let _ = writeln!(self.0, "{key}: \"{value}\"");
    }
}

fn seconds(ms: u64) -> String {
    format!("{}.{:06}", ms / 1_000, ms % 1_000 * 1_000)
}
