//! A session ends that has very many leases.

use std::time::Instant;

use dormouse_core::command::{Command, Reply};
use serde_json::Value;

use super::leases::{lease_all, put_all};
use super::stage::{Stage, told};
use crate::Result;
use crate::client::unexpected;

pub(super) fn run(stage: &Stage, count: u64) -> Result<()> {
    let topics = put_all(stage, count)?;
    let session = match stage.client().call(Command::OpenSession)? {
        Reply::Session(session) => session,
        other => return Err(unexpected("open session", &other)),
    };
    lease_all(stage, &topics, count, Some(session))?;
    stage.measure("session", count, || {
        let called = Instant::now();
        match stage.client().call(Command::CloseSession(session))? {
            Reply::Done => {}
            other => return Err(unexpected("close session", &other)),
        }
        let answered = called.elapsed();
        // The other topic may have a lease at any time.
        let are_back = || Ok(stage.stats(None)?.counts.leased <= 1);
        stage.wait_until("all leases are given back", are_back)?;
        Ok(told([
            ("call_ms", Value::from(answered.as_secs_f64() * 1e3)),
            ("given_back_ms", Value::from(called.elapsed().as_secs_f64() * 1e3)),
        ]))
    })
}
