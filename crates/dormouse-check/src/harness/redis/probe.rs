//! Puts one job after the other into one partition and notes when each was answered: how long a
//! caller goes without service.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use dormouse_core::backend::Backend;
use dormouse_core::command::{Command, Reply};
use dormouse_core::error::{Code, Error};
use dormouse_core::op::Put;
use dormouse_core::topic::TopicName;

use crate::harness::process::client::Client;

/// The topic; on a backend with one partition its slot is that of [`PROBE_KEY`].
pub const PROBE_TOPIC: &str = "probe";
/// A key in the slot of the only partition.
pub const PROBE_KEY: &str = "{probe/0}";
const PACE: Duration = Duration::from_millis(2);

/// One answer.
#[derive(Clone, Copy, Debug)]
struct Beat {
    told_at: Instant,
    /// `unconfirmed` is not, but somebody served.
    ok: bool,
}

/// A thread that asks; ends when it is read.
pub struct Probe {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Result<Vec<Beat>, Error>>,
}

/// The longest pause that a probe saw since an instant.
#[derive(Clone, Copy, Debug)]
pub struct Gap {
    /// From one answer to the next.
    pub served: Duration,
    /// The same, of answers that were good.
    pub ok: Duration,
}

impl Probe {
    /// Begins; the backend makes topics of one partition.
    pub fn start(backend: &Arc<dyn Backend>) -> Result<Probe, Error> {
        let client = Client::new(backend);
        // The topic exists, and with it its slot, when this returns.
        beat(&client)?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            let mut beats = Vec::new();
            while !stopped.load(Ordering::Relaxed) {
                beats.push(beat(&client)?);
                thread::sleep(PACE);
            }
            Ok(beats)
        });
        Ok(Probe { stop, thread })
    }

    /// Ends it; the longest pause since this instant.
    pub fn gap(self, at: Instant) -> Result<Gap, String> {
        self.stop.store(true, Ordering::Relaxed);
        let beats = self.thread.join().map_err(|_| "the probe panicked")?;
        let beats = beats.map_err(|error| error.to_string())?;
        let longest = |good: &dyn Fn(&&Beat) -> bool| {
            let told: Vec<Instant> = beats.iter().filter(good).map(|beat| beat.told_at).collect();
            let since = told.windows(2).filter(|pair| pair[1] > at);
            since
                .map(|pair| pair[1] - pair[0])
                .max()
                .ok_or("the probe has no answers after a fault")
        };
        Ok(Gap { served: longest(&|_| true)?, ok: longest(&|beat| beat.ok)? })
    }
}

fn beat(client: &Client) -> Result<Beat, Error> {
    let put = Put { delay_ms: Some(3_600_000), ..Put::new(TopicName::new(PROBE_TOPIC)?, "beat") };
    let answer = client.call_one(Command::Put(vec![put]));
    let outcome = match answer {
        Ok(Reply::Put(mut items)) => items.pop().map(|item| item.map(|_| ())),
        Err(error) => Some(Err(error)),
        Ok(_) => None,
    };
    let ok = match outcome {
        Some(Ok(())) => true,
        Some(Err(error)) if matches!(error.code, Code::Unconfirmed | Code::Unavailable) => false,
        Some(Err(error)) => return Err(error),
        None => return Err(Error::unavailable("a put was answered with something else")),
    };
    Ok(Beat { told_at: Instant::now(), ok })
}
