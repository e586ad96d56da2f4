//! RESP as far as a load generator needs it: commands as bytes, replies walked over.

use crate::Result;

/// Adds one command.
pub(in crate::peers) fn push(out: &mut Vec<u8>, words: &[&[u8]]) {
    out.extend_from_slice(format!("*{}\r\n", words.len()).as_bytes());
    for word in words {
        out.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        out.extend_from_slice(word);
        out.extend_from_slice(b"\r\n");
    }
}

/// Walks over one whole reply and shows each leaf of it; the reply's length, or `None` while it is
/// not whole. An error reply of the server is an error.
pub(in crate::peers) fn walk(input: &[u8], mut leaf: impl FnMut(&[u8])) -> Result<Option<usize>> {
    let (mut at, mut left) = (0, 1_usize);
    while left > 0 {
        let Some(line_len) = input[at..].iter().position(|&byte| byte == b'\r') else {
            return Ok(None);
        };
        let line = &input[at..at + line_len];
        at += line_len + 2;
        if at > input.len() {
            return Ok(None);
        }
        left -= 1;
        match line.split_first() {
            Some((b'+' | b':' | b'_' | b',' | b'#', text)) => leaf(text),
            Some((b'$', text)) => {
                let Some(len) = length(text)? else {
                    leaf(b"");
                    continue;
                };
                if at + len + 2 > input.len() {
                    return Ok(None);
                }
                leaf(&input[at..at + len]);
                at += len + 2;
            }
            Some((b'*', text)) => left += length(text)?.unwrap_or(0),
            Some((b'%', text)) => left += 2 * length(text)?.unwrap_or(0),
            _ => return Err(format!("the server says {}", String::from_utf8_lossy(line)).into()),
        }
    }
    Ok(Some(at))
}

/// The length of the first list in a list; `None` if the input begins with something else, or is
/// not whole so far.
pub(in crate::peers) fn inner_len(input: &[u8]) -> Result<Option<usize>> {
    let mut lines = input.split(|&byte| byte == b'\n');
    let (outer, inner) = (lines.next().unwrap_or(b""), lines.next().unwrap_or(b""));
    if !outer.starts_with(b"*") {
        return Ok(None);
    }
    let inner = inner.strip_prefix(b"*").and_then(|line| line.strip_suffix(b"\r"));
    inner.map_or(Ok(None), length)
}

/// `None` is what is called -1: nothing there.
fn length(text: &[u8]) -> Result<Option<usize>> {
    if text == b"-1" {
        return Ok(None);
    }
    let number = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
    number.map(Some).ok_or_else(|| "a length that is no number".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaves(input: &[u8]) -> (Option<usize>, Vec<String>) {
        let mut leaves = Vec::new();
        let add = |leaf: &[u8]| leaves.push(String::from_utf8_lossy(leaf).into_owned());
        (walk(input, add).expect("a reply"), leaves)
    }

    #[test]
    fn replies_are_walked_over_when_they_are_whole() {
        let reply = b"*2\r\n*3\r\n$1\r\na\r\n:7\r\n$-1\r\n+OK\r\nrest";
        let shown = ["a", "7", "", "OK"].map(str::to_owned).to_vec();
        assert_eq!(leaves(reply), (Some(reply.len() - 4), shown));
        for end in 0..reply.len() - 4 {
            assert_eq!(leaves(&reply[..end]).0, None, "{end}");
        }
    }

    #[test]
    fn the_first_list_in_a_list_is_measured() {
        let check = |input: &[u8], len| assert_eq!(inner_len(input).expect("a length"), len);
        check(b"*2\r\n*7\r\n$1\r\na\r\n", Some(7));
        check(b"*2\r\n*12\r\n", Some(12));
        // The rest of the number may be under way.
        check(b"*2\r\n*1", None);
        check(b"*2\r\n:7\r\n", None);
        check(b"*0\r\n", None);
        check(b"$1\r\n*\r\n", None);
    }

    #[test]
    fn an_error_is_told() {
        let told = walk(b"*1\r\n-BUSY later\r\n", |_| ()).expect_err("an error").to_string();
        assert_eq!(told, "the server says -BUSY later");
    }

    #[test]
    fn commands_are_arrays_of_words() {
        let mut out = Vec::new();
        push(&mut out, &[b"PUT", b"t"]);
        assert_eq!(out, b"*2\r\n$3\r\nPUT\r\n$1\r\nt\r\n");
    }
}
