//! The other side: waits for jobs that nobody cancelled, and acks them.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use super::super::caller::Caller;
use super::super::wire::{TOPIC, body, resp};
use super::account::Account;
use crate::Result;

/// Fields of a job in a reply to RESERVE: topic, id, token, attempt, due_at, body, ttr_ms.
const FIELDS: usize = 7;
const MAX: &[u8] = b"64";
/// A consumer that got nothing for so long looks whether it is still needed.
const WAIT: &[u8] = b"1s";

struct Arrival {
    token: Vec<u8>,
    due_ms: u64,
    number: u64,
}

/// Reserves and acks until every expected job has come.
pub(super) fn consume(account: &Account, mut caller: Caller, delay: Duration) -> Result<()> {
    let (mut out, mut jobs) = (Vec::new(), Vec::<Arrival>::new());
    loop {
        let (is_last, acks) = (account.is_done(), jobs.len());
        out.clear();
        if acks > 0 {
            let mut words: Vec<&[u8]> = vec![b"ACK"];
            words.extend(jobs.iter().map(|job| job.token.as_slice()));
            resp::push(&mut out, &words);
        }
        if !is_last {
            resp::push(&mut out, &[b"RESERVE", TOPIC, b"MAX", MAX, b"WAIT", WAIT]);
        }
        caller.send(&out)?;
        if acks > 0 {
            caller.receive(|codec, input| codec.ack_reply(input, acks))?;
            account.acks.fetch_add(acks as u64, Relaxed);
        }
        if is_last {
            return Ok(());
        }
        caller.receive(|_, input| arrivals(input, &mut jobs))?;
        jobs.iter().try_for_each(|job| account.take(job.number, job.due_ms, delay))?;
    }
}

/// Takes the reply to a reserve off the input.
fn arrivals(input: &[u8], jobs: &mut Vec<Arrival>) -> Result<Option<usize>> {
    let mut leaves: Vec<Vec<u8>> = Vec::new();
    let Some(len) = resp::walk(input, |leaf| leaves.push(leaf.to_vec()))? else {
        return Ok(None);
    };
    jobs.clear();
    for fields in leaves.chunks(FIELDS) {
        let [_topic, _id, token, _attempt, due_ms, body, _ttr_ms] = fields else {
            return Err(format!("a job has {} fields, not {FIELDS}", fields.len()).into());
        };
        let due_ms = std::str::from_utf8(due_ms)?.parse()?;
        jobs.push(Arrival { token: token.clone(), due_ms, number: body::number_in(body)? });
    }
    Ok(Some(len))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_has_jobs_once_it_is_whole() {
        let body = format!("{:016}{}", 77, "n".repeat(body::BODY - 16));
        let fields = "$1\r\nt\r\n$1\r\n5\r\n$3\r\n5.9\r\n:1\r\n:123\r\n";
        let job = format!("*7\r\n{fields}$100\r\n{body}\r\n:60000\r\n");
        let reply = format!("*2\r\n{job}{job}");
        let mut jobs = Vec::new();
        assert_eq!(arrivals(&reply.as_bytes()[..80], &mut jobs).expect("a part"), None);
        let whole = arrivals(reply.as_bytes(), &mut jobs).expect("jobs");
        assert_eq!((whole, jobs.len()), (Some(reply.len()), 2));
        assert_eq!((jobs[1].number, jobs[1].due_ms, &jobs[1].token[..]), (77, 123, &b"5.9"[..]));
        assert_eq!(arrivals(b"*0\r\n", &mut jobs).expect("none"), Some(4));
        assert!(jobs.is_empty());
    }
}
