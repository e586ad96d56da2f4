//! Flags over environment over file over defaults, with the source of each value.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use dormouse_server::access::Access;
use dormouse_server::nearest;

use super::ConfigError;
use super::file::{self, Contents};
use super::flags::Flags;
use super::keys::{KEYS, Key};
use super::permissions::exposure;
use super::raw::Raw;
use super::settings::{BackendKind, Settings};

/// The variable that names the file.
pub(super) const CONFIG_ENV: &str = "DORMOUSE_CONFIG";
const ENV_PREFIX: &str = "DORMOUSE_";

/// The source of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Default,
    File { path: PathBuf, line: usize },
    Env(String),
    Flag(String),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Default => f.write_str("default"),
            Source::File { path, line } => write!(f, "{}:{line}", path.display()),
            Source::Env(name) | Source::Flag(name) => f.write_str(name),
        }
    }
}

/// One value for people to read.
pub(crate) struct EffectiveValue {
    pub(crate) name: String,
    /// As in a file; without secrets.
    pub(crate) value: String,
    pub(crate) source: Source,
}

/// The effective configuration.
#[derive(Debug)]
pub(crate) struct Config {
    pub(crate) settings: Settings,
    sources: BTreeMap<&'static str, Source>,
    /// Of the tokens, in their order.
    token_sources: Vec<Source>,
    /// Warnings about probable mistakes.
    warnings: Vec<String>,
    /// The file, and the files that hold tokens.
    file: Option<PathBuf>,
    token_files: Vec<PathBuf>,
}

impl Config {
    /// Reads all layers of this process.
    pub(crate) fn load(flags: &Flags) -> Result<Config, ConfigError> {
        let lossy = |text: std::ffi::OsString| text.to_string_lossy().into_owned();
        let env: Vec<(String, String)> =
            std::env::vars_os().map(|(name, value)| (lossy(name), lossy(value))).collect();
        Config::merge(flags, &env)
    }

    pub(super) fn merge(flags: &Flags, env: &[(String, String)]) -> Result<Config, ConfigError> {
        let find = |name: &str| {
            let found = env.iter().find(|(known, value)| known == name && !value.is_empty());
            found.map(|(_, value)| value.as_str())
        };
        let mut config = Config {
            settings: Settings::default(),
            sources: BTreeMap::new(),
            token_sources: Vec::new(),
            warnings: suspects(env),
            file: None,
            token_files: Vec::new(),
        };
        let named = flags.config().or_else(|| find(CONFIG_ENV).map(PathBuf::from));
        if let Some(path) = named {
            config.apply_file(&path, file::load(&path)?)?;
        }
        for key in KEYS {
            if let Some(value) = find(&key.env()) {
                config.apply(key, &Raw::Loose(value.to_owned()), Source::Env(key.env()))?;
            }
        }
        for key in KEYS {
            if let Some(value) = flags.value(key) {
                let source = Source::Flag(format!("--{}", key.flag));
                config.apply(key, &Raw::Loose(value), source)?;
            }
        }
        config.settings.verify().map_err(ConfigError)?;
        config.access()?;
        Ok(config)
    }

    fn apply_file(&mut self, path: &Path, contents: Contents) -> Result<(), ConfigError> {
        let source = |line: usize| Source::File { path: path.to_owned(), line };
        for (name, raw, line) in contents.values {
            if let Some(key) = KEYS.iter().find(|key| key.name == name) {
                self.apply(key, &raw, source(line))?;
            }
        }
        self.file = Some(path.to_owned());
        self.token_files = contents.token_files;
        for (token, line) in contents.tokens {
            self.settings.tokens.push(token);
            self.token_sources.push(source(line));
        }
        Ok(())
    }

    fn apply(&mut self, key: &Key, raw: &Raw, source: Source) -> Result<(), ConfigError> {
        (key.set)(&mut self.settings, raw).map_err(|error| match &source {
            Source::File { .. } => ConfigError(format!("{source}: `{}`: {error}", key.name)),
            _ => ConfigError(format!("{source}: {error}")),
        })?;
        self.sources.insert(key.name, source);
        Ok(())
    }

