//! Divides a limit among those who use it, by the rule of core's `share.rs`.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dormouse_core::error::{Code, Error};
use dormouse_core::share;

/// Why something is not given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Short {
    /// All together would hold more than the limit.
    All,
    /// This one would hold more than its share, and less than half is free for others.
    Share,
}

/// Who holds how much of a limit.
#[derive(Debug)]
pub(crate) struct Shares<K> {
    max: usize,
    used: usize,
    /// Only those who hold something, so the limit bounds the table, too.
    held: HashMap<K, usize>,
}

impl<K: Clone + Eq + Hash> Shares<K> {
    pub(crate) fn new(max: usize) -> Shares<K> {
        Shares { max, used: 0, held: HashMap::new() }
    }

    /// What everybody may hold.
    pub(crate) fn share(&self) -> usize {
        usize::try_from(share::quarter(self.max as u64)).unwrap_or(self.max)
    }

    /// How much it may take now.
    pub(crate) fn left(&self, who: &K) -> usize {
        let of_share = self.share().saturating_sub(self.held(who));
        let of_half = self.max.div_ceil(2).saturating_sub(self.used);
        self.max.saturating_sub(self.used).min(of_share.max(of_half))
    }

    /// Takes an amount; an error takes nothing.
    pub(crate) fn take(&mut self, who: &K, amount: usize) -> Result<(), Short> {
        let used = self.used.saturating_add(amount);
        let held = self.held(who).saturating_add(amount);
        if used > self.max {
            return Err(Short::All);
        }
        if share::exceeds(held as u64, used as u64, self.max as u64) {
            return Err(Short::Share);
        }
        if amount > 0 {
            self.used = used;
            self.held.insert(who.clone(), held);
        }
        Ok(())
    }

    /// Gives an amount back that was taken.
    pub(crate) fn give(&mut self, who: &K, amount: usize) {
        let Some(held) = self.held.get_mut(who) else { return };
        let amount = amount.min(*held);
        *held -= amount;
        self.used -= amount;
        if *held == 0 {
            self.held.remove(who);
        }
    }

    fn held(&self, who: &K) -> usize {
        self.held.get(who).copied().unwrap_or(0)
    }
}

/// A limit that is shared. Clones are the same limit.
pub(crate) struct SharedLimit<K> {
    shares: Arc<Mutex<Shares<K>>>,
    what: &'static str,
}

/// A part of a limit, held until it is dropped.
pub(crate) struct Portion<K: Clone + Eq + Hash> {
    limit: SharedLimit<K>,
    who: K,
    amount: usize,
}

impl<K> Clone for SharedLimit<K> {
    fn clone(&self) -> SharedLimit<K> {
        SharedLimit { shares: Arc::clone(&self.shares), what: self.what }
    }
}

impl<K: Clone + Eq + Hash> SharedLimit<K> {
    /// `what` is limited, as an error text calls it.
    pub(crate) fn new(max: usize, what: &'static str) -> SharedLimit<K> {
        SharedLimit { shares: Arc::new(Mutex::new(Shares::new(max))), what }
    }

    /// Takes an amount; `busy` if the limit or the share is used up.
    pub(crate) fn take(&self, who: K, amount: usize) -> Result<Portion<K>, Error> {
        let mut portion = self.hold(who);
        portion.grow(amount)?;
        Ok(portion)
    }

    /// Holds nothing yet; see `Portion::grow`.
    pub(crate) fn hold(&self, who: K) -> Portion<K> {
        Portion { limit: self.clone(), who, amount: 0 }
    }

    /// Whether it has less than everybody may hold.
    pub(crate) fn is_within_share(&self, who: &K) -> bool {
        let shares = self.lock();
        shares.held(who) < shares.share()
    }

    /// What all hold together.
    pub(crate) fn used(&self) -> usize {
        self.lock().used
    }

