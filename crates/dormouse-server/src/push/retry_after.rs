//! The header `retry-after`: seconds, or a date.

use std::time::{Duration, UNIX_EPOCH};

use crate::limits::PUSH_RETRY_AFTER_MS_MAX;

/// How long the receiver wants to be left alone; `None` if it says nothing that can be used. A
/// receiver that writes ms for seconds must not park jobs for years.
pub(super) fn parse(value: &[u8], wall_ms: u64) -> Option<u64> {
    let text = std::str::from_utf8(value).ok()?.trim_matches([' ', '\t']);
    let ms = if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        // More digits than a number can have are more than the limit, too.
        text.parse::<u64>().unwrap_or(u64::MAX).saturating_mul(1_000)
    } else {
        let date = httpdate::parse_http_date(text).ok()?;
        let now = UNIX_EPOCH + Duration::from_millis(wall_ms);
        u64::try_from(date.duration_since(now).ok()?.as_millis()).ok()?
    };
    (ms > 0).then_some(ms.min(PUSH_RETRY_AFTER_MS_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_forms_are_read_and_garbage_is_none() {
        // Sun, 06 Nov 1994 08:49:37 GMT
        let now_ms = 784_111_777_000;
        for (text, expected) in [
            ("1", Some(1_000)),
            ("120", Some(120_000)),
            (" 120\t", Some(120_000)),
            ("00005", Some(5_000)),
            ("86400", Some(86_400_000)),
            ("86401", Some(86_400_000)),
            ("60000000", Some(86_400_000)),
            ("99999999999999999999999999", Some(86_400_000)),
            ("Sun, 06 Nov 1994 08:49:47 GMT", Some(10_000)),
            ("Sunday, 06-Nov-94 08:49:47 GMT", Some(10_000)),
            ("Sun Nov  6 08:49:47 1994", Some(10_000)),
            ("Mon, 06 Nov 1995 08:49:47 GMT", Some(86_400_000)),
            ("Sun, 06 Nov 1994 08:49:37 GMT", None),
            ("Sun, 06 Nov 1994 08:49:27 GMT", None),
            ("0", None),
            ("", None),
            (" ", None),
            ("-1", None),
            ("+5", None),
            ("1.5", None),
            ("5 s", None),
            ("1e3", None),
            ("soon", None),
            ("0x10", None),
            ("5, 6", None),
            ("Sun, 31 Feb 1994 08:49:47 GMT", None),
        ] {
            assert_eq!(parse(text.as_bytes(), now_ms), expected, "{text:?}");
        }
        assert_eq!(parse(b"\xff\xfe", now_ms), None);
    }
}
