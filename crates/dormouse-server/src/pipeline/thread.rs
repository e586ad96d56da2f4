//! The thread of the pipelined protocols.
//!
//! All their connections share one thread with a runtime of its own: it reads every ready socket,
//! drives the backend once and writes all replies. Threads that take connections from each other
//! cost more than they bring. HTTP has the server's other threads, because a large reply there
//! takes a thread for long.

use std::io;
use std::thread;

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

/// Runs until it is dropped.
pub(crate) struct PipelineThread {
    runtime: Handle,
    #[expect(dead_code, reason = "its drop ends the thread")]
    running: oneshot::Sender<()>,
}

impl PipelineThread {
    pub(crate) fn start() -> io::Result<PipelineThread> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (running, ended) = oneshot::channel::<()>();
        thread::Builder::new().name("dormouse-pipeline".to_owned()).spawn(move || {
            // It is never sent: an error says that the server is gone.
            let _ = runtime.block_on(ended);
            // A blocked task must not keep the process alive.
            runtime.shutdown_background();
        })?;
        Ok(PipelineThread { runtime: handle, running })
    }

    /// Where the protocols' tasks run.
    pub(crate) fn runtime(&self) -> &Handle {
        &self.runtime
    }
}
