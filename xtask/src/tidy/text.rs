//! Small searches in text.

/// A character of an identifier.
pub(super) fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Where `needle` occurs as a word of its own: with no letter, digit or underscore at its sides.
/// A side of the needle that is not such a character itself needs no boundary.
pub(super) fn find_word(text: &str, needle: &str) -> Vec<usize> {
    let needs = |c: Option<char>| c.is_some_and(is_word);
    let first = needs(needle.chars().next());
    let last = needs(needle.chars().next_back());
    let stands_alone = |&(at, _): &(usize, &str)| {
        let before = text[..at].chars().next_back();
        let after = text[at + needle.len()..].chars().next();
        !(first && needs(before) || last && needs(after))
    };
    text.match_indices(needle).filter(stands_alone).map(|(at, _)| at).collect()
}

/// The line, counted from 1, of a byte position.
pub(super) fn line_at(text: &str, at: usize) -> usize {
    text[..at].matches('\n').count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stand_alone() {
        assert_eq!(find_word("wal walk a_wal wal", "wal"), [0, 15]);
        assert_eq!(find_word("mytodo!() todo!()", "todo!"), [10]);
        assert_eq!(find_word("éwal", "wal"), Vec::<usize>::new());
    }

    #[test]
    fn lines_are_counted_from_one() {
        assert_eq!(line_at("a\nb\nc", 0), 1);
        assert_eq!(line_at("a\nb\nc", 4), 3);
    }
}
