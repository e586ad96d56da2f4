//! The tests that prove Dormouse, and what they are made of.
//!
//! | folder | contents |
//! |---|---|
//! | `generate/` | random numbers, commands and histories; bodies that name their put |
//! | `oracle/` | models that predict every reply, and comparison with them |
//! | `checker/` | judges a recorded history where no model can predict it |
//! | `harness/disk` | drives a store on the simulated disk, one action at a time |
//! | `harness/process` | real processes and their load, killed with SIGKILL |
//! | `harness/redis` | real Redis servers and clusters, load on them, lockstep with the oracle |
//! | `faults/` | simulated disk, proxies that lose and delay, wrong clocks, cut networks |
//! | `browser/` | Chromium over WebDriver, for the web console |
//! | `client/` | raw clients of HTTP and RESP, and each protocol as a `Backend` |
//! | `conformance/` | the suite that every backend passes; a file per verb |
//!
//! `README.md` says where a new test goes.

pub mod browser;
pub mod checker;
pub mod client;
pub mod conformance;
pub mod faults;
pub mod generate;
pub mod harness;
pub mod oracle;
