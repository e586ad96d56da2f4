//! `dormouse lock`: named locks, around a command or one step at a time.

mod hold;
mod ls;

use std::time::Duration;

use clap::Subcommand;
use serde::Deserialize;
use serde_json::json;
use tokio::time::Instant;

use crate::Global;
use crate::client::{Client, Reply, Request, encode, fields};
use crate::exit::{Exit, Failure};
use crate::output::{self, Output};
use crate::signals::Signals;
use crate::units::Span;

/// How long one request waits at most; a longer wait is made of several.
const WAIT_STEP: Duration = Duration::from_secs(50);

/// Run a command while holding a lock, or acquire and release one
///
/// `lock NAME -- COMMAND` acquires, renews at a third of the ttl while the command runs, releases,
/// and ends with the command's exit code; 4 if the lock is held by another. If it is lost while the
/// command runs, the command is ended and the exit code is 4 too.
///
/// Each grant has a larger fence than all before it: pass it to the protected resource, so that it
/// can refuse a late holder.
#[derive(clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "\
The command finds in its environment:
  DORMOUSE_LOCK_NAME DORMOUSE_LOCK_FENCE DORMOUSE_LOCK_OWNER DORMOUSE_URL
  DORMOUSE_TOKEN, DORMOUSE_TOKEN_FILE  the server's token, only with --pass-token

Examples:
  dormouse lock nightly -- ./report.sh
  dormouse lock deploy --wait 10m --ttl 1m -- make deploy
  dormouse lock acquire deploy --owner $USER --ttl 1h
  dormouse lock release deploy --owner $USER
  dormouse lock ls --prefix deploy.
  dormouse lock break deploy"
)]
pub(crate) struct Args {
    #[command(flatten)]
    run: Run,
    #[command(subcommand)]
    verb: Option<Verb>,
}

#[derive(clap::Args)]
struct Run {
    /// The lock
    #[arg(required = true)]
    name: Option<String>,
    /// The owner; the same one can acquire it again. A unique name if not given
    #[arg(long, value_name = "OWNER")]
    owner: Option<String>,
    #[command(flatten)]
    times: Times,
    /// Let the command have the server's token, for further dormouse commands
    #[arg(long)]
    pass_token: bool,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<String>,
}

#[derive(clap::Args)]
struct Times {
    /// The lock expires this long after the last renewal
    #[arg(long, value_name = "SPAN", allow_hyphen_values = true, default_value = "30s")]
    ttl: Span,
    /// Wait this long while another owner holds it
    #[arg(long, value_name = "SPAN", allow_hyphen_values = true, default_value = "0s")]
    wait: Span,
}

#[derive(Subcommand)]
enum Verb {
    /// Run a command while holding a lock, whatever its name
    Run(Run),
    /// Acquire a lock and print its fence
    Acquire {
        /// The lock
        name: String,
        /// The owner
        #[arg(long, value_name = "OWNER")]
        owner: String,
        #[command(flatten)]
        times: Times,
    },
    /// Hold a lock for another ttl
    Renew {
        /// The lock
        name: String,
        /// The owner
        #[arg(long, value_name = "OWNER")]
        owner: String,
        /// The lock expires after this span from now
        #[arg(long, value_name = "SPAN", allow_hyphen_values = true, default_value = "30s")]
        ttl: Span,
    },
    /// List the locks that are held, those first that expire first
    Ls(ls::Args),
    /// Free a lock, whoever holds it; the first who waits gets it
    Break {
        /// The lock
        name: String,
        /// Only the grant with this fence, as `lock ls` shows it: another may hold it by now
        #[arg(long, value_name = "FENCE")]
        fence: Option<u64>,
    },
    /// Release a lock
    Release {
        /// The lock
        name: String,
        /// The owner
        #[arg(long, value_name = "OWNER")]
        owner: String,
    },
}

#[derive(Deserialize)]
struct Grant {
    fence: String,
    #[serde(default)]
    expires_at: String,
    #[serde(default)]
    depth: u64,
}

#[derive(Deserialize)]
struct Released {
    code: String,
}

impl Args {
    pub(crate) async fn run(self, global: &Global) -> Result<(), Failure> {
        let client = global.client()?;
        match self.verb {
            None => hold::run(global, client, self.run).await,
            Some(Verb::Run(run)) => hold::run(global, client, run).await,
            Some(Verb::Acquire { name, owner, times }) => {
                let lock = Lock { client, name, owner };
                let mut signals = Signals::listen()?;
                print_grant(global, &lock.acquire(&times, &mut signals).await?)
            }
            Some(Verb::Renew { name, owner, ttl }) => {
                print_grant(global, &Lock { client, name, owner }.renew(ttl).await?)
            }
            Some(Verb::Ls(args)) => args.run(global, &client).await,
            Some(Verb::Break { name, fence }) => {
                let query = fence.map(|fence| format!("?fence={fence}")).unwrap_or_default();
                let request = Request::delete(format!("/v1/locks/{}{query}", encode(&name)));
                let reply = client.call(request).await?;
                match global.output {
                    Output::Json => output::print_json(&reply.body),
                    Output::Table => output::print_line("broken"),
                }
            }
            Some(Verb::Release { name, owner }) => {
                let reply = Lock { client, name, owner }.release().await?;
                match global.output {
                    Output::Json => output::print_json(&reply.body),
                    Output::Table => output::print_line(&reply.parse::<Released>()?.code),
                }
            }
        }
    }
}

fn print_grant(global: &Global, reply: &Reply) -> Result<(), Failure> {
    if global.output == Output::Json {
        return output::print_json(&reply.body);
    }
    let grant: Grant = reply.parse()?;
    let row = vec![grant.fence, grant.expires_at, grant.depth.to_string()];
    output::print(output::table(&["fence", "expires_at", "depth"], &[row]).as_bytes())
}

/// A lock and its owner-to-be.
struct Lock {
    client: Client,
    name: String,
    owner: String,
}

impl Lock {
    /// Acquires it, if need be in several waits. A signal while it waits ends it.
    async fn acquire(&self, times: &Times, signals: &mut Signals) -> Result<Reply, Failure> {
        let end = Instant::now() + times.wait.duration();
        loop {
            let wait = end.saturating_duration_since(Instant::now()).min(WAIT_STEP);
            let request = self.request("acquire", Some(times.ttl), Some(wait)).waiting(wait);
            let stop = async {
                signals.next().await;
            };
            match self.client.call_unless(request, stop).await {
                Ok(Some(reply)) => return Ok(reply),
                Ok(None) => {
                    // It may have been granted meanwhile; then nothing else would release it.
                    let _ = self.release().await;
                    return Err(Failure::with(Exit::Conflict, "ended while waiting for the lock"));
                }
                Err(failure) if failure.code() == Some("conflict") && Instant::now() < end => {
                    // The server had us wait; one that did not must not be asked in a loop.
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                Err(failure) => return Err(failure),
            }
        }
    }

    async fn renew(&self, ttl: Span) -> Result<Reply, Failure> {
        self.client.call(self.request("renew", Some(ttl), None)).await
    }

    async fn release(&self) -> Result<Reply, Failure> {
        self.client.call(self.request("release", None, None)).await
    }

    fn request(&self, verb: &str, ttl: Option<Span>, wait: Option<Duration>) -> Request {
        let fields = fields([
            ("owner", Some(json!(self.owner))),
            ("ttl", ttl.map(Into::into)),
            ("wait", wait.map(|wait| json!(wait.as_millis() as u64))),
        ]);
        Request::post(format!("/v1/locks/{}/{verb}", encode(&self.name))).json(&fields)
    }
}
