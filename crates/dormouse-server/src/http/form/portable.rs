//! JSON that every consumer can read: a job's body is handed out as it was put, in one document
//! with other jobs, and a strict reader would fail on all of them.

use crate::limits::JSON_DEPTH_MAX;

/// The digits from which on a number may be too large without an exponent.
const DIGITS: usize = 309;

/// Whether most readers can parse this body, which is JSON: it is not nested deeply, escapes name
/// whole characters, and numbers are not beyond those of 64 bits.
pub(super) fn check(json: &str) -> Result<(), String> {
    if is_plain(json.as_bytes()) { Ok(()) } else { scan(json) }
}

/// Whether there is nothing to check, as in most bodies. This costs almost nothing.
fn is_plain(json: &[u8]) -> bool {
    let brackets = json.iter().filter(|byte| matches!(byte, b'[' | b'{')).count();
    let has_exponent = |pair: &[u8]| pair[0].is_ascii_digit() && pair[1] | 0x20 == b'e';
    // Long runs of digits have one at such a place.
    let mut samples = json.iter().skip(DIGITS / 2).step_by(DIGITS / 2);
    let may_be_wrong = brackets > JSON_DEPTH_MAX
        || json.contains(&b'\\')
        || json.windows(2).any(has_exponent)
        || json.len() >= DIGITS && samples.any(u8::is_ascii_digit);
    !may_be_wrong
}

fn scan(json: &str) -> Result<(), String> {
    let mut depth = 0_usize;
    let mut rest = json;
    while let Some(first) = rest.bytes().next() {
        match first {
            b'"' => {
                let length = string_bytes(rest);
                let (string, after) = rest.split_at(length);
                check_escapes(string)?;
                rest = after;
                continue;
            }
            b'-' | b'0'..=b'9' => {
                let is_part = |c: char| matches!(c, '0'..='9' | '-' | '+' | '.' | 'e' | 'E');
                let (number, after) =
                    rest.split_at(rest.find(|c| !is_part(c)).unwrap_or(rest.len()));
                check_number(number)?;
                rest = after;
                continue;
            }
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > JSON_DEPTH_MAX {
            return Err(format!(
                "body is nested deeper than {JSON_DEPTH_MAX}; send it as text, or flatter"
            ));
        }
        // Outside of strings JSON is ASCII.
        rest = rest.get(1..).unwrap_or_default();
    }
    Ok(())
}

/// The length of the string that begins here, with its quotes.
fn string_bytes(json: &str) -> usize {
    let mut escaped = false;
    let end = json.bytes().skip(1).position(|byte| {
        let ends = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        ends
    });
    end.map_or(json.len(), |end| end + 2)
}

/// Characters beyond the first 65,536 are two escapes, which make sense only together.
fn check_escapes(string: &str) -> Result<(), String> {
    let mut parts = string.split('\\').skip(1);
    let mut is_high = false;
    while let Some(part) = parts.next() {
        if part.is_empty() {
            // An escaped backslash: what follows is text.
            parts.next();
            if is_high {
                break;
            }
            continue;
        }
        let code = part.strip_prefix('u').and_then(|part| part.get(..4));
        let code = code.and_then(|digits| u16::from_str_radix(digits, 16).ok()).unwrap_or(0);
        if matches!(code, 0xdc00..=0xdfff) != is_high {
            return Err(half(string));
        }
        let is_alone = part.len() == 5;
        is_high = matches!(code, 0xd800..=0xdbff);
        if is_high && !is_alone {
            return Err(half(string));
        }
    }
    if is_high { Err(half(string)) } else { Ok(()) }
}

fn half(string: &str) -> String {
    let shown: String = string.chars().take(40).collect();
    format!(
        "body has half of a character, as \\ud800, in {shown}; send both halves, or the bytes as \
         base64"
    )
}

fn check_number(number: &str) -> Result<(), String> {
    match number.parse::<f64>() {
        Ok(value) if value.is_infinite() => {
            let shown: String = number.chars().take(40).collect();
            Err(format!("body has the number {shown}, beyond 1.8e308; send it as a string"))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(json: &str, expected: &str) {
        serde_json::from_str::<&serde_json::value::RawValue>(json).unwrap();
        for json in [json.to_owned(), format!("[1, \"x\\n\\\\\", {json}, {{\"k\": {json}}}]")] {
            match super::check(&json) {
                Ok(()) => assert_eq!(expected, "", "{json}"),
                Err(text) => {
                    assert!(!expected.is_empty() && text.contains(expected), "{json}: {text}");
                }
            }
        }
    }

    #[test]
    fn what_a_strict_reader_refuses_is_refused() {
        for good in [
            "null",
            "\"\"",
            r#""\\""#,
            r#""\\ud800""#,
            r#""\\\\udc00 \" \u00e9""#,
            r#""\ud83d\ude00 \uD83D\uDE00""#,
            r#""\ud83d\ude00\n""#,
            "1e308",
            "-1.7976931348623157e308",
            "1e-400",
            "\"1e400\"",
            "{\"1e400\": \"]]\"}",
        ] {
            check(good, "");
        }
        check(&"9".repeat(308), "");
        check(&format!("\"{}\"", "9".repeat(1_000)), "");
        for half in [
            r#""\ud800""#,
            r#""\udc00""#,
            r#""\ud800\ud800""#,
            r#""\ud800x\udc00""#,
            r#""\ud800\n""#,
            r#""\ud800\\udc00""#,
            r#""a\\\ud800""#,
            r#"{"\udfff": 1}"#,
        ] {
            check(half, "half of a character");
        }
        for number in ["1e309", "-1e309", "1E400", "12e999"] {
            check(number, "beyond 1.8e308");
        }
        check(&"9".repeat(310), "beyond 1.8e308");
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert_eq!(super::check(&nested(JSON_DEPTH_MAX)), Ok(()));
        assert!(super::check(&nested(JSON_DEPTH_MAX + 1)).is_err());
        assert_eq!(super::check(&format!("\"\\\"{}\"", "[".repeat(1_000))), Ok(()));
        assert_eq!(super::check(&"[1],".repeat(1_000)), Ok(()));
    }
}
