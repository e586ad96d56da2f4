//! Picks fields out of JSON without reading the rest of it. That is sound here only because every
//! body in the topics of the benchmark is its own and has none of these names in it.

/// Finds one text, skipping ahead by most of its length (Horspool).
pub(super) struct Finder {
    text: &'static [u8],
    skip: [u8; 256],
}

pub(super) static TOKEN: Finder = Finder::new(b"\"token\":\"");
pub(super) static DUE_AT: Finder = Finder::new(b"\"due_at\":\"");
pub(super) static LATE_MS: Finder = Finder::new(b"\"late_ms\":");
pub(super) static CREATED: Finder = Finder::new(b"\"code\":\"created\"");
pub(super) static DONE: Finder = Finder::new(b"\"code\":\"done\"");
static JOBS: Finder = Finder::new(b"\"jobs\":[");
static RESULTS: Finder = Finder::new(b"\"results\":[");

impl Finder {
    const fn new(text: &'static [u8]) -> Finder {
        let mut skip = [text.len() as u8; 256];
        let mut at = 0;
        while at + 1 < text.len() {
            skip[text[at] as usize] = (text.len() - 1 - at) as u8;
            at += 1;
        }
        Finder { text, skip }
    }

    /// The first place at or after `from`.
    fn find(&self, bytes: &[u8], from: usize) -> Option<usize> {
        let last = self.text.len() - 1;
        let mut at = from;
        while let Some(&byte) = bytes.get(at + last) {
            if byte == self.text[last] && bytes[at..at + last] == self.text[..last] {
                return Some(at);
            }
            at += usize::from(self.skip[usize::from(byte)]);
        }
        None
    }

    /// How often it is there.
    pub(super) fn count(&self, bytes: &[u8]) -> u64 {
        self.ends(bytes).count() as u64
    }

    /// The values after each occurrence, up to the end of the string or number.
    pub(super) fn values<'a>(&self, bytes: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
        self.ends(bytes).map(move |start| {
            let rest = &bytes[start..];
            let end = rest.iter().position(|byte| b"\",}".contains(byte));
            &rest[..end.unwrap_or(rest.len())]
        })
    }

    fn ends(&self, bytes: &[u8]) -> impl Iterator<Item = usize> {
        let mut from = 0;
        std::iter::from_fn(move || {
            from = self.find(bytes, from)? + self.text.len();
            Some(from)
        })
    }
}

/// The jobs of an answer, without the results of an ack, which have tokens too.
pub(super) fn jobs_part(bytes: &[u8]) -> &[u8] {
    let Some(start) = JOBS.find(bytes, 0) else { return &[] };
    let end = RESULTS.find(bytes, start).unwrap_or(bytes.len());
    &bytes[start..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(finder: &Finder, text: &str, expected: &[&str]) {
        let found: Vec<_> = finder.values(text.as_bytes()).map(String::from_utf8_lossy).collect();
        assert_eq!(found, expected, "{text}");
        assert_eq!(finder.count(text.as_bytes()), expected.len() as u64);
    }

    #[test]
    fn every_value_is_found() {
        check(&TOKEN, "", &[]);
        check(&TOKEN, "\"token\":", &[]);
        check(&TOKEN, r#"{"jobs":[{"token":"1.2"},{"id":"7","token":"3.44"}]}"#, &["1.2", "3.44"]);
        check(&TOKEN, r#"""token":"1""token":"2"#, &["1", "2"]);
        check(&LATE_MS, r#"{"late_ms":0,"x":1},{"late_ms":12}"#, &["0", "12"]);
        check(&DUE_AT, r#"{"due_at":"2027-01-01T08:00:00.000Z"}"#, &["2027-01-01T08:00:00.000Z"]);
    }

    #[test]
    fn a_text_is_found_wherever_it_is() {
        for before in 0..40 {
            let text = format!("{}\"code\":\"done\"{}", "\"".repeat(before), "x".repeat(before));
            assert_eq!(DONE.find(text.as_bytes(), 0), Some(before));
            assert_eq!(DONE.find(text.as_bytes(), before + 1), None);
        }
    }

    #[test]
    fn jobs_are_distinguished_from_results() {
        let jobs = |text: &str| TOKEN.count(jobs_part(text.as_bytes()));
        assert_eq!(jobs(r#"{"results":[{"token":"1"},{"token":"2"}],"jobs":[{"token":"3"}]}"#), 1);
        assert_eq!(jobs(r#"{"jobs":[{"token":"3"}],"results":[{"token":"1"},{"token":"2"}]}"#), 1);
        assert_eq!(jobs(r#"{"results":[{"token":"1"}]}"#), 0);
        assert_eq!(jobs(r#"{"jobs":[]}"#), 0);
    }
}
