//! Finds the known word that a mistyped one probably means.

/// The known word that was probably meant, ignoring case. `None` where that would be a guess: a
/// wrong suggestion is worse than none.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let rated = known.into_iter().filter_map(|known| Some((distance(word, known)?, known)));
    rated.min_by_key(|(distance, _)| *distance).map(|(_, known)| known)
}

/// The distance of two words; `None` if it is too great for a typo.
fn distance(word: &str, known: &str) -> Option<usize> {
    let (word, known) = (folded(word), folded(known));
    let (word, known) = within_table(&word, &known);
    if has_more_parts(word, known) || has_more_parts(known, word) {
        // Ranks behind all typos.
        return Some(usize::MAX);
    }
    let (word, known) = (word.replace('.', "_"), known.replace('.', "_"));
    let (long, short) = (word.len().max(known.len()), word.len().min(known.len()));
    // Comparing is expensive, and the difference in length is a lower bound.
    if !is_small(long - short, long) {
        return None;
    }
    let distance = strsim::damerau_levenshtein(&word, &known);
    (is_small(distance, long) || is_swap(distance, &word, &known)).then_some(distance)
}

fn folded(word: &str) -> String {
    word.to_lowercase().replace('-', "_")
}

/// For keys of the same table, only the last part counts: `tls.x` is not like `tls.key`.
fn within_table<'w>(word: &'w str, known: &'w str) -> (&'w str, &'w str) {
    match (word.rsplit_once('.'), known.rsplit_once('.')) {
        (Some((table, word)), Some((other, known))) if table == other => (word, known),
        _ => (word, known),
    }
}

/// Whether a word is the other one with more parts, as `data_dir` is of `data`.
fn has_more_parts(word: &str, other: &str) -> bool {
    word.strip_prefix(other).is_some_and(|rest| !other.is_empty() && rest.starts_with('_'))
}

/// One letter in four may be wrong, so that `SET` is not taken for `GET`.
fn is_small(distance: usize, length: usize) -> bool {
    distance * 4 <= length
}

/// Whether only two letters are swapped: a common typo even in short words.
fn is_swap(distance: usize, word: &str, known: &str) -> bool {
    let sorted = |word: &str| {
        let mut bytes = word.as_bytes().to_vec();
        bytes.sort_unstable();
        bytes
    };
    distance == 1 && word.len() > 2 && sorted(word) == sorted(known)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(word: &str, known: &[&str], meant: Option<&str>) {
        assert_eq!(nearest(word, known.iter().copied()), meant, "{word}");
    }

    #[test]
    fn a_typo_is_found() {
        check("resreve", &["RELEASE", "RESERVE", "REVIVE"], Some("RESERVE"));
        check("PTU", &["PING", "PUT"], Some("PUT"));
        check("set-topic", &["set_topic", "topics"], Some("set_topic"));
        check("durabilty", &["data", "durability"], Some("durability"));
        check("tls.crt", &["tls.key", "tls.cert"], Some("tls.cert"));
        check("TLS_CRT", &["tls.key", "tls.cert"], Some("tls.cert"));
        check("token", &["tokens"], Some("tokens"));
    }

    #[test]
    fn a_word_with_more_parts_is_found_unless_another_is_nearer() {
        check("data_dir", &["log", "data"], Some("data"));
        check("data-dir", &["data", "data_dirs"], Some("data_dirs"));
        check("set", &["get", "set_topic"], Some("set_topic"));
        check("database", &["data"], None);
    }

    #[test]
    fn another_word_is_not_guessed() {
        check("SET", &["GET"], None);
        check("DEL", &["KILL", "GET"], None);
        check("delete", &["release", "reserve"], None);
        check("remove", &["revive", "resume"], None);
        check("tls.foo", &["tls.key", "tls.cert", "tls"], None);
        check("store.compression", &["store.segment_bytes", "store"], None);
        check("on", &["no"], None);
        check("x", &["", "y"], None);
        check("", &["", "put"], Some(""));
        check(&"reserve".repeat(1_000), &["reserve"], None);
    }
}
