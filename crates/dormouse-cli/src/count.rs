//! Requests that change many jobs of a topic and answer with their number.

use serde::Deserialize;

use crate::Global;
use crate::client::Request;
use crate::exit::Failure;
use crate::output::{self, Output};

#[derive(Deserialize)]
struct Count {
    count: u64,
}

/// All jobs of a topic, or at most a number of them.
#[derive(clap::Args)]
#[group(required = true, multiple = false)]
pub(crate) struct Quantity {
    /// All of them
    #[arg(long)]
    pub(crate) all: bool,
    /// At most this many
    #[arg(long, value_name = "N")]
    pub(crate) max: Option<u64>,
}

/// Sends the request and prints the number of changed jobs.
pub(crate) async fn send(global: &Global, request: Request, done: &str) -> Result<(), Failure> {
    let reply = global.client()?.call(request).await?;
    if global.output == Output::Json {
        return output::print_json(&reply.body);
    }
    let Count { count } = reply.parse()?;
    output::print_line(&format!("{count} {done}"))
}