    /// Files and directories that other users of this machine can read or change. Everybody may
    /// read the configuration unless it has the password of Redis: of tokens it has only hashes.
    fn exposures(&self) -> Vec<String> {
        let settings = &self.settings;
        let has_password = matches!(self.sources.get("redis.url"), Some(Source::File { .. }))
            && settings.redis_url.as_ref().is_some_and(|url| url.contains('@'));
        let data = (settings.backend == BackendKind::Disk).then_some(&settings.data);
        let all = [
            ("the configuration file", self.file.as_ref(), has_password),
            ("the data directory", data, true),
            ("the private key", settings.tls_key.as_ref(), true),
            ("the key of pushes", settings.push.key.as_ref(), true),
        ];
        let all = all.into_iter().filter_map(|(what, path, secret)| Some((what, path?, secret)));
        let tokens = self.token_files.iter().map(|path| ("the token file", path, true));
        all.chain(tokens)
            .filter_map(|(what, path, is_secret)| exposure(what, path, is_secret))
            .collect()
    }

    /// Whether a server may start with files that other users can read or change. Not for a reload:
    /// that must be able to withdraw a token whatever else is wrong.
    pub(crate) fn verify_exposures(&self) -> Result<(), ConfigError> {
        let exposures = if self.settings.strict { self.exposures() } else { Vec::new() };
        if exposures.is_empty() {
            return Ok(());
        }
        Err(ConfigError(format!("`strict` is set, and {}", exposures.join("; "))))
    }

    /// The table of tokens.
    pub(crate) fn access(&self) -> Result<Access, ConfigError> {
        if self.settings.tokens.is_empty() {
            return Ok(Access::open());
        }
        let tokens = self.settings.tokens.clone();
        Access::new(tokens).map_err(|error| ConfigError(error.to_string()))
    }

    /// Every value that is in force, with its source.
    pub(crate) fn shown(&self) -> Vec<EffectiveValue> {
        let keys = KEYS.iter().filter(|key| self.concerns(key)).map(|key| EffectiveValue {
            name: key.name.to_owned(),
            value: (key.show)(&self.settings),
            source: self.sources.get(key.name).cloned().unwrap_or(Source::Default),
        });
        let tokens = self.settings.tokens.iter().zip(&self.token_sources);
        let tokens = tokens.map(|(token, source)| {
            let scopes: Vec<String> = token.scopes.iter().map(ToString::to_string).collect();
            EffectiveValue {
                name: format!("tokens.{}", token.name),
                value: format!("(secret) {}", scopes.join(" ")),
                source: source.clone(),
            }
        });
        keys.filter(|shown| !shown.value.is_empty()).chain(tokens).collect()
    }

    /// Whether it means something to the backend.
    fn concerns(&self, key: &Key) -> bool {
        key.backend().is_none_or(|backend| backend == self.settings.backend)
    }

    /// Keys that are set but belong to another backend. That is no error: an image or a
    /// file of all defaults sets them, whatever the backend.
    fn idle(&self) -> Vec<String> {
        let usual = Settings::default();
        // A user who gives a default on the command line relies on it.
        let is_flag = |key: &Key| matches!(self.sources.get(key.name), Some(Source::Flag(_)));
        let differs = |key: &Key| (key.show)(&self.settings) != (key.show)(&usual);
        let is_idle = |key: &&Key| !self.concerns(key) && (is_flag(key) || differs(key));
        let warning = |key: &Key| {
            let source = self.sources.get(key.name)?;
            let text = "means nothing here: only the disk backend has files";
            Some(format!("`{}` ({source}) {text}", key.name))
        };
        KEYS.iter().filter(is_idle).filter_map(warning).collect()
    }

    /// Keys, without the tokens, that have another value there.
    pub(crate) fn differences(&self, other: &Config) -> Vec<&'static str> {
        let differs = |key: &&Key| (key.show)(&self.settings) != (key.show)(&other.settings);
        KEYS.iter().filter(differs).map(|key| key.name).collect()
    }

    /// Warnings about settings that are allowed but risky.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let mut warnings = self.warnings.clone();
        warnings.extend(self.idle());
        warnings.extend(self.exposures());
        warnings.extend(self.settings.warnings());
        warnings
    }
}

