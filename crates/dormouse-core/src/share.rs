//! The one rule by which a limit of all is divided, so that nobody takes what others need.
//!
//! Everybody may hold a quarter. More than that is given only in the first half of the limit: so
//! whoever is alone is not held up, and whatever it takes, half remains for others, each of whom
//! finds a quarter until all is used.

/// What everybody may hold of a limit.
pub fn quarter(max: u64) -> u64 {
    (max / 4).max(1)
}

/// Whether one would have more than its share. `held` is what it would hold, `used` what all
/// together would.
pub fn exceeds(held: u64, used: u64, max: u64) -> bool {
    held > quarter(max) && used > max.div_ceil(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quarter_is_always_given_and_more_in_the_first_half() {
        let check = |held, used, max, expected| {
            assert_eq!(exceeds(held, used, max), expected, "{held} of {used} of {max}");
        };
        check(25, 100, 100, false);
        check(26, 51, 100, true);
        check(26, 50, 100, false);
        check(50, 50, 100, false);
        check(51, 51, 100, true);
        // A small limit still serves somebody.
        check(1, 1, 1, false);
        check(1, 2, 2, false);
        check(2, 2, 2, true);
    }
}
