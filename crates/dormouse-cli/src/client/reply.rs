//! Replies of the server.

use bytes::Bytes;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::exit::{Exit, Failure};
use crate::output::shorten;

/// An answer, whatever its status.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) body: Bytes,
}

/// RFC 9457, as far as it is used here.
#[derive(Deserialize)]
struct Problem {
    code: String,
    #[serde(default)]
    detail: String,
    #[serde(default)]
    id: Option<String>,
}

/// The code of a change that may or may not have been made; get the job to find out.
pub(crate) const UNCONFIRMED: &str = "unconfirmed";

/// Names the job that an unconfirmed put may have created.
pub(crate) fn named(id: &str) -> String {
    format!("; if it is there, it is job {id}")
}

#[derive(Deserialize)]
struct Results {
    #[expect(dead_code, reason = "only asked whether it is there")]
    results: serde::de::IgnoredAny,
}

impl Reply {
    /// The reply if it is a success or has a result for each item, else the server's error.
    pub(super) fn success(self, has_token: bool) -> Result<Reply, Failure> {
        if (200..300).contains(&self.status) {
            return Ok(self);
        }
        if serde_json::from_slice::<Results>(&self.body).is_ok() {
            return Ok(self);
        }
        let Ok(problem) = serde_json::from_slice::<Problem>(&self.body) else {
            return Err(self.foreign());
        };
        let mut detail = problem.detail;
        if problem.code == "unauthorized" && !has_token {
            detail.push_str("; give --token, --token-file or DORMOUSE_TOKEN");
        }
        if let Some(id) = problem.id.filter(|_| problem.code == UNCONFIRMED) {
            detail.push_str(&named(&id));
        }
        Err(Failure::of_server(&problem.code, &detail))
    }

    /// The answer as data.
    pub(crate) fn parse<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        serde_json::from_slice(&self.body).map_err(|error| {
            let text = format!("the server's answer makes no sense here: {error}");
            Failure::new(format!("{text}; is it a Dormouse server of this version?"))
        })
    }

    /// Something between us and the server answered, or there is no Dormouse at all.
    fn foreign(&self) -> Failure {
        let text = String::from_utf8_lossy(&self.body);
        let text = shorten(text.trim(), 200);
        let exit = if matches!(self.status, 502..=504) { Exit::Busy } else { Exit::Error };
        let text = format!("status {} and no word of Dormouse: {text}", self.status);
        Failure::with(exit, text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(status: u16, body: &str) -> Result<Reply, Failure> {
        Reply { status, body: Bytes::copy_from_slice(body.as_bytes()) }.success(false)
    }

    fn check(status: u16, body: &str, exit: u8, text: &str) {
        let failure = reply(status, body).unwrap_err();
        assert_eq!((failure.status(), failure.text()), (exit, text), "{status} {body}");
    }

    #[test]
    fn problems_say_code_and_detail() {
        check(404, r#"{"code":"not_found","detail":"no job 7"}"#, 3, "not_found: no job 7");
        let hint = "unauthorized: no token; give --token, --token-file or DORMOUSE_TOKEN";
        check(401, r#"{"code":"unauthorized","detail":"no token"}"#, 1, hint);
        let lost = "unconfirmed: look; if it is there, it is job 7";
        check(504, r#"{"code":"unconfirmed","detail":"look","id":"7"}"#, 5, lost);
        check(504, r#"{"code":"unconfirmed","detail":"look"}"#, 5, "unconfirmed: look");
        let taken = r#"{"code":"conflict","detail":"job 7 has the key","id":"7"}"#;
        check(409, taken, 4, "conflict: job 7 has the key");
    }

    #[test]
    fn answers_of_other_programs_are_recognised() {
        check(502, "<html>bad", 6, "status 502 and no word of Dormouse: <html>bad");
        check(404, "", 1, "status 404 and no word of Dormouse: ");
    }

    #[test]
    fn results_are_a_reply_whatever_the_status() {
        assert!(reply(409, r#"{"results":[{"code":"lease_lost"}]}"#).is_ok());
        assert!(reply(201, r#"{"id":"1"}"#).is_ok());
    }
}
