//! New inputs from known ones.

use crate::input::Input;
use crate::rng::Rng;

/// An input is cut off here: what lies far behind its beginning seldom tells more.
const BYTES_MAX: usize = 4 << 10;
/// Inputs that are changed further.
const POOL_MAX: usize = 256;
/// One input in so many is kept to be changed further.
const KEPT_PART: usize = 16;
/// Changes of one input, at most.
const CHANGES_MAX: usize = 6;
/// Numbers that are at the edge of something.
const NUMBERS: [&str; 14] = [
    "0",
    "1",
    "-1",
    "9",
    "255",
    "65535",
    "65536",
    "2147483648",
    "4294967295",
    "4294967296",
    "9223372036854775807",
    "18446744073709551615",
    "18446744073709551616",
    "99999999999999999999999999",
];

/// Makes inputs.
pub(crate) struct Mutator<'t> {
    seeds: &'t [&'t [u8]],
    words: &'t [&'t [u8]],
    pool: Vec<Vec<u8>>,
    rng: Rng,
}

impl<'t> Mutator<'t> {
    pub(crate) fn new(seeds: &'t [&'t [u8]], words: &'t [&'t [u8]], rng: Rng) -> Mutator<'t> {
        Mutator { seeds, words, pool: Vec::new(), rng }
    }

    /// The next input. In one of eight every byte arrives alone.
    pub(crate) fn next(&mut self) -> Input {
        let mut bytes = self.known();
        for _ in 0..=self.rng.below(CHANGES_MAX) {
            self.change(&mut bytes);
        }
        bytes.truncate(BYTES_MAX);
        if self.rng.below(KEPT_PART) == 0 {
            self.keep(bytes.clone());
        }
        match self.rng.below(8) {
            0 => Input::byte_by_byte(&bytes),
            1..4 => Input::whole(&bytes),
            pieces => {
                let cut = |rng: &mut Rng| rng.below(bytes.len() + 1);
                let mut cuts: Vec<usize> = (4..=pieces).map(|_| cut(&mut self.rng)).collect();
                cuts.sort_unstable();
                Input { bytes, cuts }
            }
        }
    }

    /// A seed, or what became of one.
    fn known(&mut self) -> Vec<u8> {
        let seed = self.rng.pick(self.seeds).map(|seed| seed.to_vec()).unwrap_or_default();
        match self.rng.below(3) {
            0 => self.rng.pick(&self.pool).cloned().unwrap_or(seed),
            _ => seed,
        }
    }

    fn keep(&mut self, bytes: Vec<u8>) {
        if self.pool.len() < POOL_MAX {
            return self.pool.push(bytes);
        }
        let at = self.rng.below(POOL_MAX);
        self.pool[at] = bytes;
    }

    fn change(&mut self, bytes: &mut Vec<u8>) {
        let length = bytes.len();
        let at = self.rng.below(length + 1);
        let end = (at + self.rng.below(1 + length.min(32))).min(length);
        match self.rng.below(10) {
            0 => bytes.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= 1 << (length % 8)),
            1 => {
                let byte = self.rng.next() as u8;
                bytes.insert(at, byte);
            }
            2 => drop(bytes.drain(at..end)),
            3 => {
                let again = bytes[at..end].to_vec();
                bytes.splice(at..at, again);
            }
            4 => bytes.truncate(at),
            5 => {
                let other = self.known();
                let from = self.rng.below(other.len() + 1);
                bytes.truncate(at);
                bytes.extend_from_slice(&other[from..]);
            }
            6 | 7 => {
                let word = self.rng.pick(self.words).copied().unwrap_or_default();
                let replaced = if self.rng.below(2) == 0 { at..at } else { at..end };
                bytes.splice(replaced, word.iter().copied());
            }
            8 => self.change_number(bytes),
            _ => {
                let byte = bytes.get(at).copied().unwrap_or(b'x');
                let count = [2, 16, 200, 1_000][self.rng.below(4)];
                bytes.splice(at..at, std::iter::repeat_n(byte, count));
            }
        }
    }

    /// Puts another number where one stands: lengths and counts are believed the most.
    fn change_number(&mut self, bytes: &mut Vec<u8>) {
        let is_start = |at: &usize| {
            bytes[*at].is_ascii_digit() && (*at == 0 || !bytes[*at - 1].is_ascii_digit())
        };
        let starts: Vec<usize> = (0..bytes.len()).filter(is_start).collect();
        let Some(&start) = self.rng.pick(&starts) else { return };
        let digits = bytes[start..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let number = std::str::from_utf8(&bytes[start..start + digits]).unwrap_or_default();
        let near = number.parse::<u64>().unwrap_or(0).wrapping_add(self.rng.next() % 5);
        let other = match self.rng.below(2) {
            0 => near.wrapping_sub(2).to_string(),
            _ => NUMBERS[self.rng.below(NUMBERS.len())].to_owned(),
        };
        bytes.splice(start..start + digits, other.into_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_repeats_its_inputs_and_they_differ() {
        let inputs = |seed| -> Vec<Input> {
            let seeds: [&[u8]; 2] = [b"put 0 10 60 5", b""];
            let mut mutator = Mutator::new(&seeds, &[b"\r\n"], Rng::new(seed));
            (0..2_000).map(|_| mutator.next()).collect()
        };
        assert_eq!(inputs(7), inputs(7));
        assert_ne!(inputs(7), inputs(8));
        let made = inputs(7);
        let different: std::collections::HashSet<&[u8]> =
            made.iter().map(|input| input.bytes.as_slice()).collect();
        assert!(different.len() > 1_000, "{}", different.len());
        assert!(made.iter().all(|input| input.bytes.len() <= BYTES_MAX));
        assert!(made.iter().any(|input| input.cuts.len() > 10));
    }
}
