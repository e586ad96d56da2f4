//! Connections, by the protocol that is spoken on them.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What is spoken on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spoken {
    Http,
    Resp,
    Beanstalk,
}

impl Spoken {
    pub(super) const ALL: [Spoken; 3] = [Spoken::Http, Spoken::Resp, Spoken::Beanstalk];

    /// As names of figures have it.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Spoken::Http => "http",
            Spoken::Resp => "resp",
            Spoken::Beanstalk => "beanstalk",
        }
    }
}

/// Figures of all protocols.
#[derive(Default)]
pub(super) struct Connections([Count; Spoken::ALL.len()]);

/// Figures of one.
#[derive(Default)]
struct Count {
    open: AtomicU64,
    accepted: AtomicU64,
    refused: AtomicU64,
}

/// What was counted up to some moment.
#[derive(Debug)]
pub(super) struct SeenConnections {
    pub(super) spoken: Spoken,
    pub(super) open: u64,
    pub(super) accepted: u64,
    pub(super) refused: u64,
}

impl Connections {
    fn of(&self, spoken: Spoken) -> &Count {
        &self.0[spoken as usize]
    }

    pub(super) fn connected(&self, spoken: Spoken) {
        let count = self.of(spoken);
        count.accepted.fetch_add(1, Relaxed);
        count.open.fetch_add(1, Relaxed);
    }

    pub(super) fn disconnected(&self, spoken: Spoken) {
        self.of(spoken).open.fetch_sub(1, Relaxed);
    }

    pub(super) fn refused(&self, spoken: Spoken) {
        self.of(spoken).refused.fetch_add(1, Relaxed);
    }

    pub(super) fn seen(&self) -> [SeenConnections; Spoken::ALL.len()] {
        Spoken::ALL.map(|spoken| {
            let Count { open, accepted, refused } = self.of(spoken);
            let [open, accepted, refused] = [open, accepted, refused].map(|it| it.load(Relaxed));
            SeenConnections { spoken, open, accepted, refused }
        })
    }
}
