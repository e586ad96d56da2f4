//! Numbers: parsed as the original parses them, written without allocating.

use bytes::BytesMut;

/// Takes a number off the line, and the spaces before it.
pub(super) fn take_u64(line: &mut &[u8]) -> Option<u64> {
    let blank = line.iter().take_while(|&&byte| byte == b' ').count();
    let (number, length) = digits(&line[blank..])?;
    *line = &line[blank + length..];
    Some(number)
}

/// As `take_u64`, of 32 bits.
pub(super) fn take_u32(line: &mut &[u8]) -> Option<u32> {
    let mut rest = *line;
    let number = u32::try_from(take_u64(&mut rest)?).ok()?;
    *line = rest;
    Some(number)
}

/// The rest of the line as a number.
pub(super) fn only_u64(mut line: &[u8]) -> Option<u64> {
    let number = take_u64(&mut line)?;
    line.is_empty().then_some(number)
}

/// The number of jobs to kick: white space and a sign may precede it, anything may follow it, and a
/// negative number means all.
pub(super) fn loose_u64(line: &[u8]) -> Option<u64> {
    let is_blank = |byte: &&u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c);
    let line = &line[line.iter().take_while(is_blank).count()..];
    match line {
        [b'-', rest @ ..] => digits(rest).map(|(number, _)| number.wrapping_neg()),
        [b'+', rest @ ..] => digits(rest).map(|(number, _)| number),
        _ => digits(line).map(|(number, _)| number),
    }
}

/// The number that the bytes begin with, and its length.
fn digits(bytes: &[u8]) -> Option<(u64, usize)> {
    let mut number = 0_u64;
    let mut length = 0;
    for byte in bytes {
        if !byte.is_ascii_digit() {
            break;
        }
        number = number.checked_mul(10)?.checked_add(u64::from(byte - b'0'))?;
        length += 1;
    }
    (length > 0).then_some((number, length))
}

/// Writes a number.
pub(super) fn write(number: u64, out: &mut BytesMut) {
    let mut text = [0; 20];
    let mut at = text.len();
    let mut rest = number;
    loop {
        at -= 1;
        // A digit always fits.
        text[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(&text[at..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_decimal_and_bounded() {
        for (text, number) in [
            (&b"1"[..], Some(1)),
            (b"  007", Some(7)),
            (b"18446744073709551615", Some(u64::MAX)),
            (b"18446744073709551616", None),
            (b"-1", None),
            (b"+1", None),
            (b"\t1", None),
            (b"1 ", None),
            (b"1a", None),
            (b"", None),
            (b" ", None),
        ] {
            assert_eq!(only_u64(text), number, "{text:?}");
        }
        let mut line = &b" 4294967295 4294967296"[..];
        assert_eq!(take_u32(&mut line), Some(u32::MAX));
        assert_eq!(take_u32(&mut line), None);
    }

    #[test]
    fn the_argument_of_kick_is_parsed_leniently() {
        for (text, number) in [
            (&b"1a"[..], Some(1)),
            (b" \t+3 x", Some(3)),
            (b"-1", Some(u64::MAX)),
            (b"0", Some(0)),
            (b"- 1", None),
            (b"a", None),
            (b"", None),
            (b"99999999999999999999999", None),
        ] {
            assert_eq!(loose_u64(text), number, "{text:?}");
        }
    }

    #[test]
    fn numbers_are_written() {
        for number in [0, 9, 10, 65_535, u64::MAX] {
            let mut out = BytesMut::new();
            write(number, &mut out);
            assert_eq!(out, number.to_string().as_bytes());
        }
    }
}
