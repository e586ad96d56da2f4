//! The engine's meters.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use dormouse_core::backend::Backend;
use dormouse_core::command::Command;
use dormouse_core::meter::MeterValue;
use dormouse_core::op::{Lock, Put};
use dormouse_disk::engine::{Engine, Options, Sizes};

use common::{TIMEOUT, call, put_one, reserve, topic};

fn value(engine: &Engine, name: &str) -> MeterValue {
    let meters = engine.meters();
    let found = meters.iter().find(|meter| meter.name == name);
    found.unwrap_or_else(|| panic!("no meter {name}")).value.clone()
}

fn number(engine: &Engine, name: &str) -> u64 {
    match value(engine, name) {
        MeterValue::Counter(value) | MeterValue::Gauge(value) => value,
        MeterValue::Seconds(value) => value as u64,
        MeterValue::Histogram { counts, .. } => counts.iter().sum(),
        MeterValue::Gauges { .. } | MeterValue::Counters { .. } => {
            panic!("{name} has several values")
        }
    }
}

fn use_it(engine: &Engine) {
    for index in 0..200 {
        put_one(engine, Put::new(topic(&format!("t{}", index % 4)), vec![0; 100]));
    }
    assert_eq!(reserve(engine, "t1", 7).len(), 7);
    let lock = Lock { name: "l".into(), owner: "o".into(), ttl_ms: 10_000, wait_ms: 0 };
    call(engine, Command::Lock(lock)).unwrap();
    assert_eq!(number(engine, "leased_jobs"), 7);
    assert_eq!(number(engine, "leased_bytes"), 700);
    assert_eq!(number(engine, "locks_held"), 1);
    assert_eq!(number(engine, "topics_alive"), 4);
    assert_eq!(number(engine, "waiting_requests"), 0);
    assert_eq!(number(engine, "inbox_requests"), 0);
}

#[test]
fn an_engine_in_memory_measures_what_it_holds() {
    let engine = Engine::memory(Options::default());
    use_it(&engine);
    assert!(engine.meters().iter().all(|meter| !meter.name.starts_with("journal")));
}

#[test]
fn an_engine_on_disk_measures_its_files() {
    let dir = tempfile::tempdir().unwrap();
    let sizes = Sizes { memtable_bytes: 4_000, segment_bytes: 8_000, merge_runs: 2 };
    let options = Options { sizes, ..Options::default() };
    let engine = Engine::open(dir.path(), options.clone()).unwrap();
    use_it(&engine);
    for name in ["journal_sync_seconds", "journal_batch_records", "journal_batch_bytes"] {
        assert!(number(&engine, name) >= 200, "{name}");
    }
    let MeterValue::Histogram { bounds, counts, sum } = value(&engine, "journal_batch_records")
    else {
        panic!("no histogram")
    };
    assert_eq!(counts.len(), bounds.len() + 1);
    assert!(sum >= 200.0, "at least a record per put: {sum}");
    let until = std::time::Instant::now() + TIMEOUT;
    while number(&engine, "merges_total") == 0 || number(&engine, "runs") == 0 {
        assert!(std::time::Instant::now() < until, "no merge: {:?}", engine.meters());
        put_one(&engine, Put::new(topic("t1"), vec![0; 100]));
    }
    assert!(number(&engine, "flushes_total") >= 2);
    assert!(number(&engine, "run_bytes") > 0);
    assert!(number(&engine, "memtable_bytes") < 100_000);
    engine.close().unwrap();

    let on_disk: u64 = std::fs::read_dir(dir.path())
        .unwrap()
        .map(Result::unwrap)
        .filter(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            name.starts_with("journal-") || name.starts_with("checkpoint-")
        })
        .map(|entry| entry.metadata().unwrap().len())
        .sum();
    let engine = Engine::open(dir.path(), options).unwrap();
    let journal_bytes = number(&engine, "journal_bytes");
    // The start wrote a segment, and perhaps a freeze right after it another one.
    assert!((1..=on_disk + 4_000).contains(&journal_bytes), "{journal_bytes} of {on_disk}");
}
