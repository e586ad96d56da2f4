//! Cancels orders that are not paid within thirty minutes: the put, the cancel on payment, and the
//! reserve when time is up. A virtual clock makes the half hour pass at once.
//!
//! `cargo run -p dormouse --example order_timeout`

#![allow(clippy::print_stdout)]

use std::time::Duration;

use dormouse::{Code, Error, Queue, VirtualClock};

const PAY_WITHIN: Duration = Duration::from_secs(30 * 60);

/// An order was placed: remember to look at it in half an hour.
fn place_order(queue: &Queue, number: u32) -> Result<(), Error> {
    queue.put("orders", number.to_string()).key(key(number)).delay(PAY_WITHIN).wait()?;
    println!("order {number} is placed");
    Ok(())
}

/// An order was paid: nothing to look at any more. The answer is exact: `not_found` means that
/// time was up before.
fn pay(queue: &Queue, number: u32) -> Result<bool, Error> {
    match queue.cancel_key("orders", key(number)).wait() {
        Ok(_) => Ok(true),
        Err(error) if error.code == Code::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Cancels what was not paid in time; gives the numbers.
fn cancel_unpaid(queue: &Queue) -> Result<Vec<String>, Error> {
    let mut cancelled = Vec::new();
    for job in queue.reserve("orders").max(100).wait()? {
        println!("order {} was not paid: cancelled", job.text()?);
        cancelled.push(job.text()?.to_owned());
        job.ack().wait()?;
    }
    Ok(cancelled)
}

fn key(number: u32) -> String {
    format!("order-{number}")
}

pub(crate) fn main() -> Result<(), Error> {
    let clock = VirtualClock::new();
    let queue = Queue::builder().clock(clock.clone()).memory();

    place_order(&queue, 41)?;
    clock.advance(Duration::from_secs(60));
    place_order(&queue, 42)?;

    assert!(pay(&queue, 41)?, "paid in time");
    clock.advance(PAY_WITHIN - Duration::from_secs(1));
    assert!(cancel_unpaid(&queue)?.is_empty(), "order 42 has one more second");
    clock.advance(Duration::from_secs(1));
    assert_eq!(cancel_unpaid(&queue)?, ["42"]);
    assert!(!pay(&queue, 42)?, "too late");
    Ok(())
}
