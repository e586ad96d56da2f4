//! How many jobs a request to a topic changed.

use serde::Deserialize;

use crate::Global;
use crate::client::Request;
use crate::exit::Failure;
use crate::output::{self, Output};

#[derive(Deserialize)]
struct Count {
    count: u64,
}

/// All jobs of a topic, or so many.
#[derive(clap::Args)]
#[group(required = true, multiple = false)]
pub(crate) struct Quantity {
    /// All there are
    #[arg(long)]
    pub(crate) all: bool,
    /// At most so many
    #[arg(long, value_name = "N")]
    pub(crate) max: Option<u64>,
}

/// Asks for it and prints how many there were.
pub(crate) async fn send(global: &Global, request: Request, done: &str) -> Result<(), Failure> {
    let reply = global.client()?.call(request).await?;
    if global.output == Output::Json {
        return output::print_json(&reply.body);
    }
    let Count { count } = reply.parse()?;
    output::print_line(&format!("{count} {done}"))
}
