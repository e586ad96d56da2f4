//! `dormouse forecast`: how many jobs become due when.

use serde::Deserialize;

use crate::Global;
use crate::client::Request;
use crate::exit::Failure;
use crate::output::{self, Output};
use crate::target::topic_path;
use crate::units::{At, Span};

/// The longest bar.
const BAR_CHARS_MAX: u64 = 50;

/// Count the jobs that become due, step by step
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  dormouse forecast orders
  dormouse forecast orders --from 2027-01-01T00:00:00Z --to 2027-01-02T00:00:00Z --step 1h")]
pub(crate) struct Args {
    /// The topic
    topic: String,
    /// The first instant; now if not given
    #[arg(long, value_name = "INSTANT")]
    from: Option<At>,
    /// The last instant; a day later if not given
    #[arg(long, value_name = "INSTANT")]
    to: Option<At>,
    /// The length of a step; an hour if not given
    #[arg(long, value_name = "SPAN", allow_hyphen_values = true)]
    step: Option<Span>,
}

#[derive(Deserialize)]
struct Forecast {
    from: String,
    step_ms: u64,
    counts: Vec<u64>,
}

impl Args {
    pub(crate) async fn run(self, global: &Global) -> Result<(), Failure> {
        let mut query = Vec::new();
        if let Some(from) = &self.from {
            query.push(format!("from={}", from.0));
        }
        if let Some(to) = &self.to {
            query.push(format!("to={}", to.0));
        }
        if let Some(step) = self.step {
            query.push(format!("step={}", step.duration().as_millis()));
        }
        let mut path = format!("{}/forecast", topic_path(&self.topic));
        if !query.is_empty() {
            path.push_str(&format!("?{}", query.join("&")));
        }
        let reply = global.client()?.call(Request::get(path)).await?;
        if global.output == Output::Json {
            return output::print_json(&reply.body);
        }
        output::print(chart(&reply.parse()?).as_bytes())
    }
}

/// One line per step: when it begins, how many, and a bar.
fn chart(forecast: &Forecast) -> String {
    let most = forecast.counts.iter().copied().max().unwrap_or(0).max(1);
    let from: Option<jiff::Timestamp> = forecast.from.parse().ok();
    let row = |(index, &count): (usize, &u64)| {
        let after_ms = i64::try_from(forecast.step_ms.saturating_mul(index as u64)).ok();
        let start =
            after_ms.and_then(|ms| from?.checked_add(jiff::SignedDuration::from_millis(ms)).ok());
        let start = start.map(|start| format!("{start:.3}")).unwrap_or_default();
        // Whatever is not nothing is seen.
        let length = (count * BAR_CHARS_MAX / most).max(u64::from(count > 0));
        vec![start, count.to_string(), "#".repeat(usize::try_from(length).unwrap_or(0))]
    };
    let rows: Vec<Vec<String>> = forecast.counts.iter().enumerate().map(row).collect();
    output::table(&["from", "jobs", ""], &rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_as_long_as_their_counts() {
        let from = "2027-01-01T08:00:00.000Z".to_owned();
        let forecast = Forecast { from, step_ms: 3_600_000, counts: vec![100, 0, 1] };
        let expected = format!(
            "FROM                      JOBS\n\
             2027-01-01T08:00:00.000Z   100  {}\n\
             2027-01-01T09:00:00.000Z     0\n\
             2027-01-01T10:00:00.000Z     1  #\n",
            "#".repeat(50)
        );
        assert_eq!(chart(&forecast), expected);
    }
}
