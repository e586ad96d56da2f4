//! The JSON shapes of requests and responses.

mod body;
mod bounded;
mod code;
mod item;
mod job;
mod lateness;
mod none;
mod portable;
mod pulse;
mod push;
mod put;
mod reserve;
mod schedule;
mod topic;

pub(crate) use body::{BodyOut, body_json_bytes};
pub(crate) use bounded::Bounded;
pub(crate) use code::CodeOut;
pub(crate) use item::{Failed, status_of_list};
pub(crate) use job::{HeldByOut, IdOut, JobOut, KeyOut, LeasedOut, Lossy, StateOut, TokenOut};
pub(crate) use lateness::LatenessOut;
pub(crate) use none::NoFields;
pub(crate) use pulse::PulseOut;
pub(crate) use push::{PushCode, PushForm, PushOut, PutPushOut};
pub(crate) use put::{
    ChainedForm, OnConflictForm, PutAnswer, PutForm, PutItem, PutOut, PutResults,
};
pub(crate) use reserve::{JobsOut, ReserveForm, ReserveTopicForm};
pub(crate) use schedule::{
    PutScheduleOut, ScheduleCode, ScheduleForm, ScheduleOut, ScheduleStateWord,
};
pub(crate) use topic::{SettingsForm, SettingsOut, StatsOut, TopicOut, TopicText};
