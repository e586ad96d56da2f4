//! Limits on the bytes that all connections hold together: one request may be large, but not all of
//! them at the same time.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use dormouse_core::error::{Code, Error};

/// A number of bytes shared by all connections. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Budget {
    used: Arc<AtomicUsize>,
    max: usize,
    what: &'static str,
}

/// Bytes taken from a budget until dropped.
pub(crate) struct Held {
    budget: Budget,
    bytes: usize,
}

impl Budget {
    pub(crate) fn new(max: usize, what: &'static str) -> Budget {
        Budget { used: Arc::default(), max, what }
    }

    /// Whether this many more bytes fit now. To be checked before something large is made, and then
    /// held.
    pub(crate) fn room_for(&self, bytes: usize) -> Result<(), Error> {
        self.judge(self.used.load(Ordering::Relaxed), bytes)
    }

    fn judge(&self, before: usize, bytes: usize) -> Result<(), Error> {
        let Budget { max, what, .. } = self;
        if before.saturating_add(bytes) <= *max {
            return Ok(());
        }
        if bytes > *max {
            let text = format!("{bytes} bytes of {what} at once; the limit is {max}, ask for less");
            return Err(Error::new(Code::TooLarge, text));
        }
        Err(Error::new(
            Code::Busy,
            format!("{before} bytes of {what} are held already, the limit is {max}; try again"),
        ))
    }

    /// Whether more is held than the limit.
    pub(crate) fn is_exceeded(&self) -> bool {
        self.used() > self.max
    }

    /// The bytes that are held now.
    pub(crate) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// The bytes that fit now.
    pub(crate) fn left(&self) -> usize {
        self.max.saturating_sub(self.used.load(Ordering::Relaxed))
    }

    /// Holds no bytes yet; see `Held::take`.
    pub(crate) fn hold(&self) -> Held {
        Held { budget: self.clone(), bytes: 0 }
    }
}

impl Held {
    /// Takes more bytes, even beyond the limit.
    pub(crate) fn take(&mut self, bytes: usize) {
        self.bytes += bytes;
        // Only a count: it orders nothing else.
        self.budget.used.fetch_add(bytes, Ordering::Relaxed);
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.budget.used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dropped_bytes_can_be_taken_again() {
        let budget = Budget::new(10, "bodies");
        let mut first = budget.hold();
        first.take(8);
        assert!(!budget.is_exceeded());
        let mut second = budget.hold();
        second.take(3);
        assert!(budget.is_exceeded());
        drop(second);
        assert_eq!(budget.room_for(3).unwrap_err().code, Code::Busy);
        assert_eq!(budget.room_for(11).unwrap_err().code, Code::TooLarge);
        assert_eq!(budget.left(), 2);
        budget.room_for(2).unwrap();
        drop(first);
        budget.room_for(10).unwrap();
    }
}
