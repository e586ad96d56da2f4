//! Many done jobs are kept: what a look-up by key takes among them, from the disk; then a part of
//! them goes in one instant.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use dormouse_core::command::{Command, Reply};
use dormouse_core::job::State;
use dormouse_core::op::{Put, SetTopic, Target};
use dormouse_core::topic::{Settings, TopicName};
use serde_json::Value;

use dormouse_check::generate::rng::Rng;

use super::stage::{Stage, told};
use crate::client::unexpected;
use crate::latency::Latencies;
use crate::plan::{Shuffled, key};
use crate::{Result, cache, rss};

/// How long done jobs are kept, and how much later those are done that stay.
const KEEP: Duration = Duration::from_secs(3_600);
const LATER: Duration = Duration::from_secs(60);
const LOOKS: u64 = 2_000;
/// Looks and plain reads take turns: the disk is not the same all the time.
const ROUNDS: u64 = 20;
const BLOCK_BYTES: u64 = 4_096;

/// Of so many, `at_once` go in one instant.
pub(super) fn run(stage: &Stage, count: u64, at_once: u64) -> Result<()> {
    let at_once = at_once.min(count);
    let topic = TopicName::new("done")?;
    let keep_done_ms = Some(u64::try_from(KEEP.as_millis())?);
    let settings = Settings { keep_done_ms, ..Settings::default() };
    stage.client().call(Command::from(SetTopic { topic: topic.clone(), settings }))?;
    let mut next = 0;
    for portion in [at_once, count - at_once] {
        let from = next;
        stage.put_each("put", portion, |number, body| {
            Ok(Put { key: Some(key(from + number)), ..Put::new(topic.clone(), body) })
        })?;
        stage.take_all(&[vec![topic.clone()]], portion)?;
        next += portion;
        stage.clock.advance(LATER);
    }
    look_up(stage, &topic, count)?;
    stage.measure("done_go", at_once, || {
        let began = Instant::now();
        stage.clock.advance(KEEP - 2 * LATER);
        let are_gone = || Ok(stage.stats(Some(&topic))?.counts.done <= count - at_once);
        stage.wait_until("all of one instant are gone", are_gone)?;
        Ok(told([("gone_ms", Value::from(began.elapsed().as_secs_f64() * 1e3))]))
    })
}

fn look_up(stage: &Stage, topic: &TopicName, count: u64) -> Result<()> {
    // Merges still remove files, and would be measured beside the looks.
    rss::wait_until_quiet()?;
    let resting_mib = rss::now_mib()?;
    let dropped = cache::drop_page_cache(stage.path())?;
    let (mut looks, mut reads) = (Latencies::default(), Latencies::default());
    let (client, order) = (stage.client(), Shuffled::new(count.max(3), 7));
    let per_round = (LOOKS / ROUNDS).min(count / ROUNDS).max(1);
    let probe = ReadProbe::open(stage)?;
    let mut rng = Rng::new(7);
    stage.measure("done_look_up", count, || {
        for round in 0..ROUNDS {
            probe.run(per_round, &mut rng, &mut reads)?;
            for look in 0..per_round {
                let number = order.at(round * per_round + look) % count;
                let target = Target::Key { topic: topic.clone(), key: key(number) };
                let called = Instant::now();
                let reply = client.call(Command::Get(vec![target]))?;
                looks.add(called.elapsed());
                let is_done = matches!(&reply, Reply::Views(views)
                    if matches!(&views[..], [Ok(view)] if view.state == State::Done));
                if !is_done {
                    return Err(unexpected(&format!("get of job {number}"), &reply));
                }
            }
        }
        Ok(told([
            ("cache_dropped", Value::from(dropped)),
            ("resting_mib", Value::from(resting_mib)),
            ("get_by_key_p50_us", Value::from(looks.percentile(50))),
            ("get_by_key_p99_us", Value::from(looks.percentile(99))),
            ("raw_read_p50_us", Value::from(reads.percentile(50))),
            ("raw_read_p99_us", Value::from(reads.percentile(99))),
        ]))
    })
}

/// Reads blocks of the largest file of the store.
struct ReadProbe {
    file: File,
    blocks: u64,
}

impl ReadProbe {
    fn open(stage: &Stage) -> Result<ReadProbe> {
        let mut largest = None;
        for entry in std::fs::read_dir(stage.path())? {
            let entry = entry?;
            largest = largest.max(Some((entry.metadata()?.len(), entry.path())));
        }
        let (bytes, path) = largest.ok_or("the store has no files")?;
        Ok(ReadProbe { file: File::open(path)?, blocks: (bytes / BLOCK_BYTES).max(1) })
    }

    fn run(&self, count: u64, rng: &mut Rng, into: &mut Latencies) -> Result<()> {
        let mut block = [0; BLOCK_BYTES as usize];
        for _ in 0..count {
            let at = rng.below(self.blocks) * BLOCK_BYTES;
            let started = Instant::now();
            let _ = self.file.read_at(&mut block, at)?;
            into.add(started.elapsed());
        }
        Ok(())
    }
}
