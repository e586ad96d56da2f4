//! Puts as bytes that are made once: only numbers and times are written over before each use.

use super::body::{self, BODY};
use super::{Codec, resp};
use crate::redis::zset_scripts::{BUCKET, POOL};
use dormouse_check::generate::rng::Rng;

/// Eight digits at any time: Redis keeps short numbers in less memory than long ones.
const ZSET_ID_FIRST: u64 = 10_000_000;
const ZSET_ID_DIGITS: usize = 8;
/// Digits of a time in ms, until the year 2286.
const TIME_DIGITS: usize = 13;

/// A number of puts, sent together.
pub(in crate::peers) struct Puts {
    bytes: Vec<u8>,
    jobs: Vec<Places>,
    delay_ms: u64,
}

/// Where in the bytes a job has what is its own.
struct Places {
    body: usize,
    zset: Option<ZsetOffsets>,
}

struct ZsetOffsets {
    id: usize,
    due: usize,
}

impl Puts {
    /// Puts of jobs that are due after a delay, or now; beanstalkd knows only whole seconds.
    pub(in crate::peers) fn new(codec: &Codec, count: usize, delay_ms: u64) -> Puts {
        let mut puts = Puts { bytes: Vec::new(), jobs: Vec::new(), delay_ms };
        let mut rng = Rng::new(count as u64);
        for _ in 0..count {
            let body = body::body(&mut rng);
            match codec {
                Codec::ZsetScripts(scripts) => puts.add_zset(&scripts.put, &body),
                Codec::Verbs => puts.add_verb(&body),
                Codec::Beanstalk => puts.add_beanstalk(&body),
            }
        }
        puts
    }

    pub(in crate::peers) fn count(&self) -> usize {
        self.jobs.len()
    }

    /// Adds the puts of the jobs from this number on, at this time.
    pub(in crate::peers) fn push(&self, first: u64, now_ms: u64, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&self.bytes);
        let bytes = &mut out[start..];
        for (number, job) in (first..).zip(&self.jobs) {
            body::set_number(&mut bytes[job.body..], number);
            if let Some(zset) = &job.zset {
                let id = &mut bytes[zset.id..zset.id + ZSET_ID_DIGITS];
                body::set_digits(id, ZSET_ID_FIRST + number);
                let due = &mut bytes[zset.due..zset.due + TIME_DIGITS];
                body::set_digits(due, now_ms + self.delay_ms);
            }
        }
    }

    /// Adds one whose body is this number, whatever its id.
    pub(in crate::peers) fn push_one(&self, id: u64, body: u64, now_ms: u64, out: &mut Vec<u8>) {
        let start = out.len();
        self.push(id, now_ms, out);
        if let Some(job) = self.jobs.first() {
            body::set_number(&mut out[start + job.body..], body);
        }
    }

    fn add_zset(&mut self, script: &str, body: &[u8]) {
        let (id, due) = ([b'0'; ZSET_ID_DIGITS], [b'0'; TIME_DIGITS]);
        let words: [&[u8]; 8] = [
            b"EVALSHA",
            script.as_bytes(),
            b"2",
            BUCKET.as_bytes(),
            POOL.as_bytes(),
            &id,
            body,
            &due,
        ];
        resp::push(&mut self.bytes, &words);
        let end = self.bytes.len();
        // From the end: each word has a line of its length before it, and ends with a line.
        let due = end - 2 - TIME_DIGITS;
        let body = due - "$13\r\n".len() - 2 - BODY;
        let id = body - "$100\r\n".len() - 2 - ZSET_ID_DIGITS;
        self.jobs.push(Places { body, zset: Some(ZsetOffsets { id, due }) });
    }

    fn add_verb(&mut self, body: &[u8]) {
        let start = self.bytes.len();
        let delay = self.delay_ms.to_string();
        let words: [&[u8]; 5] = [b"PUT", super::codec::TOPIC, body, b"DELAY", delay.as_bytes()];
        resp::push(&mut self.bytes, if self.delay_ms == 0 { &words[..3] } else { &words });
        let mut before = Vec::new();
        resp::push(&mut before, &[words[0], words[1], &b""[..]]);
        let body = start + before.len() - "$0\r\n\r\n".len() + "$100\r\n".len();
        self.jobs.push(Places { body, zset: None });
    }

    fn add_beanstalk(&mut self, body: &[u8]) {
        let seconds = self.delay_ms.div_ceil(1_000);
        self.bytes.extend_from_slice(format!("put 1024 {seconds} 60 {BODY}\r\n").as_bytes());
        self.jobs.push(Places { body: self.bytes.len(), zset: None });
        self.bytes.extend_from_slice(body);
        self.bytes.extend_from_slice(b"\r\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::redis::zset_scripts::Scripts;

    fn shown(codec: &Codec, delay_ms: u64) -> String {
        let mut out = b"before".to_vec();
        Puts::new(codec, 2, delay_ms).push(41, 1_700_000_000_000, &mut out);
        let text = String::from_utf8(out).expect("letters");
        // Bodies without their noise.
        let long = |word: &str| word.len() == BODY && word.starts_with("00000000000000");
        let short = |word| if long(word) { &word[..16] } else { word };
        text.split("\r\n").map(short).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn each_dialect_puts_the_same_jobs() {
        let scripts = Scripts { put: "p".into(), take: "t".into(), delete: "d".into() };
        let zset = shown(&Codec::ZsetScripts(scripts), 5_000);
        let job = |number: u64| {
            format!(
                "*8 $7 EVALSHA $1 p $1 2 $12 delay:bucket $10 delay:jobs $8 100000{number} $100 \
                 00000000000000{number} $13 1700000005000 "
            )
        };
        assert_eq!(zset, format!("before{}{}", job(41), job(42)));
        let verbs = shown(&Codec::Verbs, 5_000);
        let job = |number: u64| {
            format!("*5 $3 PUT $5 peers $100 00000000000000{number} $5 DELAY $4 5000 ")
        };
        assert_eq!(verbs, format!("before{}{}", job(41), job(42)));
        let beanstalk = shown(&Codec::Beanstalk, 5_000);
        let job = |number: u64| format!("put 1024 5 60 100 00000000000000{number} ");
        assert_eq!(beanstalk, format!("before{}{}", job(41), job(42)));
        assert!(shown(&Codec::Verbs, 0).starts_with("before*3 $3 PUT $5 peers $100 "));
    }
}
