//! `[[tokens]]` of the file: name, secret, scopes.

use std::collections::BTreeSet;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use dormouse_server::access::{Scope, TokenEntry, TokenHash, hash_token};
use toml::de::{DeArray, DeTable, DeValue};

use super::ConfigError;
use super::file::{Text, raw};
use super::raw::suggestion;

const NAMES: [&str; 4] = ["name", "token_sha256", "token_file", "scopes"];
/// A token in a file that is shorter could be guessed.
const TOKEN_BYTES_MIN: usize = 16;
/// So could one of fewer different characters. A random one of 16 hexadecimal digits has about 10.
const TOKEN_CHARACTERS_MIN: usize = 6;
/// A file with more holds something else.
const TOKEN_FILE_BYTES_MAX: u64 = 4 << 10;

/// Reads all entries.
pub(super) fn read(
    text: &Text<'_>,
    items: &DeArray<'_>,
) -> Result<Vec<(TokenEntry, usize)>, ConfigError> {
    let mut entries: Vec<(TokenEntry, usize)> = Vec::new();
    for item in items {
        let at = item.span().start;
        let DeValue::Table(table) = item.get_ref() else {
            return Err(text.error(at, "`tokens` wants tables: [[tokens]]"));
        };
        let entry = entry(text, at, table)?;
        if let Some((_, line)) = entries.iter().find(|(other, _)| other.name == entry.name) {
            let same = format!("another token is called `{}`, line {line}", entry.name);
            return Err(text.error(at, &same));
        }
        if let Some((other, line)) = entries.iter().find(|(other, _)| other.hash == entry.hash) {
            let same = format!("`{}` is the token of `{}`, line {line}", entry.name, other.name);
            return Err(text.error(at, &same));
        }
        entries.push((entry, text.line(at)));
    }
    Ok(entries)
}

/// The files that hold tokens.
pub(super) fn files(items: &DeArray<'_>) -> Vec<PathBuf> {
    let file = |item: &toml::Spanned<DeValue<'_>>| match item.get_ref() {
        DeValue::Table(table) => {
            let (_, path) = table.iter().find(|(key, _)| key.get_ref() == "token_file")?;
            raw(path.get_ref()).text().ok().map(PathBuf::from)
        }
        _ => None,
    };
    items.iter().filter_map(file).collect()
}

fn entry(text: &Text<'_>, at: usize, table: &DeTable<'_>) -> Result<TokenEntry, ConfigError> {
    let has = |name: &str| table.keys().any(|key| key.get_ref() == name);
    if has("token_sha256") && has("token_file") {
        return Err(text.error(at, "a token has `token_sha256` or `token_file`, not both"));
    }
    let (mut name, mut hash, mut scopes) = (None, None, None);
    for (key, value) in table {
        let at = key.span().start;
        let named = |error: String| text.error(at, &format!("`tokens.{}`: {error}", key.get_ref()));
        let value = raw(value.get_ref());
        match key.get_ref().as_ref() {
            "name" => name = Some(value.text().map_err(named)?.to_owned()),
            "token_sha256" => hash = Some(value.text().and_then(parse_hash).map_err(named)?),
            "token_file" => hash = Some(value.text().and_then(read_secret).map_err(named)?),
            "scopes" => {
                let words = value.list().map_err(named)?;
                let parsed = words.iter().map(|word| word.parse::<Scope>());
                let all: Result<Vec<Scope>, _> = parsed.collect();
                scopes = Some(all.map_err(|error| named(error.to_string()))?);
            }
            other => {
                let meant = suggestion(other, NAMES.into_iter());
                return Err(text.error(at, &format!("unknown key `tokens.{other}`{meant}")));
            }
        }
    }
    let missing = |key: &str, fix: &str| text.error(at, &format!("a token without {key}; {fix}"));
    Ok(TokenEntry {
        name: name.ok_or_else(|| missing("`name`", "call it by who has it"))?,
        hash: hash.ok_or_else(|| {
            missing("`token_sha256` or `token_file`", "make one with `dormouse config token`")
        })?,
        scopes: scopes.filter(|scopes| !scopes.is_empty()).ok_or_else(|| {
            missing("`scopes`", "say what it allows, as in scopes = [\"producer:orders.*\"]")
        })?,
    })
}

fn parse_hash(text: &str) -> Result<TokenHash, String> {
    let wrong = || {
        "wants the SHA-256 of a token, 64 hexadecimal digits; `dormouse config token` makes both"
            .to_owned()
    };
    let mut hash = [0; 32];
    if text.len() != 2 * hash.len() || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(wrong());
    }
    for (index, byte) in hash.iter_mut().enumerate() {
        let digits = text.get(2 * index..2 * index + 2).ok_or_else(wrong)?;
        *byte = u8::from_str_radix(digits, 16).map_err(|_| wrong())?;
    }
    Ok(hash)
}

