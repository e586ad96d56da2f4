//! Requests that are built once; the parts that differ are overwritten in place.

use std::ops::Range;
use std::sync::Arc;

use crate::client::Route;

pub(super) const JSON: &str = "application/json";
pub(super) const NDJSON: &str = "application/x-ndjson";

/// Room for a number, blank where it is shorter: blanks are allowed before a number in JSON as
/// well as before a header's value.
const NUMBER_LEN: usize = 10;
/// A body is `{"n":"..."}` around its noise.
const BODY_START: &str = "{\"n\":\"";
const BODY_END: &str = "\"}";
/// The shortest body there is.
pub(super) const BODY_MIN: usize = BODY_START.len() + BODY_END.len();

const NOISE_LEN: usize = 64 * 1024;

/// A request with a body of changing length.
#[derive(Clone, Debug)]
pub(super) struct Request {
    bytes: Vec<u8>,
    length_at: usize,
    body_at: usize,
}

impl Request {
    pub(super) fn post(route: &Route, path: &str, content_type: &str) -> Request {
        let mut head = route.head("POST", path);
        head.push_str(&format!("content-type: {content_type}\r\ncontent-length: "));
        let length_at = head.len();
        head.push_str(&format!("{:NUMBER_LEN$}\r\n\r\n", 0));
        Request { body_at: head.len(), bytes: head.into_bytes(), length_at }
    }

    /// The same with a body that stays.
    pub(super) fn with_body(mut self, body: &str) -> Request {
        self.clear();
        self.push(body.as_bytes());
        self.seal();
        self
    }

    pub(super) fn clear(&mut self) {
        self.bytes.truncate(self.body_at);
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// To be called when the body is complete.
    pub(super) fn seal(&mut self) {
        let body_len = self.bytes.len() - self.body_at;
        write_number(&mut self.bytes[self.length_at..self.body_at], body_len as u64);
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    fn body_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.body_at..]
    }
}

