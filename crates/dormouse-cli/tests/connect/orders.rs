use std::time::Duration;

use dormouse::{Code, Error, Job, Queue, Worker};

/// Placed: the order is looked at in half an hour. Sent twice, it is still one job.
pub async fn placed(queue: &Queue, order: &str) -> Result<(), Error> {
    let half_an_hour = Duration::from_secs(30 * 60);
    queue.put("order-timeouts", order).key(order).delay(half_an_hour).await?;
    Ok(())
}

/// Paid: true = there will be no time-out; false = it came first, and the shop has to decide.
pub async fn paid(queue: &Queue, order: &str) -> Result<bool, Error> {
    match queue.cancel_key("order-timeouts", order).unless_leased().await {
        Ok(_) => Ok(true),
        // A worker has it right now, or is done with it.
        Err(error) if matches!(error.code, Code::Conflict | Code::NotFound) => Ok(false),
        Err(error) => Err(error),
    }
}

/// The worker: cancels what is still unpaid when its time comes.
pub async fn work<S: Shop>(queue: &Queue, shop: S) -> Result<(), Error> {
    let worker = Worker::new(queue).concurrency(50).handle_with(shop, "order-timeouts", time_out);
    worker.on_error(|error| eprintln!("{error}")).run().await?;
    Ok(())
}

async fn time_out<S: Shop>(shop: S, job: Job) -> Result<(), Error> {
    // UPDATE orders SET state = 'cancelled' WHERE id = $1 AND state = 'unpaid'
    shop.cancel_unless_paid(job.text()?).await
}

pub trait Shop: Clone + Send + Sync + 'static {
    fn cancel_unless_paid(&self, order: &str) -> impl Future<Output = Result<(), Error>> + Send;
}
