//! The JSON shapes of requests and responses.

mod body;
mod bounded;
mod code;
mod item;
mod job;
mod none;
mod portable;
mod put;
mod reserve;
mod schedule;
mod topic;

pub(crate) use body::{BodyOut, body_json_bytes};
pub(crate) use bounded::Bounded;
pub(crate) use code::CodeOut;
pub(crate) use item::{Failed, status_of_list};
pub(crate) use job::{IdOut, JobOut, LeasedOut, StateOut, TokenOut};
pub(crate) use none::NoFields;
pub(crate) use put::{
    ChainedForm, OnConflictForm, PutAnswer, PutForm, PutItem, PutOut, PutResults,
};
pub(crate) use reserve::{JobsOut, ReserveForm, ReserveTopicForm};
pub(crate) use schedule::{
    PutScheduleOut, ScheduleCode, ScheduleForm, ScheduleOut, ScheduleStateWord,
};
pub(crate) use topic::{SettingsForm, SettingsOut, StatsOut, TopicOut, TopicText};
