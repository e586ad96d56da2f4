//! Connections by protocol.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The protocol of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProtocolKind {
    Http,
    Resp,
    Beanstalk,
}

impl ProtocolKind {
    pub(crate) const ALL: [ProtocolKind; 3] =
        [ProtocolKind::Http, ProtocolKind::Resp, ProtocolKind::Beanstalk];

    /// The protocol's word in metric names.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            ProtocolKind::Http => "http",
            ProtocolKind::Resp => "resp",
            ProtocolKind::Beanstalk => "beanstalk",
        }
    }
}

/// The counters of all protocols.
#[derive(Default)]
pub(super) struct Connections([Count; ProtocolKind::ALL.len()]);

/// The counters of one protocol.
#[derive(Default)]
struct Count {
    open: AtomicU64,
    accepted: AtomicU64,
    refused: AtomicU64,
}

/// A copy of the counters of one protocol.
#[derive(Debug)]
pub(super) struct ConnectionCounts {
    pub(super) kind: ProtocolKind,
    pub(super) open: u64,
    pub(super) accepted: u64,
    pub(super) refused: u64,
}

impl Connections {
    fn of(&self, kind: ProtocolKind) -> &Count {
        &self.0[kind as usize]
    }

    pub(super) fn connected(&self, kind: ProtocolKind) {
        let count = self.of(kind);
        count.accepted.fetch_add(1, Relaxed);
        count.open.fetch_add(1, Relaxed);
    }

    pub(super) fn disconnected(&self, kind: ProtocolKind) {
        self.of(kind).open.fetch_sub(1, Relaxed);
    }

    pub(super) fn refused(&self, kind: ProtocolKind) {
        self.of(kind).refused.fetch_add(1, Relaxed);
    }

    pub(super) fn counts(&self) -> [ConnectionCounts; ProtocolKind::ALL.len()] {
        ProtocolKind::ALL.map(|kind| {
            let Count { open, accepted, refused } = self.of(kind);
            let [open, accepted, refused] = [open, accepted, refused].map(|it| it.load(Relaxed));
            ConnectionCounts { kind, open, accepted, refused }
        })
    }
}
