//! A command's stderr: passed on unless a program reads ours, and its end kept.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::ChildStderr;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// Bytes that are kept: the limit of a job's error.
const TAIL_BYTES_MAX: usize = dormouse_core::limits::ERROR_BYTES_MAX;
/// How long to read on after the command ended: something it started may hold its stderr.
const REST_MAX: Duration = Duration::from_millis(200);

/// Reads stderr as long as there is any.
pub(super) struct Tail {
    bytes: Arc<Mutex<Vec<u8>>>,
    reader: JoinHandle<()>,
}

impl Tail {
    pub(super) fn read(stderr: Option<ChildStderr>, is_passed_on: bool) -> Tail {
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let kept = bytes.clone();
        let reader = tokio::spawn(async move {
            if let Some(stderr) = stderr {
                read(stderr, &kept, is_passed_on).await;
            }
        });
        Tail { bytes, reader }
    }

    /// The end of it, once the command has ended.
    pub(super) async fn finish(mut self) -> String {
        let _ = timeout(REST_MAX, &mut self.reader).await;
        let bytes = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&bytes).trim().to_owned()
    }
}

async fn read(mut stderr: ChildStderr, kept: &Mutex<Vec<u8>>, is_passed_on: bool) {
    let mut ours = tokio::io::stderr();
    let mut chunk = [0; 4096];
    while let Ok(length @ 1..) = stderr.read(&mut chunk).await {
        keep(&mut kept.lock().unwrap_or_else(PoisonError::into_inner), &chunk[..length]);
        if !is_passed_on {
            continue;
        }
        // Our stderr may be closed: the command must not notice.
        let _ = ours.write_all(&chunk[..length]).await;
        let _ = ours.flush().await;
    }
}

fn keep(kept: &mut Vec<u8>, bytes: &[u8]) {
    kept.extend_from_slice(bytes);
    let excess = kept.len().saturating_sub(TAIL_BYTES_MAX);
    kept.drain(..excess);
}

/// How a command failed: its exit, and as much of the end of its stderr as fits.
pub(super) fn error_text(exit: &str, tail: &str) -> String {
    if tail.is_empty() {
        return exit.to_owned();
    }
    let room = TAIL_BYTES_MAX.saturating_sub(exit.len() + 2);
    let mut start = tail.len().saturating_sub(room);
    while !tail.is_char_boundary(start) {
        start += 1;
    }
    format!("{exit}: {}", &tail[start..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_kept() {
        let mut kept = Vec::new();
        keep(&mut kept, &[b'a'; TAIL_BYTES_MAX]);
        keep(&mut kept, b"bc");
        assert_eq!(kept.len(), TAIL_BYTES_MAX);
        assert!(kept.ends_with(b"abc"));
    }

    #[test]
    fn an_error_fits_its_limit_and_cuts_no_character() {
        assert_eq!(error_text("exit code 1", ""), "exit code 1");
        assert_eq!(error_text("exit code 1", "no"), "exit code 1: no");
        for length in 1_000..1_040 {
            let text = error_text("exit code 1", &"ä".repeat(length));
            assert!(text.len() <= TAIL_BYTES_MAX && text.ends_with('ä'));
        }
    }
}
