//! When a certificate expires: the one date of X.509 that a server needs of its own certificate.
//!
//! ```text
//! Certificate = SEQUENCE { tbs SEQUENCE {
//!     [0] version?, serial INTEGER, algorithm SEQUENCE, issuer SEQUENCE,
//!     validity SEQUENCE { not_before Time, not_after Time }, ... }, ... }
//! Time = UTCTime "yyMMddHHmmssZ" | GeneralizedTime "yyyyMMddHHmmssZ"
//! ```

use jiff::civil::DateTime;
use jiff::tz::TimeZone;

const SEQUENCE: u8 = 0x30;
const VERSION: u8 = 0xa0;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

/// The last second of a certificate in DER, since 1970; `None` if it has no end, or is none.
pub(super) fn not_after_s(der: &[u8]) -> Option<i64> {
    let (_, certificate, _) = element(der)?;
    let (_, mut rest, _) = element(certificate)?;
    let (tag, _, behind) = element(rest)?;
    if tag == VERSION {
        rest = behind;
    }
    // Serial number, algorithm, issuer.
    for _ in 0..3 {
        rest = element(rest)?.2;
    }
    let (tag, validity, _) = element(rest)?;
    let (_, _, behind) = element(validity).filter(|_| tag == SEQUENCE)?;
    let (tag, text, _) = element(behind)?;
    time_s(tag, std::str::from_utf8(text).ok()?)
}

/// Tag, contents, and what follows.
fn element(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = bytes.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (len, rest) = match usize::from(first) {
        len @ 0..=0x7f => (len, rest),
        // So many bytes have the length; no certificate needs more than three.
        digits @ 0x81..=0x83 => {
            let (digits, rest) = rest.split_at_checked(digits - 0x80)?;
            (digits.iter().fold(0, |len, &digit| len << 8 | usize::from(digit)), rest)
        }
        _ => return None,
    };
    let (contents, rest) = rest.split_at_checked(len)?;
    Some((tag, contents, rest))
}

fn time_s(tag: u8, text: &str) -> Option<i64> {
    let text = match tag {
        // Two digits of the year: 1950 to 2049.
        UTC_TIME if text.get(..2)? >= "50" => format!("19{text}"),
        UTC_TIME => format!("20{text}"),
        GENERALIZED_TIME => text.to_owned(),
        _ => return None,
    };
    let date = DateTime::strptime("%Y%m%d%H%M%SZ", text).ok()?;
    date.to_zoned(TimeZone::UTC).ok().map(|zoned| zoned.timestamp().as_second())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An element with a short or a long length.
    fn der(tag: u8, contents: &[u8]) -> Vec<u8> {
        let len = contents.len();
        let head = if len < 0x80 {
            vec![tag, len as u8]
        } else {
            vec![tag, 0x82, (len >> 8) as u8, len as u8]
        };
        [head, contents.to_vec()].concat()
    }

    fn certificate(version: &[u8], not_after: Vec<u8>) -> Vec<u8> {
        let before = der(UTC_TIME, b"200101000000Z");
        let validity = der(SEQUENCE, &[before, not_after].concat());
        let issuer = der(SEQUENCE, &[7; 300]);
        let parts = [version.to_vec(), der(2, &[1]), der(SEQUENCE, &[]), issuer, validity];
        der(SEQUENCE, &der(SEQUENCE, &parts.concat()))
    }

    #[test]
    fn the_last_second_is_found() {
        let check = |not_after: Vec<u8>, expected: Option<i64>| {
            let version = der(VERSION, &der(2, &[2]));
            assert_eq!(not_after_s(&certificate(&version, not_after.clone())), expected);
            assert_eq!(not_after_s(&certificate(&[], not_after)), expected);
        };
        check(der(UTC_TIME, b"270101000000Z"), Some(1_798_761_600));
        check(der(UTC_TIME, b"491231235959Z"), Some(2_524_607_999));
        check(der(UTC_TIME, b"500101000000Z"), Some(-631_152_000));
        check(der(GENERALIZED_TIME, b"20500101000000Z"), Some(2_524_608_000));
        // X.509's way to say that there is no end.
        check(der(GENERALIZED_TIME, b"99991231235959Z"), None);
        check(der(UTC_TIME, b"279901000000Z"), None);
        check(der(12, b"270101000000Z"), None);
    }

    #[test]
    fn damage_is_no_date_and_no_panic() {
        let whole = certificate(&[], der(UTC_TIME, b"270101000000Z"));
        for end in 0..whole.len() {
            assert_eq!(not_after_s(&whole[..end]), None, "{end}");
        }
        for index in 0..whole.len() {
            for byte in [0, 0x7f, 0x80, 0x84, 0xff] {
                let mut damaged = whole.clone();
                damaged[index] = byte;
                let _ = not_after_s(&damaged);
            }
        }
    }
}
