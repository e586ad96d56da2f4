use dormouse::{Error, Job, Queue, Worker};

pub fn worker(queue: &Queue) -> Worker {
    Worker::new(queue).handle("orders", traced).on_end(|job, end| eprintln!("{} {end:?}", job.id()))
}

async fn traced(job: Job) -> Result<(), Error> {
    let parent = job.header("traceparent").unwrap_or("none");
    eprintln!("a span of {parent} begins"); // tracing: work(job).instrument(span).await
    work(job).await
}

async fn work(_: Job) -> Result<(), Error> {
    Ok(())
}
