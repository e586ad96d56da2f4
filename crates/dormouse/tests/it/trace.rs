//! The trace of a put reaches the handler, and the puts that it makes.

use std::time::Duration;

use dormouse::{End, Job, Outcome, Put, Queue, Worker};

use crate::util::soon;

const PARENT: (&str, &str) =
    ("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
const STATE: (&str, &str) = ("tracestate", "a=1");

/// The headers of the only job of a topic.
async fn headers(queue: &Queue, topic: &str) -> Vec<(String, String)> {
    let jobs = queue.reserve(topic).await.unwrap();
    assert_eq!(jobs.len(), 1, "{topic}");
    jobs[0].headers().to_vec()
}

fn owned(headers: &[(&str, &str)]) -> Vec<(String, String)> {
    headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// Puts from a handler, before and after it was asleep.
async fn put_on(queue: Queue, job: Job) -> Result<Outcome, dormouse::Error> {
    assert_eq!(job.header("traceparent"), Some(PARENT.1));
    queue.put("first", "x").await?;
    tokio::time::sleep(Duration::from_millis(1)).await;
    queue.put_many([Put::new("later", "x").header("own", "y")]).await?;
    queue.put("other", "x").header("traceparent", "00-2").await?;
    Ok(Outcome::Done)
}

#[tokio::test]
async fn a_trace_goes_on_from_job_to_job() {
    let queue = Queue::memory();
    let put = queue.put("t", "x").header(PARENT.0, PARENT.1).header(STATE.0, STATE.1);
    put.header("own", "not carried on").await.unwrap();
    let worker = Worker::new(&queue).handle_with(queue.clone(), "t", put_on);
    let blocking = queue.clone();
    let worker =
        worker.handle_blocking("first", move |_| blocking.put("blocking", "x").wait().map(drop));
    let (sender, mut ends) = tokio::sync::mpsc::unbounded_channel();
    let worker = worker.on_end(move |job, end| drop(sender.send((job.topic().to_owned(), end))));
    let (stopper, run) = (worker.stopper(), tokio::spawn(worker.run()));
    // The second begins while the first still runs.
    let mut ended = [ends.recv().await.unwrap(), ends.recv().await.unwrap()];
    ended.sort_by_key(|(topic, _)| topic.clone());
    assert_eq!(ended, [("first".to_owned(), End::Done), ("t".to_owned(), End::Done)]);
    assert_eq!(headers(&queue, "later").await, owned(&[PARENT, STATE, ("own", "y")]));
    assert_eq!(headers(&queue, "other").await, owned(&[STATE, ("traceparent", "00-2")]));
    assert_eq!(headers(&queue, "blocking").await, owned(&[PARENT, STATE]));
    // Nothing stays on a thread where no handler runs.
    queue.put("plain", "x").await.unwrap();
    assert_eq!(headers(&queue, "plain").await, []);
    stopper.stop();
    soon("it has stopped", async || run.is_finished()).await;
}
