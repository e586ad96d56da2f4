//! locks: a page of the locks that are held.

use bytes::Bytes;

use crate::command::{Command, Reply, operation};
use crate::error::Error;
use crate::limits::{LOCK_NAME_BYTES_MAX, PORTION_ENTRIES};
use crate::machine::{Machine, Rule};
use crate::op::list::check_limit;
use crate::time::{Clock, Now};
use crate::timeline::Timeline;

/// A page of locks by the end of their time, the soonest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Locks {
    /// Only those whose name begins so.
    pub prefix: Bytes,
    /// Where the last page ended.
    pub cursor: Option<String>,
    /// How many at most.
    pub limit: usize,
}

impl Locks {
    /// Checks limit and prefix; gives where the page begins.
    pub fn check(&self) -> Result<Option<LocksCursor>, Error> {
        check_limit(self.limit)?;
        if self.prefix.len() > LOCK_NAME_BYTES_MAX {
            let bytes = self.prefix.len();
            let text = format!("prefix has {bytes} bytes; give at most {LOCK_NAME_BYTES_MAX}");
            return Err(Error::invalid(text));
        }
        self.cursor.as_deref().map(LocksCursor::read).transpose()
    }
}

/// A lock that is held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldLockView {
    /// Its name.
    pub name: Bytes,
    /// The owner.
    pub owner: Bytes,
    /// The fencing number of the grant.
    pub fence: u64,
    /// How often the owner must give it back.
    pub depth: u32,
    /// When it runs out, wall ms.
    pub expires_at: u64,
}

/// A page of locks. It may have fewer than were asked for, even none, and not be the last: a page
/// looks at a bounded number of locks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocksPage {
    /// The locks.
    pub locks: Vec<HeldLockView>,
    /// Where the next page begins; `None` = this was the last.
    pub cursor: Option<String>,
}

operation! {
    Locks => LocksPage,
        request => Command::Locks(request), Reply::Locks(reply) => Ok(reply);
}

/// The last lock that a page looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocksCursor {
    /// Where a backend has several lists, the number of the list.
    pub part: u16,
    /// When the lock runs out, by the backend's clock.
    pub at: u64,
    /// Its name.
    pub name: Bytes,
}

impl LocksCursor {
    /// The cursor as callers see it.
    pub fn write(&self) -> String {
        let name: String = self.name.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{:x}.{:x}.{name}", self.part, self.at)
    }

    fn read(text: &str) -> Result<LocksCursor, Error> {
        let parse = || {
            let (part, rest) = text.split_once('.')?;
            let (at, name) = rest.split_once('.')?;
            let part = u16::from_str_radix(part, 16).ok()?;
            let digits = name.as_bytes().chunks(2).map(|pair| {
                let pair = std::str::from_utf8(pair).ok().filter(|pair| pair.len() == 2)?;
                u8::from_str_radix(pair, 16).ok()
            });
            let is_name = name.len() <= 2 * LOCK_NAME_BYTES_MAX;
            let name = is_name.then(|| digits.collect::<Option<Vec<u8>>>())??.into();
            Some(LocksCursor { part, at: u64::from_str_radix(at, 16).ok()?, name })
        };
        parse().ok_or_else(|| {
            let shown: String = text.chars().take(64).collect();
            let text = "is none of a list of locks; send it as the last page gave it";
            Error::invalid(format!("cursor {shown:?} {text}"))
        })
    }
}

impl<T: Timeline> Machine<T> {
    pub(crate) fn locks_page(&self, now: Now, page: &Locks) -> Rule<Reply> {
        let mut last = page.check()?.map(|cursor| (cursor.at, cursor.name));
        let mut locks = Vec::new();
        for (passed, (at, name)) in self.locks.after(last.clone()).enumerate() {
            if passed >= PORTION_ENTRIES || locks.len() >= page.limit {
                let cursor = last.map(|(at, name)| LocksCursor { part: 0, at, name }.write());
                return Ok(Reply::Locks(LocksPage { locks, cursor }));
            }
            last = Some((*at, name.clone()));
            // Some may have run out and not been freed yet.
            let held = self.locks.get(name).filter(|_| *at > now.steady_ms);
            if let Some(held) = held.filter(|_| name.starts_with(&page.prefix)) {
                locks.push(HeldLockView {
                    name: name.clone(),
                    owner: held.owner.clone(),
                    fence: held.fence,
                    depth: held.depth,
                    expires_at: now.to_wall(Clock::Steady, *at),
                });
            }
        }
        Ok(Reply::Locks(LocksPage { locks, cursor: None }))
    }
}
