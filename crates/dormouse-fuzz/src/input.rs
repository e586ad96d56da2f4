//! An input, and the pieces in which it arrives.

/// Bytes, and where they are cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Input {
    /// All of it.
    pub bytes: Vec<u8>,
    /// Ascending, each within the bytes.
    pub(crate) cuts: Vec<usize>,
}

impl Input {
    /// In one piece.
    pub fn whole(bytes: &[u8]) -> Input {
        Input { bytes: bytes.to_vec(), cuts: Vec::new() }
    }

    /// In as many pieces as possible.
    pub fn byte_by_byte(bytes: &[u8]) -> Input {
        Input { bytes: bytes.to_vec(), cuts: (1..bytes.len()).collect() }
    }

    /// The pieces in order; of no bytes, one.
    pub fn pieces(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.cuts.iter().copied());
        let ends = self.cuts.iter().copied().chain([self.bytes.len()]);
        starts.zip(ends).map(|(start, end)| &self.bytes[start..end])
    }

    /// The input as text; what is not UTF-8 is replaced.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_the_whole() {
        let check = |input: Input, expected: &[&[u8]]| {
            assert_eq!(input.pieces().collect::<Vec<_>>(), expected);
        };
        check(Input::whole(b"abc"), &[b"abc"]);
        check(Input::byte_by_byte(b"abc"), &[b"a", b"b", b"c"]);
        check(Input::byte_by_byte(b""), &[b""]);
        check(Input { cuts: vec![0, 2, 2], ..Input::whole(b"abc") }, &[b"", b"ab", b"", b"c"]);
    }
}
