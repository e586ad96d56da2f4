//! `dormouse verify`: look at a whole data directory, or at all there is in a Redis, and say what
//! is wrong with it.

use std::path::{Path, PathBuf};

use dormouse_core::error::{Code, Error};
use dormouse_disk::damage::Damage;
use dormouse_disk::manifest::MANIFEST_NAME;
use dormouse_disk::verify::{Report, verify_dir};
use dormouse_redis::{Problem, VerifyOptions, VerifyReport};
use serde_json::{Value, json};

use crate::Global;
use crate::exit::{Exit, Failure};
use crate::output::{self, Output};

/// Check every byte of a data directory that no server has open, or all jobs in a Redis
///
/// A directory is never changed. Redis is checked while servers work on it, a page at a time; with
/// --mend problems are repaired, so that no job is lost: when in doubt it is delivered again.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  dormouse verify ./dormouse-data
  dormouse verify /backups/monday && echo sound
  dormouse verify --redis-url redis://10.0.0.1:6379
  dormouse verify --redis-url redis://10.0.0.1:6379 --mend")]
pub(crate) struct Args {
    /// The data directory, or a backup
    #[arg(required_unless_present = "redis_url")]
    dir: Option<PathBuf>,

    /// The Redis, or nodes of the cluster with commas between
    #[arg(long, value_name = "URL", conflicts_with = "dir")]
    redis_url: Option<String>,

    /// Repair what can be repaired
    #[arg(long, conflicts_with = "dir", requires = "redis_url")]
    mend: bool,
}

impl Args {
    pub(crate) fn run(self, global: &Global) -> Result<(), Failure> {
        match (&self.redis_url, &self.dir) {
            (Some(url), _) => check_redis(url, VerifyOptions { mend: self.mend }, global),
            (None, Some(dir)) => check_dir(dir, global),
            (None, None) => Err(Failure::usage("give a directory, or --redis-url")),
        }
    }
}

fn check_dir(dir: &Path, global: &Global) -> Result<(), Failure> {
    // Opening would make it, and nothing is always sound.
    if let Err(error) = std::fs::metadata(dir.join(MANIFEST_NAME)) {
        let dir = dir.display();
        if error.kind() != std::io::ErrorKind::NotFound {
            let text = format!("{dir} cannot be read: {error}; run it as the server's user");
            return Err(Failure::new(text));
        }
        let text = format!("{dir}: there is no {MANIFEST_NAME} in it, so no store");
        return Err(Failure::with(Exit::NotFound, text));
    }
    let report = verify_dir(dir).map_err(|error| Failure::new(error.to_string()))?;
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

fn table(report: &Report) -> String {
    let mut rows = vec![
        ("sound", yes_or_no(report.is_sound())),
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

fn check_redis(url: &str, options: VerifyOptions, global: &Global) -> Result<(), Failure> {
    let report = dormouse_redis::verify(url, options).map_err(|error| refused(&error))?;
    match global.output {
        Output::Json => output::print_line(&redis_json(&report).to_string())?,
        Output::Table => output::print(redis_table(&report).as_bytes())?,
    }
    for problem in &report.problems {
        output::say(&problem.to_string());
    }
    let untold = report.found - report.problems.len() as u64;
    if untold > 0 {
        output::say(&format!("and {untold} more"));
    }
    for what in &report.unchecked {
        output::say(&format!("not checked: {what}"));
    }
    if report.is_sound() {
        return Ok(());
    }
    let left = report.found - report.mended;
    Err(Failure::new(if options.mend {
        format!("{left} of {} problems could not be mended", report.found)
    } else {
        format!("problems found: {left}; nothing was changed, --mend mends")
    }))
}

fn refused(error: &Error) -> Failure {
    let text = error.text.to_string();
    match error.code {
        Code::Invalid => Failure::usage(text),
        Code::Unavailable => Failure::unreachable(text),
        _ => Failure::new(text),
    }
}

fn counts(report: &VerifyReport) -> [(&'static str, u64); 11] {
    [
        ("topics", report.topics),
        ("partitions", report.partitions),
        ("delayed", report.delayed),
        ("ready", report.ready),
        ("leased", report.leased),
        ("dead", report.dead),
        ("keys", report.keys),
        ("holds", report.holds),
        ("locks", report.locks),
        ("found", report.found),
        ("mended", report.mended),
    ]
}

fn redis_table(report: &VerifyReport) -> String {
    let mut rows = vec![("sound", yes_or_no(report.is_sound()))];
    rows.extend(counts(report).map(|(name, count)| (name, count.to_string())));
    output::pairs(&rows)
}

fn redis_json(report: &VerifyReport) -> Value {
    let problem = |problem: &Problem| {
        json!({
            "kind": problem.kind.name,
            "place": problem.place,
            "subject": problem.subject,
            "text": problem.kind.text,
            "detail": problem.detail,
            "outcome": problem.outcome.as_str(),
        })
    };
    let mut document = json!({
        "sound": report.is_sound(),
        "problems": report.problems.iter().map(problem).collect::<Vec<_>>(),
        "unchecked": report.unchecked,
    });
    for (name, count) in counts(report) {
        document[name] = count.into();
    }
    document
}

fn yes_or_no(yes: bool) -> String {
    if yes { "yes" } else { "no" }.to_owned()
}