/// A secret in a file of its own, as secret stores provide them. White space around it is not
/// part of it.
fn read_secret(path: &str) -> Result<TokenHash, String> {
    let mut secret = String::new();
    // A device, or a file that was named by mistake, may have no end.
    let read = std::fs::File::open(Path::new(path))
        .and_then(|file| file.take(TOKEN_FILE_BYTES_MAX + 1).read_to_string(&mut secret));
    read.map_err(|error| format!("cannot read {path}: {error}"))?;
    if secret.len() as u64 > TOKEN_FILE_BYTES_MAX {
        return Err(format!(
            "{path} has more than {TOKEN_FILE_BYTES_MAX} bytes; name a file that holds the token \
             and nothing else"
        ));
    }
    let secret = secret.trim();
    if secret.len() < TOKEN_BYTES_MIN {
        return Err(format!(
            "the token in {path} has {} characters, at least {TOKEN_BYTES_MIN}; \
             `dormouse config token` makes a good one",
            secret.len()
        ));
    }
    if is_weak(secret) {
        return Err(format!(
            "the token in {path} could be guessed: it has fewer than {TOKEN_CHARACTERS_MIN} \
             different characters, or repeats itself; `dormouse config token` makes a good one"
        ));
    }
    Ok(hash_token(secret))
}

/// Whether it has too few different characters, or is one text several times.
fn is_weak(secret: &str) -> bool {
    let bytes = secret.as_bytes();
    let is_repeated = |len: usize| bytes.chunks(len).all(|chunk| bytes.starts_with(chunk));
    let different: BTreeSet<char> = secret.chars().collect();
    different.len() < TOKEN_CHARACTERS_MIN || (1..=bytes.len() / 2).any(is_repeated)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;
    use crate::command::config::file::parse;

    const HASH: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

    fn check(text: &str, expected: &str) {
        let error = parse(Path::new("x.toml"), text).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }

    #[test]
    fn tokens_are_read_from_hashes_and_files() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(b"  a-secret-of-some-length\n").unwrap();
        let text = format!(
            "[[tokens]]\nname = \"a\"\ntoken_sha256 = \"{HASH}\"\nscopes = [\"put:*\"]\n\n\
             [[tokens]]\nname = \"b\"\ntoken_file = \"{}\"\nscopes = [\"viewer:a.*\", \"ack:b\"]\n",
            file.path().display()
        );
        let tokens = parse(Path::new("x.toml"), &text).unwrap().tokens;
        assert_eq!(tokens.len(), 2);
        assert_eq!(tokens[0].0.hash, hash_token("abc"));
        assert_eq!((tokens[0].0.name.as_str(), tokens[0].1), ("a", 1));
        assert_eq!(tokens[1].0.hash, hash_token("a-secret-of-some-length"));
        assert_eq!((tokens[1].0.scopes.len(), tokens[1].1), (2, 6));
    }

    #[test]
    fn mistakes_in_tokens_are_named() {
        let token = |lines: &str| format!("\n[[tokens]]\n{lines}\n");
        let good = format!("name = \"a\"\ntoken_sha256 = \"{HASH}\"");
        check(&token(&good), "x.toml:2: a token without `scopes`");
        check(&token(&format!("{good}\nscopes = []")), "without `scopes`");
        check(&token("name = \"a\"\nscopes = [\"put:*\"]"), "without `token_sha256`");
        check(&token("scopes = [\"put:*\"]"), "x.toml:2: a token without `name`");
        check(
            &token(&format!("{good}\nscopes = [\"prodcer:*\"]")),
            "x.toml:5: `tokens.scopes`: scope `prodcer:*`: unknown verb `prodcer`; did you mean",
        );
        check(&token("nmae = \"a\""), "x.toml:3: unknown key `tokens.nmae`; did you mean `name`?");
        check(&token("token_sha256 = \"12\""), "64 hexadecimal digits");
        check(&token(&format!("token_sha256 = \"{}\"", "é".repeat(32))), "64 hexadecimal digits");
        check(&token("token_file = \"/nowhere/t\""), "cannot read /nowhere/t");
        check(&token("token_file = \"/dev/zero\""), "/dev/zero has more than 4096 bytes");
        check(&token(&format!("{good}\ntoken_file = \"x\"")), "not both");
        check("tokens = [1]", "wants tables");
        let twice = token(&format!("{good}\nscopes = [\"put:*\"]"));
        check(
            &format!("{twice}{}", twice.replace("\"a\"", "\"b\"")),
            "is the token of `a`, line 2",
        );
        check(&format!("{twice}{}", twice.replace("ba78", "0000")), "is called `a`, line 2");
    }

    #[test]
    fn a_secret_that_could_be_guessed_is_refused() {
        for (weak, strong) in [
            ("aaaaaaaaaaaaaaaa", "0123456789abcdef"),
            ("abcabcabcabcabca", "a-secret-of-some-length"),
            ("passwordpassword", "9f86d081884c7d65"),
            ("hunter2hunter2hunter2", "hunter2hunter2hunter3"),
        ] {
            let mut file = tempfile::NamedTempFile::new().unwrap();
            file.write_all(weak.as_bytes()).unwrap();
            let path = file.path().display();
            check(&format!("[[tokens]]\ntoken_file = \"{path}\""), "could be guessed");
            assert!(!is_weak(strong), "{strong}");
        }
    }

    #[test]
    fn a_short_secret_is_refused() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(b"hunter2\n").unwrap();
        let path = file.path().display();
        check(&format!("[[tokens]]\ntoken_file = \"{path}\""), "has 7 characters, at least 16");
    }
}
