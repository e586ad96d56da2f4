//! The reply to cancel, reschedule, run, revive and kill of one job.

use serde::Deserialize;

use crate::Global;
use crate::client::Request;
use crate::exit::Failure;
use crate::output::{self, Output};

#[derive(Deserialize)]
struct Change {
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    token: Option<String>,
    code: String,
    #[serde(default)]
    was: Option<String>,
    #[serde(default)]
    due_at: Option<String>,
}

/// Sends a change of one job and prints the reply.
pub(crate) async fn send(global: &Global, request: Request) -> Result<(), Failure> {
    let reply = global.client()?.call(request).await?;
    if global.output == Output::Json {
        return output::print_json(&reply.body);
    }
    let change: Change = reply.parse()?;
    let mut header = Vec::new();
    let mut row = Vec::new();
    let mut column = |name, value: Option<String>| {
        if let Some(value) = value {
            header.push(name);
            row.push(value);
        }
    };
    column("id", change.id);
    column("token", change.token);
    column("code", Some(change.code));
    column("was", change.was);
    column("due_at", change.due_at);
    output::print(output::table(&header, &[row]).as_bytes())
}
