//! The TOML file: values with their lines.

use std::path::{Path, PathBuf};

use dormouse_server::access::TokenEntry;
use toml::de::{DeTable, DeValue};

use super::ConfigError;
use super::keys::KEYS;
use super::raw::{Raw, suggestion};
use super::tokens;

/// Names at the top of a file that are no keys of their own.
const TABLES: [&str; 5] = ["push", "redis", "store", "tls", "tokens"];

/// The values of a file.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Contents {
    /// Key, value and line.
    pub(super) values: Vec<(&'static str, Raw, usize)>,
    /// Tokens and their lines.
    pub(super) tokens: Vec<(TokenEntry, usize)>,
    /// The files that hold tokens.
    pub(super) token_files: Vec<PathBuf>,
}

/// A position in a file.
pub(super) struct Text<'a> {
    path: &'a Path,
    text: &'a str,
}

impl Text<'_> {
    pub(super) fn line(&self, at: usize) -> usize {
        self.text.bytes().take(at).filter(|&byte| byte == b'\n').count() + 1
    }

    pub(super) fn error(&self, at: usize, text: &str) -> ConfigError {
        ConfigError(format!("{}:{}: {text}", self.path.display(), self.line(at)))
    }
}

pub(super) fn load(path: &Path) -> Result<Contents, ConfigError> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| ConfigError(format!("cannot read {}: {error}", path.display())))?;
    parse(path, &text)
}

/// Reads a file's text; its path is shown in messages.
pub(super) fn parse(path: &Path, text: &str) -> Result<Contents, ConfigError> {
    let text = Text { path, text };
    let table = DeTable::parse(text.text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        text.error(at, error.message())
    })?;
    let mut contents = Contents::default();
    for (name, value) in table.get_ref() {
        let at = name.span().start;
        match (name.get_ref().as_ref(), value.get_ref()) {
            (outer @ ("push" | "redis" | "store" | "tls"), DeValue::Table(table)) => {
                for (name, value) in table {
                    let full = format!("{outer}.{}", name.get_ref());
                    read(&mut contents, &text, &full, name.span().start, value.get_ref())?;
                }
            }
            ("tokens", DeValue::Array(items)) => {
                contents.tokens = tokens::read(&text, items)?;
                contents.token_files = tokens::files(items);
            }
            (name @ ("push" | "redis" | "store" | "tls"), _) => {
                return Err(text.error(at, &format!("`{name}` wants a table: [{name}]")));
            }
            ("tokens", _) => return Err(text.error(at, "`tokens` wants tables: [[tokens]]")),
            (name, value) => read(&mut contents, &text, name, at, value)?,
        }
    }
    Ok(contents)
}

fn read(
    contents: &mut Contents,
    text: &Text<'_>,
    name: &str,
    at: usize,
    value: &DeValue<'_>,
) -> Result<(), ConfigError> {
    let Some(key) = KEYS.iter().find(|key| key.name == name) else {
        let known = KEYS.iter().map(|key| key.name).chain(TABLES);
        let meant = suggestion(name, known);
        return Err(text.error(at, &format!("unknown key `{name}`{meant}")));
    };
    contents.values.push((key.name, raw(value), text.line(at)));
    Ok(())
}

pub(super) fn raw(value: &DeValue<'_>) -> Raw {
    match value {
        DeValue::String(text) => Raw::Text(text.clone().into_owned()),
        DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
            .map_or(Raw::Other("a number that is too large"), Raw::Number),
        DeValue::Float(_) => Raw::Other("a fraction"),
        DeValue::Boolean(value) => Raw::Bool(*value),
        DeValue::Datetime(_) => Raw::Other("a date"),
        DeValue::Array(items) => Raw::List(items.iter().map(|item| raw(item.get_ref())).collect()),
        DeValue::Table(_) => Raw::Other("a table"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Contents, String> {
        parse(Path::new("x.toml"), text).map_err(|error| error.to_string())
    }

    #[test]
    fn values_have_their_lines() {
        let text = "# a comment\nhttp = \"off\"\n\nconnections_max = 0x10\n[tls]\ncert = \"c\"\n";
        let contents = parsed(text).unwrap();
        let expected = [
            ("connections_max", Raw::Number(16), 4),
            ("http", Raw::Text("off".to_owned()), 2),
            ("tls.cert", Raw::Text("c".to_owned()), 6),
        ];
        assert_eq!(contents.values, expected);
        assert_eq!(parsed("").unwrap(), Contents::default());
    }

    #[test]
    fn mistakes_are_named_with_their_line() {
        let check = |text: &str, expected: &str| assert_eq!(parsed(text).unwrap_err(), expected);
        let meant = "did you mean `durability`?";
        check("\ndurabilty = 1", &format!("x.toml:2: unknown key `durabilty`; {meant}"));
        check("[tls]\ncrt = 1", "x.toml:2: unknown key `tls.crt`; did you mean `tls.cert`?");
        check("[token]\nname = 1", "x.toml:1: unknown key `token`; did you mean `tokens`?");
        check("data-dir = 1", "x.toml:1: unknown key `data-dir`; did you mean `data`?");
        check("xyzzy = 1", "x.toml:1: unknown key `xyzzy`");
        check("[tls]\nkind = 1", "x.toml:2: unknown key `tls.kind`");
        check("[redis]\nurgent = 1", "x.toml:2: unknown key `redis.urgent`");
        check("tls = 1", "x.toml:1: `tls` wants a table: [tls]");
        check("store = 1", "x.toml:1: `store` wants a table: [store]");
        check("[tokens]\nname = \"a\"", "x.toml:1: `tokens` wants tables: [[tokens]]");
    }

    #[test]
    fn invalid_toml_is_located() {
        let check = |text: &str, place: &str| {
            let error = parsed(text).unwrap_err();
            assert!(error.starts_with(place), "{error}");
        };
        check("data = \"x\"\nhttp = ", "x.toml:2: ");
        check("data = \"x\"\ndata = \"y\"", "x.toml:2: ");
        check("\n\n[tls", "x.toml:3: ");
    }
}
