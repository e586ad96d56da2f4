//! `dormouse verify`: read a whole data directory and say what is wrong with it.

use std::path::PathBuf;

use dormouse_disk::damage::Damage;
use dormouse_disk::manifest::MANIFEST_NAME;
use dormouse_disk::verify::{Report, verify_dir};
use serde_json::{Value, json};

use super::Global;
use super::exit::{Exit, Failure};
use super::output::{self, Output};

/// Check every byte of a data directory that no server has open; changes nothing
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  dormouse verify ./dormouse-data
  dormouse verify /backups/monday && echo sound")]
pub(crate) struct Args {
    /// The data directory, or a backup
    dir: PathBuf,
}

impl Args {
    pub(crate) fn run(self, global: &Global) -> Result<(), Failure> {
        // Opening would make it, and nothing is always sound.
        if let Err(error) = std::fs::metadata(self.dir.join(MANIFEST_NAME)) {
            let dir = self.dir.display();
            if error.kind() != std::io::ErrorKind::NotFound {
                let text = format!("{dir} cannot be read: {error}; run it as the server's user");
                return Err(Failure::new(text));
            }
            let text = format!("{dir}: there is no {MANIFEST_NAME} in it, so no store");
            return Err(Failure::with(Exit::NotFound, text));
        }
        let report = verify_dir(&self.dir).map_err(|error| Failure::new(error.to_string()))?;
        match global.output {
            Output::Json => output::print_line(&json(&report).to_string())?,
            Output::Table => output::print(table(&report).as_bytes())?,
        }
        if report.is_sound() {
            return Ok(());
        }
        for damage in &report.damages {
            output::say(&damage.to_string());
        }
        let text = "the store is damaged; nothing was changed, restore a backup";
        Err(Failure::new(text))
    }
}

fn table(report: &Report) -> String {
    let mut rows = vec![
        ("sound", if report.is_sound() { "yes" } else { "no" }.to_owned()),
        ("runs", report.runs.to_string()),
        ("entries", report.entries.to_string()),
        ("batches", report.batches.to_string()),
        ("bytes", report.bytes.to_string()),
    ];
    if let Some(torn) = &report.torn {
        let text =
            format!("{} at byte {}: a crash cut it short, no damage", torn.file, torn.offset);
        rows.push(("torn", text));
    }
    output::pairs(&rows)
}

fn json(report: &Report) -> Value {
    let damage = |damage: &Damage| match damage {
        Damage::Corrupt { file, offset, what } => {
            json!({"file": file, "offset": offset, "detail": what})
        }
        Damage::Newer { file, .. } | Damage::Io { file, .. } => {
            json!({"file": file, "detail": damage.to_string()})
        }
    };
    json!({
        "sound": report.is_sound(),
        "runs": report.runs,
        "entries": report.entries,
        "batches": report.batches,
        "bytes": report.bytes,
        "torn": report.torn.as_ref().map(|torn| json!({"file": torn.file, "offset": torn.offset})),
        "damages": report.damages.iter().map(damage).collect::<Vec<_>>(),
    })
}
