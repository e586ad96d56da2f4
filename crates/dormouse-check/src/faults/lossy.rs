//! The way to Redis, with a switch that loses the next answer or the next request and cuts the
//! connection: only so does a script come twice, or never.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::thread::{self, JoinHandle};

/// The next loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Loss {
    /// Nothing.
    None = 0,
    /// The next reply of Redis: the command is done, and its client does not know.
    Answer = 1,
    /// The next request to Redis.
    Request = 2,
}

/// A port whose connections lead to a Redis.
#[derive(Debug)]
pub(crate) struct LossyLink {
    address: SocketAddr,
    next: Arc<AtomicU8>,
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl LossyLink {
    /// Leads to the Redis at this address.
    pub(crate) fn to(redis: String) -> LossyLink {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address");
        let (next, ends) = (Arc::new(AtomicU8::new(0)), Arc::new(AtomicBool::new(false)));
        let (next_here, ends_here) = (Arc::clone(&next), Arc::clone(&ends));
        let thread = thread::spawn(move || {
            for near in listener.incoming().flatten() {
                if ends_here.load(Ordering::SeqCst) {
                    return;
                }
                // If Redis is gone, so is this connection.
                let Ok(far) = TcpStream::connect(&redis) else { continue };
                let _small = (near.set_nodelay(true), far.set_nodelay(true));
                join(&near, &far, &next_here, Loss::Request);
                join(&far, &near, &next_here, Loss::Answer);
            }
        });
        LossyLink { address, next, ends, thread: Some(thread) }
    }

    /// Where to connect to.
    pub(crate) fn url(&self) -> String {
        format!("redis://{}", self.address)
    }

    /// From now on this is what is lost next.
    pub(crate) fn lose(&self, loss: Loss) {
        self.next.store(loss as u8, Ordering::SeqCst);
    }
}

impl Drop for LossyLink {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::SeqCst);
        // Wakes the thread, which sees that it is over.
        let _woken = TcpStream::connect(self.address);
        if let Some(thread) = self.thread.take() {
            let _ended = thread.join();
        }
    }
}

/// Carries bytes one way until either end closes or they are to be lost.
fn join(from: &TcpStream, to: &TcpStream, next: &Arc<AtomicU8>, loss: Loss) {
    let (Ok(mut from), Ok(mut to)) = (from.try_clone(), to.try_clone()) else { return };
    let next = Arc::clone(next);
    let carry = move || {
        let mut bytes = vec![0; 64 << 10];
        while let Ok(len @ 1..) = from.read(&mut bytes) {
            let none = Loss::None as u8;
            let is_lost =
                next.compare_exchange(loss as u8, none, Ordering::SeqCst, Ordering::SeqCst);
            if is_lost.is_ok() || to.write_all(&bytes[..len]).is_err() {
                break;
            }
        }
        let _closed = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
    };
    thread::spawn(carry);
}
