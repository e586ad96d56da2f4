//! Schedules as requests, and as they come.

use std::collections::BTreeMap;

use bytes::Bytes;
use dormouse_core::error::Error;
use dormouse_core::job::JobId;
use dormouse_core::op::{
    PutSchedule, PutScheduleReply, RemoveSchedule, RunSchedule, ScheduleChange, ScheduleConflict,
    ScheduleOutcome, ScheduleState, ScheduleView, Schedules, SchedulesPage,
};
use dormouse_core::schedule::{
    Catchup, Definition, LastJob, Overlap, Recurrence, RuleSpec, ScheduleName, Template, TickCounts,
};
use dormouse_core::topic::TopicName;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::ask::not_carried;
use super::client::Call;
use super::job::{body_of, headers_of, lacks, present};
use super::query::{Query, encode};
use super::time::At;
use super::topic::{BackoffIn, backoff_out};
use dormouse_client::codec::text::find_word;

/// The path of a schedule.
pub(super) fn path(topic: &TopicName, name: &ScheduleName) -> String {
    format!("/v1/topics/{}/schedules/{}", encode(topic.as_str()), encode(name.as_str()))
}

fn call(method: &'static str, path: String, body: &Value) -> Call {
    let body = body.to_string().into_bytes();
    Call { method, path, content_type: "application/json", body }
}

pub(super) fn put(put: &PutSchedule) -> Result<Call, Error> {
    let template = &put.template;
    let body = std::str::from_utf8(&template.body).map_err(|_| not_carried("a body of bytes"))?;
    let conflict = match put.on_conflict {
        ScheduleConflict::Replace => "replace",
        ScheduleConflict::Keep => "keep",
        ScheduleConflict::Reject => "reject",
    };
    let headers = template.headers.as_ref().map(|headers| {
        let pairs = headers.iter().map(|(name, value)| (name.clone(), json!(value)));
        Value::Object(pairs.collect())
    });
    let group = template.group.as_ref().map(|group| String::from_utf8_lossy(group));
    let fields: [(&str, Option<Value>); 21] = [
        ("cron", put.cron.as_ref().map(|text| json!(text))),
        ("zone", put.zone.as_ref().map(|text| json!(text))),
        ("every", put.every_ms.map(Value::from)),
        ("gap", put.gap_ms.map(Value::from)),
        ("text", Some(json!(body))),
        ("headers", headers),
        ("priority", template.priority.map(Value::from)),
        ("ttr", template.ttr_ms.map(Value::from)),
        ("attempts_max", template.attempts_max.map(Value::from)),
        ("backoff", template.backoff.as_deref().map(backoff_out)),
        ("expires_after", template.expires_after_ms.map(Value::from)),
        ("group", group.map(|group| json!(group))),
        ("overlap", put.overlap.map(|overlap| json!(overlap.as_str()))),
        ("catchup", put.catchup.map(|catchup| json!(catchup.as_str()))),
        ("late_max", put.late_max_ms.map(Value::from)),
        ("jitter", put.jitter_ms.map(Value::from)),
        ("start_at", put.start_at_ms.map(Value::from)),
        ("end_at", put.end_at_ms.map(Value::from)),
        ("ticks_max", put.ticks_max.map(Value::from)),
        ("on_conflict", Some(json!(conflict))),
        ("if_version", put.if_version.map(Value::from)),
    ];
    let given = fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    let body = Value::Object(given.collect::<Map<_, _>>());
    Ok(call("PUT", path(&put.topic, &put.name), &body))
}

pub(super) fn page(page: &Schedules) -> String {
    let mut query = Query::default();
    query.add("state", page.state.map(ScheduleState::as_str));
    query.add("cursor", page.cursor.as_ref());
    query.add("limit", Some(page.limit));
    query.after(format!("/v1/topics/{}/schedules", encode(page.topic.as_str())))
}

pub(super) fn remove(remove: &RemoveSchedule) -> Call {
    let mut query = Query::default();
    query.add("jobs", remove.cancel_job.then_some(true));
    let path = query.after(path(&remove.topic, &remove.name));
    Call { method: "DELETE", path, content_type: "application/json", body: Vec::new() }
}

pub(super) fn change(path: &str, change: ScheduleChange) -> Call {
    let (word, body) = match change {
        ScheduleChange::Pause { for_ms: None } => ("pause", json!({})),
        ScheduleChange::Pause { for_ms: Some(ms) } => ("pause", json!({ "for": ms })),
        ScheduleChange::Resume => ("resume", json!({})),
        ScheduleChange::Skip => ("skip", json!({})),
        ScheduleChange::Replan => ("replan", json!({})),
    };
    call("POST", format!("{path}/{word}"), &body)
}

pub(super) fn run(run: &RunSchedule) -> Call {
    let path = path(&run.topic, &run.name);
    match run.ticks {
        None => call("POST", format!("{path}/run"), &json!({})),
        Some((from, to)) => {
            call("POST", format!("{path}/backfill"), &json!({ "from": from, "to": to }))
        }
    }
}

