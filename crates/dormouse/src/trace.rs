//! Trace context: the headers `traceparent` and `tracestate` of W3C Trace Context go from a job to
//! the puts that its handler makes, so that a trace goes on.
//!
//! The headers of the running job are kept per thread, and set for each poll of its handler: that
//! works on every runtime, and a handler that moves to another thread takes them along.

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;

use crate::leased_job::LeasedJob;

/// The headers that carry a trace.
const NAMES: [&str; 2] = ["traceparent", "tracestate"];

/// The trace headers of a job; `None` = it has none.
pub(crate) type Trace = Option<Arc<Vec<(String, String)>>>;

thread_local! {
    static CURRENT: RefCell<Trace> = const { RefCell::new(None) };
}

/// Whether a header carries a trace.
pub(crate) fn is_trace(name: &str) -> bool {
    NAMES.contains(&name)
}

/// The trace of a job.
pub(crate) fn of(job: &LeasedJob) -> Trace {
    let headers = NAMES.iter().filter_map(|name| {
        let value = job.header(name)?;
        Some(((*name).to_owned(), value.to_owned()))
    });
    let headers: Vec<_> = headers.collect();
    (!headers.is_empty()).then(|| Arc::new(headers))
}

/// The trace of the job whose handler runs here.
pub(crate) fn current() -> Trace {
    CURRENT.with_borrow(Clone::clone)
}

/// Runs a blocking handler whose puts carry this trace on.
pub(crate) fn within<T>(trace: &Trace, run: impl FnOnce() -> T) -> T {
    // A handler may panic: the thread must not keep its trace.
    struct Restore(Trace);
    impl Drop for Restore {
        fn drop(&mut self) {
            CURRENT.set(self.0.take());
        }
    }
    let _restore = Restore(CURRENT.replace(trace.clone()));
    run()
}

/// Runs a handler whose puts carry this trace on.
pub(crate) async fn carry<T>(trace: Trace, handler: impl Future<Output = T>) -> T {
    let mut handler = pin!(handler);
    poll_fn(|context| within(&trace, || handler.as_mut().poll(context))).await
}
