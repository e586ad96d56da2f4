//! The result of one item: done in some way, or refused.

use std::str::FromStr;

use dormouse_core::error::{Code, Error};
use dormouse_core::job::{JobId, State};
use dormouse_core::op::{ChainReply, ChangeReply, EndReply, ExtendReply, PutOutcome, PutReply};
use serde::Deserialize;

use super::client::Response;
use super::time::{At, unexpected};

/// One item of an answer, whatever was asked for it: a success, or `detail` says why not.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Item {
    code: String,
    id: Option<String>,
    state: Option<String>,
    due_at: Option<At>,
    duplicate: Option<bool>,
    token: Option<String>,
    expires_at: Option<At>,
    was: Option<String>,
    /// The puts of a chain.
    put: Option<Vec<Item>>,
    detail: Option<String>,
    retryable: Option<bool>,
    // Of a problem only.
    #[serde(rename = "type")]
    kind: Option<String>,
    title: Option<String>,
    status: Option<u16>,
}

/// Items in the order in which they were sent.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Results {
    results: Vec<Item>,
}

/// The problem that a response is.
pub(super) fn problem(response: &Response) -> Error {
    let item: Result<Item, _> = serde_json::from_slice(&response.body);
    let broken = |what: &str| unexpected(what, &response.body);
    let Ok(item) = item else { return broken("not a problem") };
    let of_code = format!("urn:dormouse:{}", item.code);
    let is_whole = item.kind == Some(of_code)
        && item.title.is_some()
        && item.status == Some(response.status)
        && item.detail.is_some();
    if is_whole { item.error() } else { broken("a problem without its fields") }
}

/// All items of a response to a list of `count`, or to a single one.
pub(super) fn items(count: usize, response: &Response) -> Result<Vec<Item>, Error> {
    let broken = |error: serde_json::Error| unexpected(&error.to_string(), &response.body);
    if !response.is_good() && count > 1 {
        return Err(problem(response));
    }
    let single: Result<Item, _> = serde_json::from_slice(&response.body);
    let items = match single {
        Ok(item) => vec![item],
        Err(_) => {
            let results: Result<Results, _> = serde_json::from_slice(&response.body);
            results.map_err(broken)?.results
        }
    };
    if items.len() == count {
        Ok(items)
    } else {
        Err(unexpected("another number of results", &response.body))
    }
}

/// The items of a response that tells how many they are.
pub(super) fn ran(response: &Response) -> Result<Vec<Item>, Error> {
    if !response.is_good() {
        return Err(problem(response));
    }
    if let Ok(item) = serde_json::from_slice(&response.body) {
        return Ok(vec![item]);
    }
    let results: Result<Results, _> = serde_json::from_slice(&response.body);
    results
        .map(|results| results.results)
        .map_err(|error| unexpected(&error.to_string(), &response.body))
}

fn code(word: &str) -> Option<Code> {
    Code::ALL.into_iter().find(|code| code.as_str() == word)
}

/// A state by its word.
pub(super) fn state(word: &str) -> Option<State> {
    let all = [State::Delayed, State::Ready, State::Leased, State::Dead, State::Done];
    all.into_iter().find(|state| state.as_str() == word)
}

impl Item {
    fn error(self) -> Error {
        let Item { code: word, id, state: its_state, detail, retryable, .. } = self;
        let Some(code) = code(&word) else {
            return Error::unavailable(format!("only HTTP knows {word}: {detail:?}"));
        };
        if retryable != Some(code.is_retryable()) {
            return Error::unavailable(format!("{word} is said to be retryable: {retryable:?}"));
        }
        let id = id.and_then(|id| JobId::from_str(&id).ok());
        let job = id.zip(its_state.and_then(|word| state(&word)));
        Error { job, ..Error::new(code, detail.unwrap_or_default()) }
    }

    /// The item itself, or why it was not done.
    fn good(self) -> Result<Item, Error> {
        if self.detail.is_some() { Err(self.error()) } else { Ok(self) }
    }

    fn id(&self) -> Result<JobId, Error> {
        let id = self.id.as_deref().and_then(|id| JobId::from_str(id).ok());
        id.ok_or_else(|| self.lacks("id"))
    }

    fn due_at(&self) -> Result<u64, Error> {
        self.due_at.map(|At(ms)| ms).ok_or_else(|| self.lacks("due_at"))
    }

    fn lacks(&self, field: &str) -> Error {
        Error::unavailable(format!("the server broke its contract: no {field} in {self:?}"))
    }

    pub(super) fn put(self) -> Result<PutReply, Error> {
        let item = self.good()?;
        let outcome = match item.code.as_str() {
            "created" => PutOutcome::Created,
            "duplicate" => PutOutcome::Duplicate,
            "replaced" => PutOutcome::Replaced,
            _ => return Err(item.lacks("outcome")),
        };
        if item.duplicate.unwrap_or_default() != (outcome == PutOutcome::Duplicate) {
            return Err(item.lacks("duplicate"));
        }
        let state = item.state.as_deref().and_then(state);
        Ok(PutReply { id: item.id()?, outcome, state, due_at: item.due_at()? })
    }

    pub(super) fn ended(self) -> Result<EndReply, Error> {
        let item = self.good()?;
        match item.code.as_str() {
            "done" => Ok(EndReply::Done),
            "retry" => Ok(EndReply::Retry { due_at: item.due_at()? }),
            "dead" => Ok(EndReply::Dead),
            "gone" => Ok(EndReply::Gone),
            _ => Err(item.lacks("code")),
        }
    }

    pub(super) fn chained(mut self) -> Result<ChainReply, Error> {
        let Some(puts) = self.put.take() else { return Err(self.good()?.lacks("put")) };
        let puts = puts.into_iter().map(Item::put).collect::<Result<_, _>>()?;
        Ok(ChainReply { end: self.ended()?, puts })
    }

    pub(super) fn extended(self) -> Result<ExtendReply, Error> {
        let item = self.good()?;
        let expires_at = item.expires_at.map(|At(ms)| ms).filter(|_| item.token.is_some());
        expires_at
            .map(|expires_at| ExtendReply { expires_at })
            .ok_or_else(|| item.lacks("expires_at"))
    }

    /// A cancelled job has no due time any more.
    pub(super) fn changed(self) -> Result<ChangeReply, Error> {
        let item = self.good()?;
        let due_at = match item.code.as_str() {
            "cancelled" => 0,
            "rescheduled" | "revived" => item.due_at()?,
            _ => return Err(item.lacks("code")),
        };
        let was = item.was.as_deref().and_then(state).ok_or_else(|| item.lacks("was"))?;
        Ok(ChangeReply { id: item.id()?, was, due_at })
    }
}
