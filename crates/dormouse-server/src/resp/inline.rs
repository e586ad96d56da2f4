//! A command that a person typed: words separated by blanks, quoted where they contain blanks.

use super::decode::ByteRange;

/// Whether this is the first line of an HTTP request, or a header of one: the bytes behind it may
/// be chosen by a web page.
pub(super) fn is_http(line: &[u8]) -> bool {
    let line = line.trim_ascii();
    let first = line.split(|byte| byte.is_ascii_whitespace()).next().unwrap_or_default();
    let last = line.rsplit(|byte| byte.is_ascii_whitespace()).next().unwrap_or_default();
    first.eq_ignore_ascii_case(b"post")
        || first.eq_ignore_ascii_case(b"host:")
        || (last.len() < line.len() && last.starts_with(b"HTTP/"))
}

/// Splits a line into words, which are appended to `words`. `None` if a quote is not closed, or is
/// closed within a word.
pub(super) fn split(line: &[u8], words: &mut Vec<u8>, ranges: &mut Vec<ByteRange>) -> Option<()> {
    let mut rest = line.trim_ascii_start();
    while !rest.is_empty() {
        let start = words.len() as u32;
        rest = word(rest, words)?.trim_ascii_start();
        ranges.push(ByteRange { start, end: words.len() as u32 });
    }
    Some(())
}

/// Reads one word; returns the rest of the line.
fn word<'a>(line: &'a [u8], words: &mut Vec<u8>) -> Option<&'a [u8]> {
    let mut rest = line;
    while let Some((&byte, behind)) = rest.split_first() {
        rest = match byte {
            b'"' | b'\'' => {
                let behind = quoted(byte, behind, words)?;
                let closes = behind.first().is_none_or(u8::is_ascii_whitespace);
                return closes.then_some(behind);
            }
            byte if byte.is_ascii_whitespace() => return Some(rest),
            byte => {
                words.push(byte);
                behind
            }
        };
    }
    Some(rest)
}

/// Reads up to the closing quote; returns the rest of the line.
fn quoted<'a>(quote: u8, line: &'a [u8], words: &mut Vec<u8>) -> Option<&'a [u8]> {
    let mut rest = line;
    loop {
        let (&byte, behind) = rest.split_first()?;
        rest = match byte {
            byte if byte == quote => return Some(behind),
            b'\\' if quote == b'"' => escaped(behind, words)?,
            b'\\' if behind.first() == Some(&b'\'') => {
                words.push(b'\'');
                behind.get(1..)?
            }
            byte => {
                words.push(byte);
                behind
            }
        };
    }
}

/// Reads the escape behind a backslash between double quotes.
fn escaped<'a>(line: &'a [u8], words: &mut Vec<u8>) -> Option<&'a [u8]> {
    let (&byte, behind) = line.split_first()?;
    if byte == b'x'
        && let Some(code) = behind.get(..2).and_then(|digits| std::str::from_utf8(digits).ok())
        && let Ok(code) = u8::from_str_radix(code, 16)
    {
        words.push(code);
        return behind.get(2..);
    }
    words.push(match byte {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'a' => 7,
        b'b' => 8,
        byte => byte,
    });
    Some(behind)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Option<Vec<String>> {
        let (mut words, mut ranges) = (Vec::new(), Vec::new());
        split(line.as_bytes(), &mut words, &mut ranges)?;
        let word = |place: &ByteRange| &words[place.start as usize..place.end as usize];
        Some(ranges.iter().map(|p| String::from_utf8_lossy(word(p)).into_owned()).collect())
    }

    #[test]
    fn words_are_split_as_by_a_shell() {
        let check = |line: &str, expected: &[&str]| {
            assert_eq!(words(line).unwrap(), expected, "{line}");
        };
        check("PING", &["PING"]);
        check("  put  a\tb \r", &["put", "a", "b"]);
        check(r#"put a "b c" 'd e' """#, &["put", "a", "b c", "d e", ""]);
        check(r#"put "a\"\n\x41\q" 'b\'\n'"#, &["put", "a\"\nAq", "b'\\n"]);
        check("", &[]);
        for line in [r#"put "a"#, "put 'a", r#"put "a"b"#, r#"put "a\"#] {
            assert_eq!(words(line), None, "{line}");
        }
    }

    #[test]
    fn http_is_distinguished_from_commands() {
        for line in
            ["GET / HTTP/1.1\r", "POST /v1/ack HTTP/1.1", "Host: a", "post", "PRI * HTTP/2.0"]
        {
            assert!(is_http(line.as_bytes()), "{line}");
        }
        for line in ["GET 12", "get topic key HTTP", "HTTP/1.1", "PUT a HTTPS"] {
            assert!(!is_http(line.as_bytes()), "{line}");
        }
    }
}
