//! The scripts that people write by hand: a hash of jobs and a sorted set of due times. No ack that
//! is checked, no lease, no retry, no state; one job per call.
//!
//! Where there is a choice it is theirs: ids are short decimal numbers, a job is its bare body,
//! scripts are called by their hash, arguments are few.

use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use redis::aio::MultiplexedConnection;

use crate::Result;

pub(crate) const BUCKET: &str = "delay:bucket";
pub(crate) const POOL: &str = "delay:jobs";

const PUT: &str = "
redis.call('hset', KEYS[2], ARGV[1], ARGV[2])
return redis.call('zadd', KEYS[1], ARGV[3], ARGV[1])";

const TAKE: &str = "
local ids = redis.call('zrangebyscore', KEYS[1], 0, ARGV[1], 'limit', 0, 1)
if #ids > 0 and redis.call('zrem', KEYS[1], ids[1]) > 0 then
    return {ids[1], redis.call('hget', KEYS[2], ids[1])}
end
return {}";

const DELETE: &str = "return redis.call('hdel', KEYS[1], ARGV[1])";

/// The scripts' names in a Redis.
#[derive(Clone)]
pub(crate) struct Scripts {
    pub(crate) put: String,
    pub(crate) take: String,
    pub(crate) delete: String,
}

impl Scripts {
    pub(crate) fn load(url: &str) -> Result<Scripts> {
        let mut connection = redis::Client::open(url)?.get_connection()?;
        let mut load =
            |source: &str| redis::cmd("SCRIPT").arg("LOAD").arg(source).query(&mut connection);
        Ok(Scripts { put: load(PUT)?, take: load(TAKE)?, delete: load(DELETE)? })
    }

    pub(super) fn put(&self, id: u64, body: &[u8], due_ms: u64) -> redis::Cmd {
        let mut cmd = redis::cmd("EVALSHA");
        cmd.arg(&self.put).arg(2).arg(BUCKET).arg(POOL).arg(id).arg(body).arg(due_ms);
        cmd
    }

    fn take(&self) -> redis::Cmd {
        let mut cmd = redis::cmd("EVALSHA");
        cmd.arg(&self.take).arg(2).arg(BUCKET).arg(POOL).arg(wall_ms());
        cmd
    }

    fn delete(&self, id: &[u8]) -> redis::Cmd {
        let mut cmd = redis::cmd("EVALSHA");
        cmd.arg(&self.delete).arg(1).arg(POOL).arg(id);
        cmd
    }
}

/// One caller; clones share the connection.
#[derive(Clone)]
pub(super) struct ZsetCaller {
    scripts: Scripts,
    connection: MultiplexedConnection,
}

impl ZsetCaller {
    pub(super) async fn connect(url: &str, scripts: &Scripts) -> Result<ZsetCaller> {
        let connection = redis::Client::open(url)?.get_multiplexed_async_connection().await?;
        Ok(ZsetCaller { scripts: scripts.clone(), connection })
    }

    /// A job that is due now.
    pub(super) async fn put(&mut self, id: u64, body: &Bytes) -> Result<()> {
        let cmd = self.scripts.put(id, body, wall_ms());
        let added: u64 = cmd.query_async(&mut self.connection).await?;
        if added == 1 { Ok(()) } else { Err(format!("job {id} was there already").into()) }
    }

    /// Takes a job and deletes it.
    pub(super) async fn consume(&mut self) -> Result<()> {
        let job: Vec<Bytes> = self.scripts.take().query_async(&mut self.connection).await?;
        let [id, _body] = job.as_slice() else { return Err("a job that is due is missing".into()) };
        let deleted: u64 = self.scripts.delete(id).query_async(&mut self.connection).await?;
        if deleted == 1 { Ok(()) } else { Err("a job was deleted by another".into()) }
    }
}

/// The client's clock: the scripts take it for granted.
pub(crate) fn wall_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
