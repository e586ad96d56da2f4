//! A client with a right to be served, alone and beside an attack; and another one of a server that
//! nobody attacks, which shows what the computer, busy as it is, does at the same time.

use std::future::Future;
use std::net::SocketAddr;
use std::time::Duration;

use crate::limited::Server;
use crate::normal;

const MEASURED: Duration = Duration::from_secs(4);
/// For a p99, where a client alone is so quick that a busy computer makes the difference.
const P99_MAX: Duration = Duration::from_millis(50);

/// The token of the client.
pub(crate) const VICTIM: &str = "victim";

/// Measures both clients alone, then beside an attack, which lasts until its result is dropped.
/// None of their calls may be refused.
pub(crate) async fn check<A>(name: &str, http: SocketAddr, attack: impl Future<Output = A>) -> A {
    let other = Server::with_tokens(&[(VICTIM, "*:*")], &[]);
    let measure = |http| normal::measure_as(Some(VICTIM), http, MEASURED);
    let ((alone, _), _) = tokio::join!(measure(http), measure(other.addr()));
    let attacker = attack.await;
    let ((p99, slowest), (control, _)) = tokio::join!(measure(http), measure(other.addr()));
    let seen =
        format!("p99 {p99:?}, alone {alone:?}, at another server {control:?}, slowest {slowest:?}");
    eprintln!("{name}: {seen}");
    assert!(p99 <= P99_MAX.max(3 * alone).max(3 * control), "{name}: {seen}");
    attacker
}
