//! The script of a partition, put together from its files. It comes in two forms: one that may
//! run when Redis is out of memory, and one with puts, which finds out for itself.

use std::sync::Arc;

use crate::link::Script;

/// In this order: a file uses what those before it define. Verbs are defined only in flights that
/// have them, see `wanted` in lib.lua.
const FILES: &[&str] = &[
    include_str!("../lua/lib.lua"),
    "if wanted.put_plain then\n",
    include_str!("../lua/put_plain.lua"),
    "end\nif wanted.put then\n",
    include_str!("../lua/put.lua"),
    "end\nif wanted.ack then\n",
    include_str!("../lua/ack.lua"),
    "end\nif wanted.nack or wanted.release then\n",
    include_str!("../lua/backoff.lua"),
    include_str!("../lua/nack.lua"),
    "end\nif wanted.extend then\n",
    include_str!("../lua/extend.lua"),
    "end\nif wanted.reserve or rare then\n",
    include_str!("../lua/reserve.lua"),
    "if rare then\n",
    include_str!("../lua/target.lua"),
    include_str!("../lua/lanes.lua"),
    include_str!("../lua/cancel.lua"),
    include_str!("../lua/reschedule.lua"),
    include_str!("../lua/kill.lua"),
    include_str!("../lua/revive.lua"),
    include_str!("../lua/kick.lua"),
    include_str!("../lua/reserve_id.lua"),
    include_str!("../lua/get.lua"),
    include_str!("../lua/peek.lua"),
    include_str!("../lua/list.lua"),
    include_str!("../lua/stats.lua"),
    include_str!("../lua/forecast.lua"),
    include_str!("../lua/purge.lua"),
    include_str!("../lua/pause.lua"),
    include_str!("../lua/lock.lua"),
    "end\nend\n",
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
