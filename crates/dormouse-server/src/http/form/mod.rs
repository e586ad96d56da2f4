//! The JSON shapes of requests and answers.

mod backoff;
mod body;
mod item;
mod job;
mod none;
mod put;
mod reserve;
mod topic;

pub(crate) use backoff::{BackoffForm, parse_backoff};
pub(crate) use body::BodyOut;
pub(crate) use item::{Failed, Results, status_of_list};
pub(crate) use job::{IdOut, JobOut, LeasedOut, StateOut, TokenOut};
pub(crate) use none::NoFields;
pub(crate) use put::{OnConflictForm, PutForm, PutOut};
pub(crate) use reserve::{JobsOut, ReserveForm, ReserveTopicForm};
pub(crate) use topic::{SettingsForm, SettingsOut, TopicOut};
