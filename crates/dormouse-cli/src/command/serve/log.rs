//! Logs to stderr.

use std::fmt;

use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::{Event, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::{Context, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::command::config::{Config, Source};
use crate::log_line::{LogFormat, log_line};
use crate::output;

/// Sets the log up for this process.
pub(in crate::command) fn start(level: LevelFilter, format: LogFormat) {
    // Of libraries only warnings and errors matter.
    let others = level.min(LevelFilter::WARN);
    let filter = Targets::new().with_default(others).with_target("dormouse", level);
    let registry = tracing_subscriber::registry();
    // It fails if there is a log already, and then that one is as good.
    let _ = match format {
        LogFormat::Text => {
            let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
            registry.with(lines.with_target(false)).with(filter).try_init()
        }
        LogFormat::Json => {
            // What ends the process is a line of the same kind.
            output::say_in_json();
            registry.with(JsonLines).with(filter).try_init()
        }
    };
}

/// Writes each event as a line of JSON. By hand: the `json` feature of tracing-subscriber adds a
/// crate, and puts the message among the fields.
struct JsonLines;

impl<S: Subscriber> Layer<S> for JsonLines {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut seen = Fields::default();
        event.record(&mut seen);
        let (level, target) = (*event.metadata().level(), event.metadata().target());
        output::say_json(&log_line(level, target, &seen.message, &seen.others));
    }
}

/// What an event carries.
#[derive(Default)]
struct Fields {
    message: String,
    others: Map<String, Value>,
}

impl Fields {
    fn add(&mut self, field: &Field, value: Value) {
        self.others.insert(field.name().to_owned(), value);
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let text = format!("{value:?}");
        if field.name() == "message" {
            self.message = text;
        } else {
            self.add(field, text.into());
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "message" {
            self.message = value.to_owned();
        } else {
            self.add(field, value.into());
        }
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.add(field, value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.add(field, value.into());
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.add(field, value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.add(field, value.into());
    }
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

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    /// Keeps the fields of events.
    struct Keep(Arc<Mutex<Vec<Fields>>>);

    impl<S: Subscriber> Layer<S> for Keep {
        fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
            let mut seen = Fields::default();
            event.record(&mut seen);
            self.0.lock().unwrap().push(seen);
        }
    }

    #[test]
    fn fields_keep_their_kinds() {
        let kept = Arc::default();
        let subscriber = tracing_subscriber::registry().with(Keep(Arc::clone(&kept)));
        tracing::subscriber::with_default(subscriber, || {
            let node = "a:1";
            tracing::info!(jobs = 7, late = -1, part = 0.5, full = true, %node, "it is {}", 1);
        });
        let kept = kept.lock().unwrap();
        assert_eq!(kept[0].message, "it is 1");
        let expected = serde_json::json!({
            "jobs": 7, "late": -1, "part": 0.5, "full": true, "node": "a:1",
        });
        assert_eq!(Value::Object(kept[0].others.clone()), expected);
    }
}
