//! Bodies: a number in digits, so that a job is known again, and noise.

use crate::Result;
use dormouse_check::generate::rng::Rng;

pub(in crate::peers) const BODY: usize = 100;
/// Digits at the beginning.
const DIGITS: usize = 16;

/// Letters, so that no protocol minds them; different each time.
pub(in crate::peers) fn body(rng: &mut Rng) -> Vec<u8> {
    let mut body = vec![b'0'; DIGITS];
    body.extend((DIGITS..BODY).map(|_| b'a' + (rng.below(26) as u8)));
    body
}

/// Writes the number over the digits of a body.
pub(in crate::peers) fn set_number(body: &mut [u8], number: u64) {
    set_digits(&mut body[..DIGITS], number);
}

/// Fills all of it with the last digits of a number.
pub(in crate::peers) fn set_digits(digits: &mut [u8], mut number: u64) {
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
    }
}

/// The number in a body that was returned.
pub(in crate::peers) fn number_in(body: &[u8]) -> Result<u64> {
    let digits = body.get(..DIGITS).filter(|_| body.len() == BODY);
    let digits = digits.filter(|digits| digits.iter().all(u8::is_ascii_digit));
    let number = |digits: &[u8]| {
        digits.iter().fold(0, |number, digit| number * 10 + u64::from(digit - b'0'))
    };
    digits
        .map(number)
        .ok_or_else(|| format!("a body that nobody put: {}", String::from_utf8_lossy(body)).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_comes_back() {
        let mut body = body(&mut Rng::new(1));
        assert_eq!(body.len(), BODY);
        for number in [0, 7, 1_234_567_890_123_456] {
            set_number(&mut body, number);
            assert_eq!(number_in(&body).expect("a number"), number);
        }
        assert!(number_in(&body[1..]).is_err());
        body[3] = b'x';
        assert!(number_in(&body).is_err());
    }
}
