//! A progress line each ten seconds, and the one line of JSON at the end.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use serde_json::json;

use super::super::server::Server;
use super::MixPlan;
use super::account::Account;
use super::samples::Samples;
use super::scrape::{LatenessHistogram, Totals};
use crate::latency::Latencies;
use crate::pace::sleep_until;
use crate::progress::note;
use crate::{Result, report};

/// Memory and disk are flat if they grow by no more than this.
const FLAT: f64 = 1.1;
const MIB: f64 = 1_048_576.0;

pub(super) struct Figures<'a> {
    plan: &'a MixPlan,
    server: &'a Server,
    data: &'a Path,
    http: SocketAddr,
    pub(super) began: Instant,
    samples: Samples,
    /// The last progress line: when, the counters, the histogram.
    told_at: Instant,
    told: [u64; 3],
    histogram: LatenessHistogram,
    /// Over the whole run.
    late: Latencies,
    slowest_put_us: u64,
    slowest_cancel_us: u64,
    behind_us: u64,
}

impl<'a> Figures<'a> {
    pub(super) fn new(
        plan: &'a MixPlan,
        server: &'a Server,
        data: &'a Path,
    ) -> Result<Figures<'a>> {
        let http = server.http.ok_or("the server does not say where it serves HTTP")?;
        let histogram = LatenessHistogram::scrape(http)?;
        let now = Instant::now();
        Ok(Figures {
            plan,
            server,
            data,
            http,
            began: now,
            samples: Samples::default(),
            told_at: now,
            told: [0; 3],
            histogram,
            late: Latencies::default(),
            slowest_put_us: 0,
            slowest_cancel_us: 0,
            behind_us: 0,
        })
    }

    /// Looks at the server's memory and disk, so long after the beginning.
    pub(super) fn sleep_and_sample(&mut self, after: Duration) -> Result<()> {
        sleep_until(self.began + after);
        self.samples.take(self.began, &self.server.process, self.data)?;
        Ok(())
    }

    pub(super) fn progress(&mut self, account: &Account) -> Result<()> {
        let seconds = self.told_at.elapsed().as_secs_f64();
        let counters = [&account.puts, &account.cancels, &account.acks].map(|n| n.load(Relaxed));
        let [puts, cancels, acks] =
            [0, 1, 2].map(|n| (counters[n] - self.told[n]) as f64 / seconds);
        (self.told_at, self.told) = (Instant::now(), counters);
        let histogram = LatenessHistogram::scrape(self.http)?;
        let added = histogram.since(&self.histogram);
        self.histogram = histogram;
        let mut window = account.window();
        let sample = self.samples.take(self.began, &self.server.process, self.data)?;
        note(&format!(
            "{:.0} s: {puts:.0} puts/s, {cancels:.0} cancels/s, {acks:.0} acks/s; server late p99 \
             {}, p99.9 {}; seen p99 {} us, p99.9 {} us, max {} us; slowest put {} us, cancel {} \
             us; behind {} us; rss {:.0} MiB, disk {:.0} MiB",
            self.began.elapsed().as_secs_f64(),
            shown(added.per_mille_ms(990)),
            shown(added.per_mille_ms(999)),
            window.late.per_mille(990),
            window.late.per_mille(999),
            window.late.per_mille(1_000),
            window.slowest_put_us,
            window.slowest_cancel_us,
            window.behind_us,
            sample.rss_bytes as f64 / MIB,
            sample.disk_bytes as f64 / MIB,
        ));
        self.late.append(window.late);
        self.slowest_put_us = self.slowest_put_us.max(window.slowest_put_us);
        self.slowest_cancel_us = self.slowest_cancel_us.max(window.slowest_cancel_us);
        self.behind_us = self.behind_us.max(window.behind_us);
        Ok(())
    }

    pub(super) fn print(&mut self, account: &Account, totals: Totals) -> Result<()> {
        let puts = account.puts.load(Relaxed);
        let end = self.plan.time();
        let rss_growth = self.samples.growth(end, |sample| sample.rss_bytes);
        let disk_growth = self.samples.growth(end, |sample| sample.disk_bytes);
        let flat = |growth: Option<f64>| growth.map(|growth| growth <= FLAT);
        let late_ms = |per_mille| self.histogram.per_mille_ms(per_mille);
        report::print(json!({
            "rate": self.plan.rate,
            "delay_s": self.plan.delay,
            "minutes": self.plan.minutes,
            "puts": puts,
            "cancelled": account.cancels.load(Relaxed),
            "acked": account.acks.load(Relaxed),
            "left": totals.left,
            "early": account.early.load(Relaxed),
            "server_late_p99_ms_max": late_ms(990),
            "server_late_p999_ms_max": late_ms(999),
            "seen_late_p50_us": self.late.per_mille(500),
            "seen_late_p99_us": self.late.per_mille(990),
            "seen_late_p999_us": self.late.per_mille(999),
            "seen_late_max_us": self.late.per_mille(1_000),
            "slowest_put_us": self.slowest_put_us,
            "slowest_cancel_us": self.slowest_cancel_us,
            "behind_max_us": self.behind_us,
            "server_cpu_us_per_put": self.server.process.cpu()?.as_secs_f64() * 1e6
                / puts.max(1) as f64,
            "rss_max_mib": self.samples.most(|sample| sample.rss_bytes) as f64 / MIB,
            "disk_max_mib": self.samples.most(|sample| sample.disk_bytes) as f64 / MIB,
            "rss_growth": rss_growth,
            "disk_growth": disk_growth,
            "rss_flat": flat(rss_growth),
            "disk_flat": flat(disk_growth),
        }))
    }
}

/// The end of a bucket.
fn shown(late_ms: Option<f64>) -> String {
    late_ms.map_or_else(|| "-".to_owned(), |ms| format!("<= {ms} ms"))
}
