//! `dormouse schedule preview`: the next ticks of a rule.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::as_usage;
use crate::Global;
use crate::client::Request;
use crate::exit::Failure;
use crate::output::{self, Output};
use crate::units::{At, Span};

/// Show a rule in words, its next ticks, and what it does when clocks change
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  dormouse schedule preview '0 3 * * 1-5' --zone Europe/Berlin
  dormouse schedule preview '*/10 * * * * *' --limit 3
  dormouse schedule preview --every 90m --from 2027-01-01T09:00:00Z")]
pub(crate) struct Args {
    /// The cron expression: minutes hours days months weekdays, or 6 fields with seconds first
    cron: Option<String>,
    /// The zone of the expression: an IANA name or an offset like +05:30; UTC if not given
    #[arg(long, value_name = "ZONE", allow_hyphen_values = true)]
    zone: Option<String>,
    /// Ticks at this distance instead
    #[arg(long, value_name = "SPAN", allow_hyphen_values = true)]
    every: Option<Span>,
    /// Ticks this long after the job before has ended instead
    #[arg(long, value_name = "SPAN", allow_hyphen_values = true)]
    gap: Option<Span>,
    /// Ticks after this instant; now if not given
    #[arg(long, value_name = "INSTANT")]
    from: Option<At>,
    /// How many; 10 if not given, at most 1000
    #[arg(long, value_name = "N")]
    limit: Option<u32>,
}

#[derive(Deserialize)]
struct Preview {
    ticks: Vec<String>,
    #[serde(default)]
    local: Vec<String>,
    words: String,
    notes: Vec<String>,
}

impl Args {
    pub(crate) async fn run(self, global: &Global) -> Result<(), Failure> {
        let mut form = Map::new();
        let mut add = |name: &str, value: Option<Value>| {
            value.map(|value| form.insert(name.to_owned(), value));
        };
        add("cron", self.cron.map(Value::from));
        add("zone", self.zone.map(Value::from));
        add("every", self.every.map(Value::from));
        add("gap", self.gap.map(Value::from));
        add("from", self.from.map(Value::from));
        add("limit", self.limit.map(Value::from));
        let request = Request::post("/v1/schedules/preview").json(&form);
        let reply = global.client()?.call(request).await.map_err(as_usage)?;
        if global.output == Output::Json {
            return output::print_json(&reply.body);
        }
        output::print(shown(&reply.parse()?).as_bytes())
    }
}

/// The words, a line per tick, by the clock of the zone too, and the notes.
fn shown(preview: &Preview) -> String {
    let ticks = preview.ticks.iter().enumerate().map(|(at, tick)| {
        let local = preview.local.get(at).map(|local| format!("  {}", output::clean(local)));
        format!("  {}{}\n", output::clean(tick), local.unwrap_or_default())
    });
    let notes = preview.notes.iter().map(|note| format!("note: {}\n", output::clean(note)));
    let words = output::clean(&preview.words);
    format!("{words}\n{}{}", ticks.collect::<String>(), notes.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_preview_is_words_ticks_and_notes() {
        let preview = Preview {
            ticks: vec!["2027-03-14T07:00:00.000Z".to_owned()],
            local: vec!["2027-03-14T03:00:00-04:00".to_owned()],
            words: "at 02:30 every day, America/New_York".to_owned(),
            notes: vec!["2027-03-14 has no 02:30: ticks at 03:00".to_owned()],
        };
        let expected = "at 02:30 every day, America/New_York\n  \
                        2027-03-14T07:00:00.000Z  2027-03-14T03:00:00-04:00\n\
                        note: 2027-03-14 has no 02:30: ticks at 03:00\n";
        assert_eq!(shown(&preview), expected);
    }
}
