//! Dead jobs by cause: the newest ones, grouped by their error texts without what differs from one
//! failure to the next.

use std::collections::HashMap;

use axum::extract::State;
use dormouse_core::error::{Code, Error};
use dormouse_core::job::State as JobState;
use dormouse_core::op::{JobView, ListOrder, ListRange, Stats, check};
use serde::Serialize;
use utoipa::{IntoParams, ToSchema};

use crate::access::Verb;
use crate::http::App;
use crate::http::api::Problems;
use crate::http::caller::Caller;
use crate::http::form::IdOut;
use crate::http::params::Params;
use crate::http::path::{InTopic, TopicPath};
use crate::http::response::{HttpResult, ok};
use crate::limits::{ERROR_GROUPS_MAX, SCAN_JOBS_MAX};
use crate::scan::{JobFilter, Scan};
use crate::units::{At, InstantMs};

/// Jobs that are looked at unless a number is given.
const LOOK_AT_DEFAULT: u64 = 5_000;
/// Characters of a text that stands for a group.
const TEXT_CHARS_MAX: usize = 200;
/// Jobs that a group names.
const IDS_MAX: usize = 5;

/// Which dead jobs.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "describes the query")]
pub(crate) struct GroupsQuery {
    /// Only jobs that died at this instant or later.
    #[param(inline)]
    from: Option<InstantMs>,
    /// The largest number of jobs to look at.
    #[param(minimum = 1, maximum = 10000, default = 5000)]
    look_at: Option<u32>,
    /// The cursor of the previous response.
    cursor: Option<String>,
}

/// Dead jobs with the same cause.
#[derive(Serialize, ToSchema)]
#[schema(as = ErrorGroup)]
pub(crate) struct GroupOut {
    /// The error text, without numbers and quoted text; empty if the jobs have none.
    error: String,
    count: u64,
    /// The first death among those looked at.
    first_at: At,
    /// The last death among those looked at.
    last_at: At,
    /// The newest of them.
    ids: Vec<IdOut>,
}

/// Dead jobs by cause.
#[derive(Serialize, ToSchema)]
#[schema(as = ErrorGroups)]
pub(crate) struct GroupsOut {
    /// The largest first.
    groups: Vec<GroupOut>,
    /// Jobs of groups that are too small to be listed.
    other: u64,
    looked_at: u64,
    /// The number of dead jobs of the topic.
    of: u64,
    /// To go on with older ones; absent at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    cursor: Option<String>,
}

/// Group the newest dead jobs of a topic by cause.
#[utoipa::path(
    get,
    path = "/v1/topics/{topic}/dead/groups",
    tag = "topics",
    operation_id = "dead_groups",
    params(TopicPath, GroupsQuery),
    responses((status = 200, description = "The groups", body = GroupsOut), Problems)
)]
pub(super) async fn dead_groups(
    State(app): State<App>,
    caller: Caller,
    InTopic(topic): InTopic,
    mut params: Params,
) -> HttpResult {
    caller.check(Verb::List, topic.as_str())?;
    let from = params.instant("from")?;
    let look_at = params.parsed("look_at", "a number")?.unwrap_or(LOOK_AT_DEFAULT);
    let cursor = params.text("cursor");
    params.finish()?;
    if look_at == 0 || look_at > SCAN_JOBS_MAX {
        let text = format!("look_at is {look_at}; give 1 to {SCAN_JOBS_MAX} and go on by cursor");
        return Err(Error::invalid(text).into());
    }
    let from_ms = from.map(|ms| check::instant("from", ms)).transpose()?;
    let range = ListRange { from_ms, to_ms: None, order: ListOrder::Newest };
    let of = match app.client.call(Stats { topic: Some(topic.clone()) }).await {
        Err(error) if error.code == Code::NotFound => 0,
        stats => stats?.counts.dead,
    };
    let filter = JobFilter::default();
    let mut scan = Scan::new(topic, JobState::Dead, cursor, filter).within(range);
    let mut groups = Groups::default();
    while groups.looked_at < look_at && scan.goes_on() {
        caller.judge(&app)?;
        let _turn = app.pages.acquire().await;
        let wanted = usize::try_from(look_at - groups.looked_at).unwrap_or(usize::MAX);
        scan.page(&app.client, wanted).await?.iter().for_each(|view| groups.add(view));
    }
    let (_, cursor) = scan.into_end();
    ok(&groups.into_out(of, cursor))
}