/// Right-aligned into the first `NUMBER_LEN` bytes.
fn write_number(place: &mut [u8], mut number: u64) {
    let place = &mut place[..NUMBER_LEN];
    place.fill(b' ');
    for byte in place.iter_mut().rev() {
        *byte = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
}

/// SplitMix64, as the engine's benchmark has it.
#[derive(Clone, Debug)]
pub(super) struct Rng(u64);

impl Rng {
    pub(super) fn new(seed: u64) -> Rng {
        Rng(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut value = self.0;
        value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        value ^ (value >> 31)
    }

    /// A number in the range, which is not empty.
    pub(super) fn within(&mut self, range: &Range<u64>) -> u64 {
        let span = u128::from(range.end - range.start);
        range.start + ((u128::from(self.next()) * span) >> 64) as u64
    }
}

/// Content of the bodies: letters and digits that do not compress well. Made once, and
/// each body is a piece of it.
#[derive(Clone, Debug)]
pub(super) struct Noise(Arc<[u8]>);

impl Noise {
    pub(super) fn new(seed: u64) -> Noise {
        const LETTERS: &[u8; 64] =
            b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_";
        let mut rng = Rng::new(seed);
        let letters = (0..NOISE_LEN).map(|_| LETTERS[rng.within(&(0..64)) as usize]);
        Noise(letters.collect())
    }

    fn write(&self, place: &mut [u8], rng: &mut Rng) {
        for piece in place.chunks_mut(NOISE_LEN / 2) {
            let start = rng.within(&(0..(NOISE_LEN - piece.len()) as u64)) as usize;
            piece.copy_from_slice(&self.0[start..start + piece.len()]);
        }
    }
}

/// A request that puts jobs, each with a body and a delay of its own.
#[derive(Clone, Debug)]
pub(super) struct PutRequest {
    request: Request,
    /// One job, ending with a line feed.
    line: Vec<u8>,
    delay_at: Option<usize>,
    noise_at: Range<usize>,
    count: usize,
    delays_ms: Range<u64>,
    noise: Noise,
    rng: Rng,
}

impl PutRequest {
    /// The jobs are ready at once if the range of delays is empty.
    pub(super) fn new(
        request: Request,
        body_len: usize,
        delays_ms: Range<u64>,
        (noise, rng): (Noise, Rng),
    ) -> PutRequest {
        let mut line = String::from("{");
        let mut delay_at = None;
        if !delays_ms.is_empty() {
            line.push_str("\"delay\":");
            delay_at = Some(line.len());
            line.push_str(&format!("{:NUMBER_LEN$},", 0));
        }
        line.push_str(&format!("\"body\":{BODY_START}"));
        let noise_at = line.len()..line.len() + body_len.saturating_sub(BODY_MIN);
        line.push_str(&"x".repeat(noise_at.len()));
        line.push_str(&format!("{BODY_END}}}\n"));
        let line = line.into_bytes();
        PutRequest { request, line, delay_at, noise_at, count: 0, delays_ms, noise, rng }
    }

    /// Fills in `count` new jobs.
    pub(super) fn renew(&mut self, count: usize) -> &[u8] {
        if self.count != count {
            self.request.clear();
            (0..count).for_each(|_| self.request.push(&self.line));
            self.request.seal();
            self.count = count;
        }
        for line in self.request.body_mut().chunks_exact_mut(self.line.len()) {
            if let Some(delay_at) = self.delay_at {
                write_number(&mut line[delay_at..], self.rng.within(&self.delays_ms));
            }
            self.noise.write(&mut line[self.noise_at.clone()], &mut self.rng);
        }
        self.request.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Global;
    use crate::output::Output;

    fn route() -> Route {
        let url = "http://localhost:7788".to_owned();
        let global =
            Global { url, token: None, token_file: None, ca_file: None, output: Output::Json };
        global.client().unwrap().route().unwrap()
    }

    /// Head and body, after looking at the length.
    fn parts(request: &[u8]) -> (String, String) {
        let text = String::from_utf8(request.to_vec()).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let length = head.rsplit_once("content-length: ").unwrap().1.trim_start();
        assert_eq!(length, body.len().to_string());
        (head.to_owned(), body.to_owned())
    }

    #[test]
    fn numbers_are_right_aligned() {
        let check = |number, expected: &str| {
            let mut place = *b"9999999999x";
            write_number(&mut place, number);
            assert_eq!(String::from_utf8_lossy(&place), format!("{expected:>10}x"));
        };
        check(0, "0");
        check(70, "70");
        check(2_592_000_000, "2592000000");
    }

    #[test]
    fn a_request_knows_its_length() {
        let mut request = Request::post(&route(), "/v1/ack", JSON).with_body("{\"token\":\"1\"}");
        let (head, body) = parts(request.bytes());
        assert!(head.starts_with("POST /v1/ack HTTP/1.1\r\nhost: localhost:7788\r\n"), "{head}");
        assert_eq!(body, "{\"token\":\"1\"}");
        request.clear();
        request.push(b"[]");
        request.seal();
        assert_eq!(parts(request.bytes()).1, "[]");
    }

    fn lines(jobs: &mut PutRequest, count: usize) -> Vec<serde_json::Value> {
        let (_, body) = parts(jobs.renew(count));
        body.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn put(body_len: usize, delays_ms: Range<u64>) -> PutRequest {
        let request = Request::post(&route(), "/v1/topics/a/jobs", NDJSON);
        PutRequest::new(request, body_len, delays_ms, (Noise::new(1), Rng::new(2)))
    }

    #[test]
    fn jobs_have_bodies_of_the_length_asked_for() {
        for body_len in [BODY_MIN, 9, 100, NOISE_LEN * 2] {
            let mut jobs = put(body_len, 0..0);
            for count in [1, 3, 3, 2] {
                let lines = lines(&mut jobs, count);
                assert_eq!(lines.len(), count);
                for line in lines {
                    assert_eq!(line["body"].to_string().len(), body_len);
                    assert!(line.get("delay").is_none());
                }
            }
        }
    }

    #[test]
    fn jobs_differ_in_body_and_delay() {
        let mut jobs = put(100, 60_000..2_592_000_000);
        let mut lines = lines(&mut jobs, 500);
        let in_range = |line: &serde_json::Value| {
            let delay = line["delay"].as_u64().unwrap();
            (60_000..2_592_000_000).contains(&delay)
        };
        assert!(lines.iter().all(in_range));
        lines.sort_by_key(|line| line["delay"].as_u64());
        lines.dedup_by_key(|line| line["body"].to_string());
        assert!(lines.len() > 490, "{}", lines.len());
        let middle = lines[lines.len() / 2]["delay"].as_u64().unwrap();
        assert!((1_000_000_000..1_600_000_000).contains(&middle), "{middle}");
    }
}
