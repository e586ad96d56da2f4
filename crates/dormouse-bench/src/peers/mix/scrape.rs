//! The server's own figures: its histogram of lateness from `/metrics`, its totals from `STATS`.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use super::super::caller::Caller;
use super::super::wire::resp;
use crate::Result;

const TIMEOUT: Duration = Duration::from_secs(30);
const BUCKET: &str = "dormouse_lateness_seconds_bucket{";

/// How many jobs were at most so late, in seconds, ascending; all topics together.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct LatenessHistogram(Vec<(f64, u64)>);

impl LatenessHistogram {
    pub(super) fn scrape(address: SocketAddr) -> Result<LatenessHistogram> {
        let mut stream = TcpStream::connect_timeout(&address, TIMEOUT)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        let ask = format!("GET /metrics HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
        stream.write_all(ask.as_bytes())?;
        let mut page = String::new();
        stream.read_to_string(&mut page)?;
        if !page.starts_with("HTTP/1.1 200") {
            let line = page.lines().next().unwrap_or_default();
            return Err(format!("GET /metrics is answered with {line}").into());
        }
        LatenessHistogram::read(&page)
    }

    fn read(page: &str) -> Result<LatenessHistogram> {
        let mut buckets: Vec<(f64, u64)> = Vec::new();
        for line in page.lines().filter(|line| line.starts_with(BUCKET)) {
            let bad = || format!("/metrics has a line that is not understood: {line}");
            let (_, rest) = line.split_once("le=\"").ok_or_else(bad)?;
            let (bound, rest) = rest.split_once('"').ok_or_else(bad)?;
            let (_, count) = rest.split_once("} ").ok_or_else(bad)?;
            let bound = if bound == "+Inf" { f64::INFINITY } else { bound.parse()? };
            let count: u64 = count.split(' ').next().unwrap_or_default().parse()?;
            match buckets.iter_mut().find(|(known, _)| *known == bound) {
                Some((_, sum)) => *sum += count,
                None => buckets.push((bound, count)),
            }
        }
        buckets.sort_by(|one, other| one.0.total_cmp(&other.0));
        Ok(LatenessHistogram(buckets))
    }

    /// The counts that were added since an earlier one.
    pub(super) fn since(&self, earlier: &LatenessHistogram) -> LatenessHistogram {
        let before = |bound: f64| earlier.0.iter().find(|(known, _)| *known == bound);
        let added = |&(bound, count): &(f64, u64)| {
            (bound, count.saturating_sub(before(bound).map_or(0, |(_, count)| *count)))
        };
        LatenessHistogram(self.0.iter().map(added).collect())
    }

    /// The upper end in ms of the bucket that this share of 1000 jobs does not exceed; none
    /// without a job, infinite beyond all bounds.
    pub(super) fn per_mille_ms(&self, per_mille: u64) -> Option<f64> {
        let all = self.0.last().map(|(_, count)| *count).filter(|&all| all > 0)?;
        let rank = (all * per_mille).div_ceil(1_000);
        self.0.iter().find(|(_, count)| *count >= rank).map(|(bound, _)| bound * 1e3)
    }
}

/// The totals of all topics.
#[derive(Clone, Copy, Debug)]
pub(super) struct Totals {
    pub(super) puts: u64,
    pub(super) cancels: u64,
    pub(super) acks: u64,
    /// Jobs that are still there, in any state.
    pub(super) left: u64,
}

impl Totals {
    pub(super) fn ask(caller: &mut Caller) -> Result<Totals> {
        let (mut out, mut leaves) = (Vec::new(), Vec::new());
        resp::push(&mut out, &[b"STATS"]);
        caller.send(&out)?;
        caller.receive(|_, input| {
            leaves.clear();
            resp::walk(input, |leaf| leaves.push(String::from_utf8_lossy(leaf).into_owned()))
        })?;
        let number = |name: &str| -> Result<u64> {
            let at = leaves.iter().position(|leaf| leaf == name);
            let value = at.and_then(|at| leaves.get(at + 1)?.parse().ok());
            value.ok_or_else(|| format!("STATS has no number {name}").into())
        };
        Ok(Totals {
            puts: number("puts")?,
            cancels: number("cancels")?,
            acks: number("acks")?,
            left: number("waiting")? + number("leased")? + number("dead")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_of_what_was_added() {
        let page = |one: u64, two: u64, all: u64| {
            let line = |le: &str, count| format!("{BUCKET}topic=\"t\",le=\"{le}\"}} {count}\n");
            let text = format!("x 1\n{}{}", line("0.001", one), line("0.002", two));
            LatenessHistogram::read(&(text + &line("+Inf", all))).expect("a histogram")
        };
        let added = page(1_000, 1_009, 1_010).since(&page(10, 10, 10));
        assert_eq!(added.per_mille_ms(990), Some(1.0));
        assert_eq!(added.per_mille_ms(999), Some(2.0));
        assert_eq!(added.per_mille_ms(1_000), Some(f64::INFINITY));
        assert_eq!(added.since(&added).per_mille_ms(990), None);
    }
}
