//! A worker with two handlers, a retry and a graceful stop.
//!
//! `cargo run -p dormouse --example worker`

#![allow(clippy::print_stdout)]

use std::time::Duration;

use dormouse::{Backoff, Error, Job, Outcome, Queue, Worker};

/// Fails at first, as mail servers do; the queue tries again after the backoff.
async fn send_mail(job: Job) -> Result<(), String> {
    if job.attempt() == 1 {
        return Err("mail server is away".into());
    }
    println!("mail {:?} is sent at attempt {}", job.text(), job.attempt());
    Ok(())
}

/// May block: it runs on a thread of its own.
fn make_report(job: Job) -> Result<Outcome, Error> {
    let Ok(rows) = job.json::<Vec<u64>>() else {
        // Trying again would not help.
        return Ok(Outcome::kill("the body is no list of numbers"));
    };
    println!("the report's sum is {}", rows.iter().sum::<u64>());
    Ok(Outcome::Done)
}

async fn run() -> Result<(), Error> {
    let queue = Queue::memory();
    let quickly = Backoff::fixed(Duration::from_millis(10));
    queue.put("mails", "hello").backoff(quickly).await?;
    queue.put_json("reports", &[1, 2, 3]).delay(Duration::from_millis(20)).await?;
    queue.put("reports", "not a list").await?;

    let worker = Worker::new(&queue)
        .concurrency(8)
        .topic_concurrency("reports", 1)
        .grace(Duration::from_secs(5))
        .handle("mails", send_mail)
        .handle_blocking("reports", make_report);
    // In a server this would be `tokio::signal::ctrl_c()`.
    let tally = worker.run_until(nothing_left(&queue)).await?;
    println!("{tally:?}");
    assert_eq!((tally.done, tally.failed, tally.dead), (2, 1, 1));
    Ok(())
}

async fn nothing_left(queue: &Queue) {
    while queue.stats_all().await.is_ok_and(|all| all.counts.waiting + all.counts.leased > 0) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

pub(crate) fn main() -> Result<(), Error> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    runtime.expect("a runtime can be started").block_on(run())
}
