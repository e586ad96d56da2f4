//! How the pushes of a topic go, for those who ask.

use std::sync::{Mutex, MutexGuard, PoisonError};

use dormouse_core::topic::TopicName;
use tokio::sync::watch;

/// Whether a topic is pushed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PushState {
    /// It is.
    On,
    /// Its receiver fails: only probes are sent.
    Open,
    /// Until an operator resumes it.
    Disabled,
}

impl PushState {
    /// The word for this state on every surface.
    pub fn as_str(self) -> &'static str {
        match self {
            PushState::On => "on",
            PushState::Open => "open",
            PushState::Disabled => "disabled",
        }
    }
}

/// How the pushes of a topic go on this server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PushStatus {
    /// Whether it is pushed.
    pub state: PushState,
    /// Why it is disabled.
    pub disabled: Option<&'static str>,
    /// The text of the last failure.
    pub last_error: Option<String>,
    /// Deliveries since the start of the server.
    pub delivered: u64,
    /// Failed attempts since the start of the server.
    pub failed: u64,
}

/// The status of one topic, as its consumer and its deliveries keep it.
#[derive(Debug)]
pub(super) struct TopicStatus {
    inner: Mutex<PushStatus>,
    is_open: Mutex<bool>,
    changes: watch::Sender<u64>,
}

impl Default for TopicStatus {
    fn default() -> TopicStatus {
        let status = PushStatus {
            state: PushState::On,
            disabled: None,
            last_error: None,
            delivered: 0,
            failed: 0,
        };
        TopicStatus {
            inner: Mutex::new(status),
            is_open: Mutex::new(false),
            changes: watch::Sender::new(0),
        }
    }
}

impl TopicStatus {
    pub(super) fn view(&self) -> PushStatus {
        let mut status = self.lock().clone();
        let is_open = *self.is_open.lock().unwrap_or_else(PoisonError::into_inner);
        status.state = match (status.disabled, is_open) {
            (Some(_), _) => PushState::Disabled,
            (None, true) => PushState::Open,
            (None, false) => PushState::On,
        };
        status
    }

    /// Changes when it is disabled or resumed.
    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    pub(super) fn is_disabled(&self) -> bool {
        self.lock().disabled.is_some()
    }

    pub(super) fn set_open(&self, is_open: bool) {
        *self.is_open.lock().unwrap_or_else(PoisonError::into_inner) = is_open;
    }

    /// Counts a delivery, or the failure of one.
    pub(super) fn note(&self, error: Option<&str>) {
        let mut status = self.lock();
        match error {
            None => status.delivered += 1,
            Some(error) => {
                status.failed += 1;
                status.last_error = Some(error.to_owned());
            }
        }
    }

    /// Nothing is taken from the topic until it is resumed; its jobs stay. False if it was so.
    pub(super) fn disable(&self, topic: &TopicName, why: &'static str) -> bool {
        if self.lock().disabled.replace(why).is_some() {
            return false;
        }
        tracing::warn!(%topic, why, "pushes are disabled; the jobs stay until they are resumed");
        self.changes.send_modify(|count| *count += 1);
        true
    }

    /// Goes on after it was disabled.
    pub(super) fn resume(&self) {
        if self.lock().disabled.take().is_some() {
            self.changes.send_modify(|count| *count += 1);
        }
    }

    fn lock(&self) -> MutexGuard<'_, PushStatus> {
        // Nothing panics while it is held.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
