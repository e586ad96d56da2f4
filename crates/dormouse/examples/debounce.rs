//! Waits for a quiet moment: each keystroke puts the same key with `on_conflict` latest, so the
//! search index is refreshed once, two seconds after the last one, with the last text.
//!
//! `cargo run -p dormouse --example debounce`

#![allow(clippy::print_stdout)]

use std::time::Duration;

use dormouse::{Error, OnConflict, PutOutcome, Queue, VirtualClock};

const QUIET: Duration = Duration::from_secs(2);

fn changed(queue: &Queue, document: &str, text: &str) -> Result<PutOutcome, Error> {
    let put = queue
        .put("refresh", text)
        .key(document)
        .delay(QUIET)
        .on_conflict(OnConflict::Latest)
        .wait()?;
    Ok(put.outcome)
}

pub(crate) fn main() -> Result<(), Error> {
    let clock = VirtualClock::new();
    let queue = Queue::builder().clock(clock.clone()).memory();

    assert_eq!(changed(&queue, "page-1", "d")?, PutOutcome::Created);
    for text in ["do", "dor", "dormouse"] {
        clock.advance(Duration::from_millis(500));
        assert_eq!(changed(&queue, "page-1", text)?, PutOutcome::Replaced);
    }

    clock.advance(QUIET - Duration::from_millis(1));
    assert!(queue.reserve("refresh").wait()?.is_empty(), "not quiet for long enough");
    clock.advance(Duration::from_millis(1));
    let jobs = queue.reserve("refresh").max(10).wait()?;
    let texts: Vec<_> = jobs.iter().map(|job| job.text()).collect();
    println!("refreshing with {texts:?}");
    assert_eq!(texts, [Ok("dormouse")]);
    jobs[0].ack().wait()?;
    Ok(())
}
