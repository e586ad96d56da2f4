//! Bytes of strangers as text that can be shown in a terminal, a log or a page.

/// At most so many bytes of text: letters, digits and the printable ASCII characters; everything
/// else, such as colours and marks that turn the direction of writing, becomes one blank.
pub(super) fn printable(bytes: &[u8], bytes_max: usize) -> String {
    let mut text = String::new();
    // A character takes at most four bytes; what is cut in the middle is not shown.
    let read = &bytes[..bytes.len().min(bytes_max.saturating_mul(4))];
    for c in String::from_utf8_lossy(read).chars() {
        let is_shown = c.is_ascii_graphic() || c.is_alphanumeric();
        let c = if is_shown { c } else { ' ' };
        if c == ' ' && (text.is_empty() || text.ends_with(' ')) {
            continue;
        }
        if text.len() + c.len_utf8() > bytes_max {
            break;
        }
        text.push(c);
    }
    text.truncate(text.trim_end().len());
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_harmless_is_left() {
        let check = |bytes: &[u8], expected: &str| assert_eq!(printable(bytes, 12), expected);
        check(b"", "");
        check(b"plain", "plain");
        check(b"  a \r\n\t b  ", "a b");
        check(b"\x1b[2J\x07\0x", "[2J x");
        check("\u{202e}grün\u{200b}".as_bytes(), "grün");
        check(b"\xff\xfea\xff", "a");
        check(&[b'y'; 100], "yyyyyyyyyyyy");
        check("ééééééé".as_bytes(), "éééééé");
        check(&b"\n".repeat(1_000), "");
    }
}
