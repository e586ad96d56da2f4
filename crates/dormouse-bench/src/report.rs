//! The one line of JSON.

use std::io::Write;

use serde::Serialize;

use crate::Result;
use crate::cancel::CancelFigures;
use crate::drain::DrainFigures;
use crate::fill::FillFigures;
use crate::herd::HerdFigures;
use crate::idle::IdleFigures;
use crate::keyed::KeyedFigures;
use crate::late::LateFigures;
use crate::late_busy::BusyFigures;
use crate::leftovers::LeftoverFigures;
use crate::reopen::ReopenFigures;

/// The disk without a store, before and after the fill.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct RawFigures {
    /// Jobs per second of a plain file writer: the same bytes per batch, synced per batch.
    pub(crate) raw_append_per_s: f64,
    pub(crate) raw_append_before_per_s: f64,
    pub(crate) raw_append_after_per_s: f64,
    pub(crate) raw_batch_bytes: u64,
    pub(crate) put_to_raw: f64,
}

/// The options of the run.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Setup {
    pub(crate) jobs: u64,
    pub(crate) body: usize,
    pub(crate) batch: usize,
    pub(crate) in_flight: usize,
    pub(crate) topics: u64,
    pub(crate) keyed: bool,
    pub(crate) herd: bool,
    pub(crate) ready: bool,
    pub(crate) bulk_jobs: u64,
    /// Jobs that are put and cancelled before a start; 0 = that is left out.
    pub(crate) cancelled_jobs: u64,
    /// One of so many of them is kept; 0 = none is.
    pub(crate) keep_every: u64,
    pub(crate) seed: u64,
}

/// All figures; those of phases left out are not there.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Report {
    #[serde(flatten)]
    pub(crate) setup: Setup,
    #[serde(flatten)]
    pub(crate) fill: Option<FillFigures>,
    #[serde(flatten)]
    pub(crate) raw: Option<RawFigures>,
    #[serde(flatten)]
    pub(crate) reopen: Option<ReopenFigures>,
    #[serde(flatten)]
    pub(crate) idle: Option<IdleFigures>,
    #[serde(flatten)]
    pub(crate) keyed: Option<KeyedFigures>,
    #[serde(flatten)]
    pub(crate) cancel: Option<CancelFigures>,
    #[serde(flatten)]
    pub(crate) late: Option<LateFigures>,
    #[serde(flatten)]
    pub(crate) late_beside: Option<BusyFigures>,
    #[serde(flatten)]
    pub(crate) late_after: Option<BusyFigures>,
    #[serde(flatten)]
    pub(crate) herd: Option<HerdFigures>,
    #[serde(flatten)]
    pub(crate) drain: Option<DrainFigures>,
    #[serde(flatten)]
    pub(crate) leftovers: Option<LeftoverFigures>,
    /// How the page cache was dropped before the cancels.
    pub(crate) cache_dropped: Option<&'static str>,
    /// The most of all phases.
    pub(crate) rss_mib: f64,
}

impl Report {
    /// The most memory that any phase had.
    pub(crate) fn set_rss(&mut self) {
        let phases = [
            self.fill.as_ref().map(|figures| figures.rss_fill_mib),
            self.reopen.as_ref().map(|figures| figures.rss_reopen_mib),
            self.cancel.as_ref().map(|figures| figures.rss_cancel_mib),
            self.late.as_ref().map(|figures| figures.rss_late_mib),
            rss_of(self.late_beside.as_ref(), "late_beside_rss_mib"),
            rss_of(self.late_after.as_ref(), "late_after_rss_mib"),
            self.herd.as_ref().map(|figures| figures.rss_herd_mib),
            self.drain.as_ref().map(|figures| figures.rss_drain_mib),
            self.leftovers.as_ref().map(LeftoverFigures::rss_mib),
        ];
        self.rss_mib = phases.into_iter().flatten().fold(0.0, f64::max);
    }

    pub(crate) fn print(&self) -> Result<()> {
        print(serde_json::to_value(self)?)
    }
}

fn rss_of(figures: Option<&BusyFigures>, name: &str) -> Option<f64> {
    figures?.get(name)?.as_f64()
}

/// Prints figures as the one line of JSON.
pub(crate) fn print(mut figures: serde_json::Value) -> Result<()> {
    if let Some(figures) = figures.as_object_mut() {
        figures.values_mut().for_each(round);
    }
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "{figures}")?;
    Ok(stdout.flush()?)
}

/// Three digits after the point, none for what is large: more would be noise.
pub(crate) fn round(value: &mut serde_json::Value) {
    let Some(number) = value.as_f64().filter(|_| value.is_f64()) else { return };
    *value = if number.abs() >= 1_000.0 {
        serde_json::Value::from(number.round() as i64)
    } else {
        serde_json::Value::from((number * 1e3).round() / 1e3)
    };
}
