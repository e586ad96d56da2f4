//! Meters: a backend's measurements of itself, for export.

/// One measured thing.
#[derive(Clone, Debug, PartialEq)]
pub struct Meter {
    /// Its name, in the words of the Prometheus exposition format but without a prefix.
    pub name: &'static str,
    /// Its help text, a sentence without its full stop.
    pub help: &'static str,
    /// Its value.
    pub value: MeterValue,
}

/// The value of a meter. Times are in seconds.
#[derive(Clone, Debug, PartialEq)]
pub enum MeterValue {
    /// Only grows while the process lives.
    Counter(u64),
    /// Goes up and down.
    Gauge(u64),
    /// One that goes up and down for each of several things.
    Gauges {
        /// What they are, as the name of a label.
        label: &'static str,
        /// The name of each, and its value.
        values: Vec<(String, u64)>,
    },
    /// One that only grows for each of several things.
    Counters {
        /// What they are, as the name of a label.
        label: &'static str,
        /// The name of each, and its value.
        values: Vec<(&'static str, u64)>,
    },
    /// A time that goes up and down.
    Seconds(f64),
    /// How often a value fell where.
    Histogram {
        /// Upper ends of the buckets, ascending, inclusive.
        bounds: &'static [f64],
        /// How many fell into each bucket, not those before it; one more than bounds, for what was
        /// greater than all of them.
        counts: Vec<u64>,
        /// The sum of all values.
        sum: f64,
    },
}