/// Variables that look like ours and are not. The command line has others, and so may whoever
/// starts us, so they are no errors.
fn suspects(env: &[(String, String)]) -> Vec<String> {
    let known: Vec<String> = KEYS.iter().map(Key::env).collect();
    let mut warnings = Vec::new();
    for (name, _) in env {
        let Some(short) = name.strip_prefix(ENV_PREFIX) else { continue };
        let shorts = KEYS.iter().map(|key| key.name);
        if known.contains(name) || name == CONFIG_ENV {
            continue;
        }
        if let Some(meant) =
            KEYS.iter().find(|key| Some(key.name) == nearest(short, shorts.clone()))
        {
            let meant = meant.env();
            warnings.push(format!("{name} in the environment means nothing; {meant}?"));
        }
    }
    warnings
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn file(text: &str) -> tempfile::NamedTempFile {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        file
    }

    fn env(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn source_of(config: &Config, name: &str) -> String {
        let shown = config.shown();
        shown.iter().find(|shown| shown.name == name).unwrap().source.to_string()
    }

    #[test]
    fn nearer_layers_win() {
        let file = file("data = \"/file\"\nconnections_max = 7\ndrain = \"1s\"\n");
        let path = file.path().to_str().unwrap();
        let flags = Flags::of(&["--config", path, "--data", "/flag"]);
        let env = env(&[("DORMOUSE_DATA", "/env"), ("DORMOUSE_CONNECTIONS_MAX", "8")]);
        let config = Config::merge(&flags, &env).unwrap();
        assert_eq!(config.settings.data, Path::new("/flag"));
        assert_eq!(config.settings.connections_max, 8);
        assert_eq!(config.settings.drain.as_secs(), 1);
        assert_eq!(source_of(&config, "data"), "--data");
        assert_eq!(source_of(&config, "connections_max"), "DORMOUSE_CONNECTIONS_MAX");
        assert_eq!(source_of(&config, "drain"), format!("{path}:3"));
        assert_eq!(source_of(&config, "log"), "default");
    }

    #[test]
    fn the_environment_can_name_the_file_and_empty_means_unset() {
        let first = file("connections_max = 7\n");
        let second = file("connections_max = 8\n");
        let path = first.path().to_str().unwrap();
        let env = env(&[("DORMOUSE_CONFIG", path), ("DORMOUSE_CONNECTIONS_MAX", "")]);
        let config = Config::merge(&Flags::of(&[]), &env).unwrap();
        assert_eq!(config.settings.connections_max, 7);
        let flags = Flags::of(&["--config", second.path().to_str().unwrap()]);
        assert_eq!(Config::merge(&flags, &env).unwrap().settings.connections_max, 8);
    }

    #[test]
    fn a_mistake_names_its_layer_also_where_another_wins() {
        let bad = file("\nconnections_max = \"7\"\n");
        let path = bad.path().to_str().unwrap();
        let check = |flags: &[&str], pairs: &[(&str, &str)], expected: &str| {
            let error = Config::merge(&Flags::of(flags), &env(pairs)).unwrap_err();
            assert_eq!(error.to_string(), expected);
        };
        check(
            &["--config", path, "--connections-max", "9"],
            &[],
            &format!("{path}:2: `connections_max`: wants a number, and this is a text"),
        );
        let text = "`fast` is no durability; write synced, or relaxed=MS with 1 to 60000 ms";
        check(&["--durability", "fast"], &[], &format!("--durability: {text}"));
        check(&[], &[("DORMOUSE_DURABILITY", "fast")], &format!("DORMOUSE_DURABILITY: {text}"));
        check(
            &["--config", "/nowhere/x.toml"],
            &[],
            "cannot read /nowhere/x.toml: No such file or directory (os error 2)",
        );
    }

    #[test]
    fn half_of_tls_is_refused() {
        for flag in ["--tls-cert", "--tls-key"] {
            let error = Config::merge(&Flags::of(&[flag, "x"]), &[]).unwrap_err().to_string();
            assert!(error.contains("is set and"), "{error}");
        }
        let both = Flags::of(&["--tls-cert", "/nowhere/c", "--tls-key", "/nowhere/k"]);
        let error = Config::merge(&both, &[]).unwrap().settings.verify_certificate().unwrap_err();
        assert!(error.contains("give a PEM file"), "{error}");
    }

    #[test]
    fn settings_of_files_are_not_effective_without_files() {
        let flags = ["--data", "/x", "--durability", "synced", "--store-segment-bytes", "65536"];
        let names = |config: &Config| config.shown().into_iter().map(|it| it.name).collect();
        let disk = Config::merge(&Flags::of(&flags), &[]).unwrap();
        let shown: Vec<String> = names(&disk);
        assert!(disk.warnings().is_empty(), "{:?}", disk.warnings());
        for name in ["data", "durability", "store.segment_bytes"] {
            assert!(shown.iter().any(|known| known == name), "{shown:?}");
        }
        for backend in [vec!["memory"], vec!["redis", "--redis-url", "redis://h"]] {
            let all = [&flags[..], &["--backend"], &backend].concat();
            let config = Config::merge(&Flags::of(&all), &[]).unwrap();
            let shown: Vec<String> = names(&config);
            assert!(!shown.iter().any(|name| name == "data" || name == "durability"), "{shown:?}");
            let warnings = config.warnings();
            let about = |name: &str| warnings.iter().any(|text| text.starts_with(name));
            assert!(about("`data` (--data)") && about("`store.segment_bytes`"), "{warnings:?}");
            // A user who asks for it must learn that it has no effect.
            assert!(about("`durability` (--durability)"), "{warnings:?}");
            let image = env(&[("DORMOUSE_DURABILITY", "synced")]);
            let flags = [&["--backend"], &backend[..]].concat();
            let warnings = Config::merge(&Flags::of(&flags), &image).unwrap().warnings();
            assert!(!warnings.iter().any(|text| text.contains("durability")), "{warnings:?}");
        }
    }

    #[test]
    fn secrets_are_not_shown() {
        let hash = "ab".repeat(32);
        let file = file(&format!(
            "[[tokens]]\nname = \"ci\"\ntoken_sha256 = \"{hash}\"\nscopes = [\"put:*\", \"ack:a\"]"
        ));
        let flags = Flags::of(&["--config", file.path().to_str().unwrap()]);
        let config = Config::merge(&flags, &[]).unwrap();
        let shown = config.shown();
        let token = shown.iter().find(|shown| shown.name == "tokens.ci").unwrap();
        assert_eq!(token.value, "(secret) put:* ack:a");
        assert_eq!(token.source.to_string(), format!("{}:1", file.path().display()));
        assert!(shown.iter().all(|shown| !shown.value.contains(&hash)));
    }

    #[test]
    fn what_others_can_read_or_change_is_a_warning_and_an_error_if_strict() {
        use std::os::unix::fs::PermissionsExt as _;
        let set = |path: &Path, mode: u32| {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
        };
        let (data, token) = (tempfile::tempdir().unwrap(), file("a-secret-of-some-length"));
        let path = token.path().display();
        let config = file(&format!(
            "[[tokens]]\nname = \"a\"\ntoken_file = \"{path}\"\nscopes = [\"*:*\"]\n"
        ));
        let args =
            ["--config", config.path().to_str().unwrap(), "--data", data.path().to_str().unwrap()];
        let check = |modes: [u32; 3], words: &[&str]| {
            set(config.path(), modes[0]);
            set(data.path(), modes[1]);
            set(token.path(), modes[2]);
            let found = Config::merge(&Flags::of(&args), &[]).unwrap().warnings();
            assert_eq!(found.len(), words.len(), "{found:?}");
            for (warning, word) in found.iter().zip(words) {
                assert!(warning.contains(word) && warning.contains("`chmod "), "{warning}");
            }
            let strict = Flags::of(&[&args[..], &["--strict"]].concat());
            let strict = Config::merge(&strict, &[]).unwrap().verify_exposures();
            match strict.map_err(|error| error.to_string()) {
                Ok(()) => assert!(words.is_empty()),
                Err(error) => assert!(words.iter().all(|word| error.contains(word)), "{error}"),
            }
        };
        check([0o644, 0o700, 0o600], &[]);
        check([0o640, 0o750, 0o440], &[]);
        let all = ["the configuration file", "the data directory", "the token file"];
        check([0o666, 0o755, 0o644], &all);
        check([0o660, 0o777, 0o620], &all);
    }

    #[test]
    fn a_variable_that_is_nearly_ours_is_mentioned() {
        let pairs = env(&[("DORMOUSE_DURABILTY", "x"), ("DORMOUSE_URL", "x"), ("PATH", "x")]);
        let warnings = Config::merge(&Flags::of(&[]), &pairs).unwrap().warnings();
        let text = "DORMOUSE_DURABILTY in the environment means nothing; DORMOUSE_DURABILITY?";
        assert_eq!(warnings, [text]);
    }
}
