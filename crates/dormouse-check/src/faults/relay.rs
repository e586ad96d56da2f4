//! A relay between a backend and its Redis that loses answers and delivers requests late: what a
//! network does when it breaks at the worst moment.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// The fault that open connections suffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mood {
    Pass,
    /// Requests arrive, answers do not.
    LoseAnswers,
    /// Requests are kept.
    KeepRequests,
}

struct Connection {
    mood: Mood,
    kept: Vec<u8>,
    client: TcpStream,
    server: TcpStream,
}

type Shared = Arc<Mutex<Connection>>;

/// The relay; connections end with it.
pub struct Relay {
    address: SocketAddr,
    open: Arc<Mutex<Vec<Shared>>>,
    is_cut: Arc<AtomicBool>,
    answered_late: Arc<AtomicU64>,
}

impl Relay {
    /// Leads to a server.
    pub fn to(server: &str) -> Relay {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let open = Arc::new(Mutex::new(Vec::new()));
        let answered_late = Arc::new(AtomicU64::new(0));
        let is_cut = Arc::new(AtomicBool::new(false));
        let (all, server, late, refuses) = (
            Arc::downgrade(&open),
            server.to_owned(),
            Arc::clone(&answered_late),
            Arc::clone(&is_cut),
        );
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let Some(open) = all.upgrade() else { return };
                if !refuses.load(Ordering::SeqCst)
                    && let Ok(server) = TcpStream::connect(&server)
                {
                    lock(&open).push(join(client, server, &late));
                }
            }
        });
        Relay { address, open, is_cut, answered_late }
    }

    /// `redis://` and the relay's own address.
    pub fn url(&self) -> String {
        format!("redis://{}", self.address)
    }

    /// Answers to requests that came late, which nobody hears.
    pub fn answered_late(&self) -> u64 {
        self.answered_late.load(Ordering::Relaxed)
    }

    /// From now on no answer arrives, and nobody can connect.
    pub fn cut(&self) {
        self.is_cut.store(true, Ordering::SeqCst);
        for connection in &*lock(&self.open) {
            lock(connection).mood = Mood::LoseAnswers;
        }
    }

    /// Lets clients connect again; the connections of before break.
    pub fn heal(&self) {
        self.is_cut.store(false, Ordering::SeqCst);
        lock(&self.open).drain(..).for_each(|connection| close(&lock(&connection)));
    }

    /// For a while requests arrive and answers do not; then the connections break.
    pub fn lose_answers(&self, during: Duration) {
        let broken = self.take(Mood::LoseAnswers);
        thread::sleep(during);
        for connection in broken {
            close(&lock(&connection));
        }
    }

    /// Connections break for the client, which connects again; what it sent last reaches the server
    /// on the old connection, but only after this time.
    pub fn deliver_late(&self, gathering: Duration, late: Duration) {
        let kept = self.take(Mood::KeepRequests);
        thread::sleep(gathering);
        for connection in &kept {
            // The peer may be gone already.
            let _ = lock(connection).client.shutdown(Shutdown::Both);
        }
        thread::sleep(late);
        for connection in kept {
            let mut connection = lock(&connection);
            let kept = std::mem::take(&mut connection.kept);
            let _ = connection.server.write_all(&kept);
            // It reads all before it sees the end.
            let _ = connection.server.shutdown(Shutdown::Write);
        }
    }

    /// All connections that are open now, in another mood.
    fn take(&self, mood: Mood) -> Vec<Shared> {
        let taken = std::mem::take(&mut *lock(&self.open));
        taken.iter().for_each(|connection| lock(connection).mood = mood);
        taken
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        lock(&self.open).drain(..).for_each(|connection| close(&lock(&connection)));
        // Wakes the listener, which ends.
        let _ = TcpStream::connect(self.address);
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

fn close(connection: &Connection) {
    let _ = connection.client.shutdown(Shutdown::Both);
    let _ = connection.server.shutdown(Shutdown::Both);
}

/// Carries bytes both ways, on a thread each.
fn join(client: TcpStream, server: TcpStream, late: &Arc<AtomicU64>) -> Shared {
    let clone = |stream: &TcpStream| stream.try_clone().expect("a stream can be shared");
    let (from_client, from_server) = (clone(&client), clone(&server));
    let (to_client, to_server) = (clone(&client), clone(&server));
    let connection = Connection { mood: Mood::Pass, kept: Vec::new(), client, server };
    let connection = Arc::new(Mutex::new(connection));
    for (from, to, is_request) in [(from_client, to_server, true), (from_server, to_client, false)]
    {
        let (connection, late) = (Arc::clone(&connection), Arc::clone(late));
        let _ = from.set_nodelay(true);
        thread::spawn(move || carry(from, to, is_request, &connection, &late));
    }
    connection
}

fn carry(
    mut from: TcpStream,
    mut to: TcpStream,
    is_request: bool,
    connection: &Shared,
    late: &AtomicU64,
) {
    let mut bytes = vec![0; 64 << 10];
    loop {
        let count = from.read(&mut bytes).unwrap_or(0);
        let mut connection = lock(connection);
        let is_kept = connection.mood == Mood::KeepRequests;
        if count == 0 {
            // A server that is to hear from a client that left stays connected.
            if !(is_request && is_kept) {
                close(&connection);
            }
            return;
        }
        match (connection.mood, is_request) {
            (Mood::LoseAnswers, false) => {}
            (Mood::KeepRequests, true) => connection.kept.extend_from_slice(&bytes[..count]),
            _ => {
                if is_kept && bytes[..count].windows(4).any(|word| word == b"late") {
                    late.fetch_add(1, Ordering::Relaxed);
                }
                drop(connection);
                // An error shows when it is read from.
                let _ = to.write_all(&bytes[..count]);
            }
        }
    }
}
