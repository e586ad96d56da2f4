//! A client with a right to be served, alone and beside an attack.

use std::future::Future;
use std::net::SocketAddr;
use std::time::Duration;

use crate::normal;

const MEASURED: Duration = Duration::from_secs(4);
/// For a p99, where a client alone is so quick that a busy computer makes the difference.
const P99_MAX: Duration = Duration::from_millis(50);

/// The token of the client.
pub(crate) const VICTIM: &str = "victim";

/// Measures the client alone, then beside an attack, which lasts until its result is dropped. None
/// of its calls may be refused.
pub(crate) async fn check<A>(name: &str, http: SocketAddr, attack: impl Future<Output = A>) -> A {
    let (alone, _) = normal::measure_as(Some(VICTIM), http, MEASURED).await;
    let attacker = attack.await;
    let (p99, slowest) = normal::measure_as(Some(VICTIM), http, MEASURED).await;
    eprintln!("{name}: p99 {p99:?}, alone {alone:?}, slowest {slowest:?}");
    assert!(p99 <= P99_MAX.max(3 * alone), "{name}: p99 {p99:?}, alone {alone:?}");
    attacker
}