/// The result of a put.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PutScheduleIn {
    #[serde(rename = "topic")]
    _topic: String,
    #[serde(rename = "name")]
    _name: String,
    code: String,
    version: u64,
    next_at: Option<At>,
    words: String,
    notes: Vec<String>,
}

impl PutScheduleIn {
    pub(super) fn reply(self) -> Result<PutScheduleReply, Error> {
        use ScheduleOutcome::{Created, Duplicate, Replaced, Unchanged};
        let outcomes = [Created, Replaced, Unchanged, Duplicate];
        let outcome = find_word(outcomes, ScheduleOutcome::as_str, &self.code);
        Ok(PutScheduleReply {
            outcome: outcome.ok_or_else(|| lacks("no outcome", &self.code))?,
            version: self.version,
            next_at: self.next_at.map(|at| at.0),
            words: self.words,
            notes: self.notes,
        })
    }
}

/// A page of schedules.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SchedulesIn {
    schedules: Vec<ScheduleIn>,
    cursor: Option<String>,
}

impl SchedulesIn {
    pub(super) fn page(self) -> Result<SchedulesPage, Error> {
        let schedules = self.schedules.into_iter().map(ScheduleIn::view);
        Ok(SchedulesPage { schedules: schedules.collect::<Result<_, _>>()?, cursor: self.cursor })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LastIn {
    id: String,
    tick: At,
    put_at: At,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CountsIn {
    given: u64,
    missed: u64,
    overlapped: u64,
    skipped: u64,
}

/// A schedule.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ScheduleIn {
    topic: String,
    name: String,
    version: u64,
    state: String,
    cron: Option<String>,
    zone: Option<String>,
    every_ms: Option<u64>,
    gap_ms: Option<u64>,
    overlap: String,
    catchup: String,
    late_max_ms: Option<u64>,
    jitter_ms: u64,
    start_at: Option<At>,
    end_at: Option<At>,
    ticks_max: Option<u64>,
    words: String,
    created_at: At,
    next: Vec<At>,
    last: Option<LastIn>,
    counts: CountsIn,
    paused_until: Option<At>,
    priority: Option<u32>,
    ttr_ms: Option<i64>,
    attempts_max: Option<u32>,
    backoff: Option<BackoffIn>,
    expires_after_ms: Option<i64>,
    group: Option<String>,
    headers: Option<BTreeMap<String, String>>,
    #[serde(default, deserialize_with = "present")]
    body: Option<Box<RawValue>>,
    text: Option<String>,
    base64: Option<String>,
}

impl ScheduleIn {
    pub(super) fn view(self) -> Result<ScheduleView, Error> {
        use ScheduleState::{Broken, Busy, Paused, Waiting};
        let broken = |what: &str| lacks(what, &self.name);
        let spec = match (self.cron, self.zone, self.every_ms, self.gap_ms) {
            (Some(text), Some(zone), None, None) => RuleSpec::Cron { text, zone },
            (None, None, Some(span_ms), None) => RuleSpec::Every { span_ms },
            (None, None, None, Some(span_ms)) => RuleSpec::Gap { span_ms },
            _ => return Err(broken("not one rule")),
        };
        let state = find_word([Waiting, Paused, Busy, Broken], ScheduleState::as_str, &self.state);
        let overlap = find_word(Overlap::ALL, Overlap::as_str, &self.overlap);
        let catchup = find_word(Catchup::ALL, Catchup::as_str, &self.catchup);
        let (body, body_kind) = body_of(&self.name, self.body, self.text, self.base64)?;
        let last = self.last.map(|last| {
            let id: Result<JobId, Error> = last.id.parse();
            id.map(|id| LastJob { id, tick_ms: last.tick.0, put_at: last.put_at.0 })
        });
        let CountsIn { given, missed, overlapped, skipped } = self.counts;
        let recurrence = Recurrence {
            spec,
            jitter_ms: self.jitter_ms,
            start_at: self.start_at.map(|at| at.0),
            end_at: self.end_at.map(|at| at.0),
        };
        let template = Template {
            body,
            body_kind,
            headers: headers_of(self.headers),
            priority: self.priority,
            ttr_ms: self.ttr_ms,
            attempts_max: self.attempts_max,
            backoff: self.backoff.map(BackoffIn::backoff),
            expires_after_ms: self.expires_after_ms,
            group: self.group.map(Bytes::from),
        };
        Ok(ScheduleView {
            topic: TopicName::new(&self.topic)?,
            name: ScheduleName::new(&self.name)?,
            definition: Definition {
                recurrence,
                template,
                overlap: overlap.ok_or_else(|| lacks("no overlap", &self.overlap))?,
                catchup: catchup.ok_or_else(|| lacks("no catchup", &self.catchup))?,
                late_max_ms: self.late_max_ms,
                ticks_max: self.ticks_max,
            },
            version: self.version,
            state: state.ok_or_else(|| lacks("no state", &self.state))?,
            created_at: self.created_at.0,
            anchor_at: 0,
            next: self.next.into_iter().map(|at| at.0).collect(),
            last: last.transpose()?,
            counts: TickCounts { given, missed, overlapped, skipped },
            paused_until: self.paused_until.map(|at| at.0),
            words: self.words,
        })
    }
}
