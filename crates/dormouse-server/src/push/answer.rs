//! What the answer of a receiver does to a job.

use hyper::header::{HeaderValue, LOCATION, RETRY_AFTER};
use hyper::{HeaderMap, StatusCode};

use super::printable::printable;
use super::retry_after;
use super::settings::PushSettings;
use crate::limits::{PUSH_HOLD_MS_MAX, PUSH_REPLY_KEPT_BYTES_MAX};
use crate::metrics::PushOutcome;

/// The header by which a receiver speaks about more than one attempt.
const DELIVERY: &str = "webhook-delivery";
/// Bytes of a redirect's place in an error text.
const PLACE_BYTES_MAX: usize = 200;
/// Statuses that speak of the job: the receiver itself works.
const ABOUT_THE_JOB: [u16; 5] = [400, 409, 413, 415, 422];

/// How the lease of a job ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Delivered.
    Ack,
    /// Try again, after the backoff and not before what the receiver asked for.
    Nack { error: String, retry_after_ms: Option<u64> },
    /// Never again.
    Kill { error: String },
    /// It was not tried: the attempt is not spent.
    Release { delay_ms: u64 },
}

/// All that follows from one delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Judgement {
    pub(super) verdict: Verdict,
    pub(super) outcome: PushOutcome,
    /// Whether the receiver works, as its breaker sees it.
    pub(super) is_healthy: bool,
    /// Nothing more is sent to its origin for so long.
    pub(super) hold_ms: Option<u64>,
    /// The receiver wants no more pushes of this topic.
    pub(super) disables: bool,
}

impl Judgement {
    /// An attempt that got no answer.
    pub(super) fn failed(outcome: PushOutcome, error: String) -> Judgement {
        let verdict = Verdict::Nack { error, retry_after_ms: None };
        Judgement { verdict, outcome, is_healthy: false, hold_ms: None, disables: false }
    }
}

/// Judges an answer; `reply` is the beginning of its body.
pub(super) fn judge(
    status: StatusCode,
    headers: &HeaderMap,
    reply: &[u8],
    settings: &PushSettings,
    wall_ms: u64,
) -> Judgement {
    let outcome = outcome_of(status);
    let delivery = headers.get(DELIVERY).map(HeaderValue::as_bytes);
    let wants_no_more = delivery == Some(b"disable") || status == StatusCode::GONE;
    let is_success = status.is_success();
    let is_fatal = delivery == Some(b"abort-message") || settings.fatal.contains(&status.as_u16());
    let error = || error_text(status, headers, reply, settings.keep_reply);
    let retry_after_ms = headers
        .get(RETRY_AFTER)
        .filter(|_| may_recover(status))
        .and_then(|value| retry_after::parse(value.as_bytes(), wall_ms));
    let verdict = if wants_no_more || (is_fatal && !is_success) {
        Verdict::Kill { error: error() }
    } else if is_success {
        Verdict::Ack
    } else {
        Verdict::Nack { error: error(), retry_after_ms }
    };
    let throttles = [StatusCode::TOO_MANY_REQUESTS, StatusCode::SERVICE_UNAVAILABLE];
    let hold_ms =
        retry_after_ms.filter(|_| throttles.contains(&status)).map(|ms| ms.min(PUSH_HOLD_MS_MAX));
    let is_healthy = is_success || is_fatal || ABOUT_THE_JOB.contains(&status.as_u16());
    Judgement { verdict, outcome, is_healthy, hold_ms, disables: wants_no_more }
}

fn outcome_of(status: StatusCode) -> PushOutcome {
    match status.as_u16() {
        200..=299 => PushOutcome::Success,
        300..=399 => PushOutcome::Redirect,
        429 => PushOutcome::Throttled,
        400..=499 => PushOutcome::ClientError,
        _ => PushOutcome::ServerError,
    }
}

/// Whether the receiver may say when to come again.
fn may_recover(status: StatusCode) -> bool {
    [408, 425, 429].contains(&status.as_u16()) || status.is_server_error()
}

