//! `dormouse serve` and `dormouse config`, as processes.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests too")]

mod backup;
mod beanstalk;
mod beanstalkd;
mod config;
mod due_time;
mod modes;
mod process;
mod push;
mod ready;
mod refuse;
mod resp;
mod start;
mod stop;
mod store;
mod test_clock;
mod tokens;
