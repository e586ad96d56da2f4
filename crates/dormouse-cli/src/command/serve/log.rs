//! Logs to stderr.

use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::command::config::{Config, Source};

/// Sets the log up for this process.
pub(in crate::command) fn start(level: LevelFilter) {
    // Of libraries only warnings and errors matter.
    let others = level.min(LevelFilter::WARN);
    let filter = Targets::new().with_default(others).with_target("dormouse", level);
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_target(false);
    // It fails if there is a log already, and then that one is as good.
    let _ = tracing_subscriber::registry().with(lines).with(filter).try_init();
}

/// Logs the values that are not defaults, with their source.
pub(super) fn effective(config: &Config) {
    tracing::info!("dormouse {}", env!("CARGO_PKG_VERSION"));
    for shown in config.shown() {
        if shown.source != Source::Default {
            tracing::info!("{} = {} ({})", shown.name, shown.value, shown.source);
        }
    }
    for warning in config.warnings() {
        tracing::warn!("{warning}");
    }
}