fn error_text(status: StatusCode, headers: &HeaderMap, reply: &[u8], keep_reply: bool) -> String {
    let mut text = status.to_string();
    if status.is_redirection() {
        let place = headers.get(LOCATION).map_or(&b""[..], HeaderValue::as_bytes);
        let place = printable(place, PLACE_BYTES_MAX);
        text.push_str(&format!(" to `{place}`: redirects are not followed; set the URL itself"));
    }
    if keep_reply && !reply.is_empty() {
        let room = PUSH_REPLY_KEPT_BYTES_MAX.saturating_sub(text.len() + 9);
        text.push_str("; reply: ");
        text.push_str(&printable(reply, room));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::push::url::PushUrl;

    fn judged(status: u16, headers: &[(&'static str, &'static str)]) -> Judgement {
        let mut settings = PushSettings::new(PushUrl::parse("https://example.com/").unwrap());
        settings.fatal = vec![422];
        let pairs = headers.iter();
        let map = pairs.map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
        let status = StatusCode::from_u16(status).unwrap();
        judge(status, &map.collect(), b"why\x1b[31m\r\n", &settings, 0)
    }

    fn word(judgement: &Judgement) -> &'static str {
        match &judgement.verdict {
            Verdict::Ack => "ack",
            Verdict::Nack { .. } => "nack",
            Verdict::Kill { .. } => "kill",
            Verdict::Release { .. } => "release",
        }
    }

    #[test]
    fn each_status_has_its_verdict() {
        for status in 100..=999 {
            let judgement = judged(status, &[]);
            let expected = match status {
                200..=299 => ("ack", true, false),
                410 => ("kill", false, true),
                422 => ("kill", true, false),
                400 | 409 | 413 | 415 => ("nack", true, false),
                _ => ("nack", false, false),
            };
            let found = (word(&judgement), judgement.is_healthy, judgement.disables);
            assert_eq!(found, expected, "{status}");
            let outcome = match status {
                200..=299 => "2xx",
                300..=399 => "3xx",
                429 => "429",
                400..=499 => "4xx",
                _ => "5xx",
            };
            assert_eq!(judgement.outcome.as_str(), outcome, "{status}");
        }
    }

    #[test]
    fn a_receiver_may_end_pushes_or_one_job() {
        let check = |status, value, expected: (&str, bool)| {
            let judgement = judged(status, &[("webhook-delivery", value)]);
            assert_eq!((word(&judgement), judgement.disables), expected, "{status} {value}");
        };
        check(500, "disable", ("kill", true));
        check(200, "disable", ("kill", true));
        check(500, "abort-message", ("kill", false));
        check(200, "abort-message", ("ack", false));
        check(500, "Disable", ("nack", false));
        check(500, "", ("nack", false));
    }

    #[test]
    fn retry_after_delays_the_job_and_holds_the_origin() {
        let check = |status, value, expected: (Option<u64>, Option<u64>)| {
            let judgement = judged(status, &[("retry-after", value)]);
            let retry_after_ms = match judgement.verdict {
                Verdict::Nack { retry_after_ms, .. } => retry_after_ms,
                _ => None,
            };
            assert_eq!((retry_after_ms, judgement.hold_ms), expected, "{status} {value}");
        };
        check(429, "7", (Some(7_000), Some(7_000)));
        check(503, "7200", (Some(7_200_000), Some(3_600_000)));
        check(500, "7", (Some(7_000), None));
        check(408, "7", (Some(7_000), None));
        check(404, "7", (None, None));
        check(302, "7", (None, None));
        check(200, "7", (None, None));
        check(429, "soon", (None, None));
    }

    #[test]
    fn the_error_text_has_status_place_and_reply() {
        let text = |status, headers: &[(&'static str, &'static str)]| match judged(status, headers)
            .verdict
        {
            Verdict::Nack { error, .. } | Verdict::Kill { error } => error,
            Verdict::Ack | Verdict::Release { .. } => String::new(),
        };
        assert_eq!(text(500, &[]), "500 Internal Server Error; reply: why [31m");
        let place = [("location", "http://169.254.169.254/")];
        assert!(text(302, &place).starts_with("302 Found to `http://169.254.169.254/`: redirects"));
        let long = vec![b'x'; 10_000];
        let settings = PushSettings::new(PushUrl::parse("https://example.com/").unwrap());
        let judged = judge(StatusCode::BAD_GATEWAY, &HeaderMap::new(), &long, &settings, 0);
        let Verdict::Nack { error, .. } = judged.verdict else { panic!() };
        assert!(error.len() <= PUSH_REPLY_KEPT_BYTES_MAX, "{}", error.len());
        let settings = PushSettings { keep_reply: false, ..settings };
        let judged = judge(StatusCode::BAD_GATEWAY, &HeaderMap::new(), &long, &settings, 0);
        let Verdict::Nack { error, .. } = judged.verdict else { panic!() };
        assert_eq!(error, "502 Bad Gateway");
    }
}
