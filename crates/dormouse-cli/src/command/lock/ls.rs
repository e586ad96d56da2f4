//! `dormouse lock ls`: the locks that are held.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::Global;
use crate::client::{Client, Request, encode};
use crate::exit::Failure;
use crate::output::{self, Output};
use crate::pages::PAGE_MAX;

#[derive(clap::Args)]
pub(super) struct Args {
    /// Only those whose name begins so
    #[arg(long, value_name = "TEXT", default_value = "")]
    prefix: String,
    /// At most this many; all if not given
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
}

#[derive(Deserialize)]
struct Page {
    locks: Vec<Box<RawValue>>,
    #[serde(default)]
    cursor: Option<String>,
}

#[derive(Deserialize)]
struct HeldLock {
    name: String,
    owner: String,
    fence: String,
    expires_at: String,
    depth: u64,
}

impl Args {
    pub(super) async fn run(self, global: &Global, client: &Client) -> Result<(), Failure> {
        let mut missing = self.limit.unwrap_or(usize::MAX);
        let mut locks: Vec<Box<RawValue>> = Vec::new();
        let mut cursor: Option<String> = None;
        // A page may be empty and not be the last.
        while missing > 0 {
            let (limit, prefix) = (missing.min(PAGE_MAX), encode(&self.prefix));
            let mut path = format!("/v1/locks?limit={limit}&prefix={prefix}");
            if let Some(cursor) = &cursor {
                path.push_str(&format!("&cursor={}", encode(cursor)));
            }
            let page: Page = client.call(Request::get(path)).await?.parse()?;
            missing = missing.saturating_sub(page.locks.len());
            locks.extend(page.locks);
            cursor = page.cursor;
            if cursor.is_none() {
                break;
            }
        }
        if global.output == Output::Json {
            let locks: Vec<&str> = locks.iter().map(|raw| raw.get()).collect();
            return output::print_line(&format!("{{\"locks\":[{}]}}", locks.join(",")));
        }
        let rows = locks.iter().map(|raw| row(raw)).collect::<Result<Vec<_>, _>>()?;
        let header = ["name", "owner", "fence", "expires_at", "depth"];
        output::print(output::table(&header, &rows).as_bytes())?;
        if cursor.is_some() {
            output::say("there are more locks: give a larger --limit, or a --prefix");
        }
        Ok(())
    }
}

fn row(raw: &RawValue) -> Result<Vec<String>, Failure> {
    let lock: HeldLock = serde_json::from_str(raw.get())
        .map_err(|error| Failure::new(format!("a lock of the list makes no sense: {error}")))?;
    Ok(vec![lock.name, lock.owner, lock.fence, lock.expires_at, lock.depth.to_string()])
}
