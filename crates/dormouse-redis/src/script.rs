//! The script of a partition, put together from its files. It comes in two forms: one that may
//! run when Redis is out of memory, and one with puts, which finds out for itself.

use std::sync::Arc;

use crate::link::Script;

/// In this order: a file uses what those before it define.
const FILES: &[&str] = &[
    include_str!("../lua/lib.lua"),
    include_str!("../lua/put.lua"),
    include_str!("../lua/reserve.lua"),
    include_str!("../lua/ack.lua"),
    include_str!("../lua/backoff.lua"),
    include_str!("../lua/nack.lua"),
    include_str!("../lua/extend.lua"),
    include_str!("../lua/main.lua"),
];

/// Runs at maxmemory as well: what it does takes jobs away, or needs little.
const RELIEF: &str = "#!lua flags=allow-oom\n";

/// The scripts of a server.
#[derive(Debug)]
pub(crate) struct Scripts {
    /// With puts among the operations.
    pub(crate) put: Arc<Script>,
    /// Without.
    pub(crate) relief: Arc<Script>,
    /// Of the register of topics.
    pub(crate) register: Arc<Script>,
}

impl Scripts {
    pub(crate) fn new() -> Scripts {
        let source = FILES.concat();
        Scripts {
            relief: Arc::new(Script::new(format!("{RELIEF}{source}"))),
            put: Arc::new(Script::new(source)),
            register: Arc::new(Script::new(include_str!("../lua/register.lua").to_owned())),
        }
    }
}