    fn lock(&self) -> MutexGuard<'_, Shares<K>> {
        // Nothing panics while it is held.
        self.shares.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Clone + Eq + Hash> Portion<K> {
    /// Takes more; `busy`, and nothing is taken, if the limit or the share is used up.
    pub(crate) fn grow(&mut self, amount: usize) -> Result<(), Error> {
        let mut shares = self.limit.lock();
        let taken = shares.take(&self.who, amount);
        let (max, share, what) = (shares.max, shares.share(), self.limit.what);
        drop(shares);
        let text = match taken {
            Ok(()) => {
                self.amount += amount;
                return Ok(());
            }
            Err(Short::All) => format!("all clients together have {max} {what}; try again"),
            Err(Short::Share) => format!(
                "this token or address has its share, {share} {what}, and what is left is for \
                 others; end some, or try again"
            ),
        };
        Err(Error::new(Code::Busy, text))
    }

    /// Takes more or gives a part back, so that this is held; `busy` as in `grow`.
    pub(crate) fn resize(&mut self, amount: usize) -> Result<(), Error> {
        if amount >= self.amount {
            return self.grow(amount - self.amount);
        }
        self.limit.lock().give(&self.who, self.amount - amount);
        self.amount = amount;
        Ok(())
    }
}

impl<K: Clone + Eq + Hash> Drop for Portion<K> {
    fn drop(&mut self) {
        self.limit.lock().give(&self.who, self.amount);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes, or gives back what is negative; then all must hold `used`.
    fn check(max: usize, steps: &[(char, i32, Result<(), Short>)], used: usize) {
        let mut shares = Shares::new(max);
        for (at, &(who, amount, expected)) in steps.iter().enumerate() {
            let size = amount.unsigned_abs() as usize;
            let result = if amount < 0 {
                shares.give(&who, size);
                Ok(())
            } else {
                shares.take(&who, size)
            };
            assert_eq!(result, expected, "step {at} of {steps:?}");
        }
        assert_eq!(shares.used, used, "{steps:?}");
        assert_eq!(shares.held.values().sum::<usize>(), used);
        assert!(shares.held.values().all(|&held| held > 0), "{:?}", shares.held);
    }

    #[test]
    fn one_takes_half_and_others_find_their_quarter() {
        let (all, share) = (Err(Short::All), Err(Short::Share));
        check(100, &[('a', 50, Ok(())), ('a', 1, share), ('b', 25, Ok(()))], 75);
        check(
            100,
            &[('a', 50, Ok(())), ('b', 25, Ok(())), ('b', 1, share), ('c', 25, Ok(()))],
            100,
        );
        check(100, &[('a', 50, Ok(())), ('b', 25, Ok(())), ('c', 25, Ok(())), ('d', 1, all)], 100);
        // Within the first half nobody is held up, at once or step by step.
        check(100, &[('a', 26, Ok(())), ('b', 24, Ok(())), ('b', 1, Ok(())), ('b', 1, share)], 51);
        check(100, &[('a', 51, share), ('a', 101, all), ('a', 25, Ok(())), ('a', 25, Ok(()))], 50);
        // Nothing is always given.
        check(100, &[('a', 50, Ok(())), ('a', 0, Ok(())), ('b', 0, Ok(()))], 50);
    }

    #[test]
    fn what_is_given_back_can_be_taken_again() {
        let share = Err(Short::Share);
        check(8, &[('a', 4, Ok(())), ('a', -1, Ok(())), ('a', 1, Ok(())), ('a', 1, share)], 4);
        check(8, &[('a', 4, Ok(())), ('b', 2, Ok(())), ('a', -4, Ok(())), ('b', 2, Ok(()))], 4);
        // Nobody gives what it does not hold.
        check(8, &[('a', 2, Ok(())), ('b', -2, Ok(())), ('a', -9, Ok(()))], 0);
    }

    #[test]
    fn a_small_limit_still_serves_somebody() {
        check(1, &[('a', 1, Ok(())), ('b', 1, Err(Short::All))], 1);
        check(2, &[('a', 1, Ok(())), ('a', 1, Err(Short::Share)), ('b', 1, Ok(()))], 2);
        check(0, &[('a', 1, Err(Short::All))], 0);
    }

    #[test]
    fn a_dropped_portion_is_given_back() {
        let limit = SharedLimit::new(4, "streams");
        let first = limit.take("a", 2).ok().unwrap();
        let refused = limit.take("a", 1).err().unwrap();
        assert_eq!(refused.code, Code::Busy);
        assert!(refused.text.contains("its share, 1 streams"), "{}", refused.text);
        let other = limit.take("b", 1).ok().unwrap();
        assert_eq!(limit.used(), 3);
        drop((first, other));
        assert_eq!(limit.used(), 0);
        let mut portion = limit.hold("a");
        for (amount, is_given) in [(2, true), (3, false), (1, true), (2, true), (0, true)] {
            let before = portion.amount;
            assert_eq!(portion.resize(amount).is_ok(), is_given);
            assert_eq!(portion.amount, if is_given { amount } else { before });
            assert_eq!(limit.used(), portion.amount);
        }
    }
}
