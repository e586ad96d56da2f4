//! Sorts in steps that are short, so that a thread in the background can rest between them: one
//! pass deals the items out by a number that they sort by first, then each share is sorted by
//! itself. That is also faster than to sort all at once, because a share fits the cache.

use crate::pace;

/// Fewer items are sorted at once.
const SHARED_MIN: usize = 1 << 11;
/// Shares, a power of two.
const SHARES: usize = 256;
/// Items between two moments to rest in a pass over all.
const PASS_ITEMS: usize = 1 << 13;

/// Sorts by a key. An item with a smaller digit must have a smaller key. Digits that are spread
/// evenly, as ids, hashes and due times are, make even shares; with others the steps are longer.
pub(crate) fn sort<R, K: Ord>(
    items: &mut [R],
    digit: impl Fn(&R) -> u64,
    key: impl Fn(&R) -> K + Copy,
) {
    if items.len() < SHARED_MIN || items.is_sorted_by_key(key) {
        items.sort_unstable_by_key(key);
        return;
    }
    let (min, max) = items
        .iter()
        .map(&digit)
        .fold((u64::MAX, 0), |(min, max), digit| (min.min(digit), max.max(digit)));
    let bits = u64::BITS - (max - min).leading_zeros();
    let shift = bits.saturating_sub(SHARES.trailing_zeros());
    let share_of = |item: &R| ((digit(item) - min) >> shift) as usize;
    let mut ends = [0; SHARES];
    for item in items.iter() {
        ends[share_of(item)] += 1;
    }
    let mut next = [0; SHARES];
    let mut start = 0;
    for (next, end) in next.iter_mut().zip(&mut ends) {
        *next = start;
        start += *end;
        *end = start;
    }
    deal(items, &mut next, &ends, &share_of);
    let mut start = 0;
    for end in ends {
        items[start..end].sort_unstable_by_key(key);
        start = end;
        pace::rest();
    }
}

/// Swaps every item into its share.
fn deal<R>(
    items: &mut [R],
    next: &mut [usize; SHARES],
    ends: &[usize; SHARES],
    share_of: &impl Fn(&R) -> usize,
) {
    let mut until_rest = PASS_ITEMS;
    for share in 0..SHARES {
        while next[share] < ends[share] {
            let right = share_of(&items[next[share]]);
            if right != share {
                items.swap(next[share], next[right]);
            }
            next[right] += 1;
            until_rest -= 1;
            if until_rest == 0 {
                pace::rest();
                until_rest = PASS_ITEMS;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_sorted_however_they_are_spread() {
        for seed in 1..60_u64 {
            let mut state = seed;
            let mut random = |below: u64| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(99);
                ((u128::from(state.rotate_left(32)) * u128::from(below)) >> 64) as u64
            };
            let below = [1, 2, 300, 1 << 20, 1 << 63, u64::MAX][random(6) as usize];
            let base = if random(2) == 0 { 0 } else { u64::MAX - below };
            let len = random(4 * SHARED_MIN as u64);
            let mut items: Vec<(u64, u64)> =
                (0..len).map(|_| (base + random(below), random(9))).collect();
            let mut expected = items.clone();
            expected.sort_unstable();
            sort(&mut items, |item| item.0, |item| *item);
            assert!(items == expected, "seed {seed}");
        }
    }
}
