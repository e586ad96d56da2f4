//! A backend over connections of its own, made to take one request after the other: a case expects
//! that what it sends later comes later.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};

use dormouse_core::backend::{Answer, Backend, Request, Sink, Ticket};
use dormouse_core::error::Error;

use super::backend::waits;
use super::park_observer::ParkObserver;

/// Waits for each answer before it sends the next request, and for the arrival of each request
/// that waits. The observer is behind the server.
pub struct Ordered {
    backend: Arc<dyn Backend>,
    observer: Arc<ParkObserver>,
}

impl Ordered {
    /// The backend, and who sees what arrives at its server.
    pub fn new(backend: Arc<dyn Backend>, observer: Arc<ParkObserver>) -> Ordered {
        Ordered { backend, observer }
    }

    fn wait(&self, request: Request, sink: &Arc<dyn Sink>) -> Result<(), Error> {
        self.observer.open();
        let arrived = self.observer.arrived();
        let is_over = Arc::new(AtomicBool::new(false));
        let (observer, over) = (Arc::clone(&self.observer), Arc::clone(&is_over));
        let waiting = WaitSink { observer, is_over: over, sink: Arc::clone(sink) };
        self.backend.submit(vec![request], Arc::new(waiting))?;
        self.observer.wait_for_arrival(arrived, || is_over.load(Ordering::Acquire));
        Ok(())
    }
}

impl Backend for Ordered {
    fn submit(&self, batch: Vec<Request>, sink: Arc<dyn Sink>) -> Result<(), Error> {
        for request in batch {
            if waits(&request.command) {
                self.wait(request, &sink)?;
                continue;
            }
            let (sender, receiver) = mpsc::channel();
            self.backend.submit(vec![request], Arc::new(sender))?;
            let answer = receiver.recv().expect("every request is answered");
            self.observer.settle();
            sink.deliver(&mut vec![answer]);
        }
        Ok(())
    }
}

struct WaitSink {
    observer: Arc<ParkObserver>,
    is_over: Arc<AtomicBool>,
    sink: Arc<dyn Sink>,
}

impl Sink for WaitSink {
    fn deliver(&self, answers: &mut Vec<(Ticket, Answer)>) {
        self.is_over.store(true, Ordering::Release);
        self.sink.deliver(answers);
        self.observer.close();
    }
}