/// Groups under construction. There are no more of them than jobs that were looked at.
#[derive(Default)]
struct Groups {
    groups: HashMap<String, GroupOut>,
    looked_at: u64,
}

impl Groups {
    fn add(&mut self, view: &JobView) {
        self.looked_at += 1;
        let error = view.job.progress.error.as_deref().unwrap_or_default();
        let error = normalised(&String::from_utf8_lossy(error));
        let at = view.due_at;
        let group = self.groups.entry(error.clone()).or_insert_with(|| GroupOut {
            error,
            count: 0,
            first_at: At(at),
            last_at: At(at),
            ids: Vec::new(),
        });
        group.count += 1;
        group.first_at = At(group.first_at.0.min(at));
        group.last_at = At(group.last_at.0.max(at));
        if group.ids.len() < IDS_MAX {
            group.ids.push(IdOut(view.job.id));
        }
    }

    fn into_out(self, of: u64, cursor: Option<String>) -> GroupsOut {
        let mut groups: Vec<GroupOut> = self.groups.into_values().collect();
        groups.sort_by(|one, other| {
            other.count.cmp(&one.count).then_with(|| one.error.cmp(&other.error))
        });
        let small = groups.split_off(groups.len().min(ERROR_GROUPS_MAX));
        let other = small.iter().map(|group| group.count).sum();
        GroupsOut { groups, other, looked_at: self.looked_at, of, cursor }
    }
}

/// An error text without what differs from one failure to the next: words with a digit that are
/// numbers, hexadecimal numbers or uuids become `#`, text in quotes `"..."`.
fn normalised(error: &str) -> String {
    let mut text = String::new();
    let mut rest = error;
    while let Some(first) = rest.chars().next() {
        if text.chars().count() >= TEXT_CHARS_MAX {
            break;
        }
        let quoted = matches!(first, '"' | '\'' | '`').then(|| rest[1..].find(first)).flatten();
        // An apostrophe within a word is no quote.
        let in_word = text.chars().next_back().is_some_and(char::is_alphanumeric);
        if let (Some(end), false) = (quoted, in_word) {
            text.push_str("\"...\"");
            rest = &rest[end + 2..];
            continue;
        }
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '-';
        let end = rest.find(|c: char| !is_word(c)).unwrap_or(rest.len());
        if end == 0 {
            text.push(first);
            rest = &rest[first.len_utf8()..];
            continue;
        }
        push_word(&mut text, &rest[..end]);
        rest = &rest[end..];
    }
    text.chars().take(TEXT_CHARS_MAX).collect()
}

/// A word of letters, digits and dashes.
fn push_word(text: &mut String, word: &str) {
    let plain = word.trim_start_matches("0x").replace('-', "");
    let has_digit = plain.bytes().any(|byte| byte.is_ascii_digit());
    let is_hex = plain.bytes().all(|byte| byte.is_ascii_hexdigit());
    if has_digit && is_hex {
        text.push('#');
        return;
    }
    // Digits at the end of a word, as in `12ms` or `worker7`.
    let mut in_number = false;
    for c in word.chars() {
        if c.is_ascii_digit() {
            if !in_number {
                text.push('#');
            }
            in_number = true;
        } else {
            text.push(c);
            in_number = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_is_cut() {
        let check = |error: &str, expected: &str| assert_eq!(normalised(error), expected);
        check("", "");
        check("timeout after 1200 ms", "timeout after # ms");
        check("timeout after 1200ms, attempt 3/16", "timeout after #ms, attempt #/#");
        check("no such user \"a b\" (0x1f3a)", "no such user \"...\" (#)");
        check("job 6f9619ff-8b86-d011-b42d-00c04fc964ff gone", "job # gone");
        check("key 'k-1' and `x`", "key \"...\" and \"...\"");
        check("can't reach it, don't try", "can't reach it, don't try");
        check("an open \"quote", "an open \"quote");
        check("worker7: deadbeef1: cafe", "worker#: #: cafe");
        check("10.0.0.12:5432 refused", "#.#.#.#:# refused");
        check("größe 12 \u{202e}x", "größe # \u{202e}x");
        let long = "x ".repeat(1_000);
        assert_eq!(normalised(&long).chars().count(), TEXT_CHARS_MAX);
        assert_eq!(normalised(&"\u{10ffff}".repeat(300)).chars().count(), TEXT_CHARS_MAX);
    }
}
