//! `cargo xtask fuzz`: random inputs for the parsers, for long.
//!
//! A target is a test with `fuzz_` in its name, beside its parser; see crates/dormouse-fuzz.

use std::path::Path;

use crate::step::Invocation;

/// Inputs of each target, unless said otherwise.
const EXECUTIONS_DEFAULT: u64 = 5_000_000;

const TARGETS: [(&str, &str); 9] = [
    ("http_head", "-p dormouse-server --lib"),
    ("http_body", "-p dormouse-server --lib"),
    ("resp", "-p dormouse-server --lib"),
    ("beanstalk", "-p dormouse-server --lib"),
    ("push_url", "-p dormouse-server --lib"),
    ("replies", "-p dormouse-client --lib"),
    ("cursors", "-p dormouse-core --test rules"),
    ("config", "-p dormouse-cli --bins"),
    ("tokens", "-p dormouse-cli --bins"),
];

/// What to run.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Options {
    /// `None` = all.
    pub(crate) target: Option<String>,
    pub(crate) executions: u64,
    /// `None` = one that nobody knows before; it is printed.
    pub(crate) seed: Option<String>,
}

impl Options {
    pub(crate) fn parse<'a>(words: &mut impl Iterator<Item = &'a str>) -> Result<Options, String> {
        let mut options = Options { target: None, executions: EXECUTIONS_DEFAULT, seed: None };
        while let Some(word) = words.next() {
            let value = words.next().ok_or(format!("{word} wants a value"))?;
            match word {
                "--target" if TARGETS.iter().any(|(name, _)| *name == value) => {
                    options.target = Some(value.to_owned());
                }
                "--target" => {
                    let known = TARGETS.map(|(name, _)| name).join(", ");
                    return Err(format!("`{value}` is no target; there are {known}"));
                }
                "--executions" => {
                    let number = value.parse().ok().filter(|number| *number > 0);
                    options.executions = number.ok_or("--executions wants a number")?;
                }
                "--seed" => options.seed = Some(value.to_owned()),
                other => return Err(crate::unknown(other)),
            }
        }
        Ok(options)
    }

    fn invocations(&self) -> Vec<Invocation> {
        let is_wanted = |name: &str| self.target.as_ref().is_none_or(|target| target == name);
        let invocation = |(name, place): (&str, &str)| {
            let invocation = Invocation::new(["cargo", "test", "--release", "--locked"])
                .with_words(place.split_whitespace())
                .with_words(["--", "--nocapture", &format!("fuzz_{name}")])
                .with_env("DORMOUSE_FUZZ_EXECUTIONS", self.executions.to_string());
            match &self.seed {
                Some(seed) => invocation.with_env("DORMOUSE_SEED", seed),
                None => invocation,
            }
        };
        TARGETS.into_iter().filter(|(name, _)| is_wanted(name)).map(invocation).collect()
    }
}

/// Runs the targets one after the other, and stops at the first that fails.
pub(crate) fn run(root: &Path, options: &Options) -> Result<(), String> {
    for invocation in options.invocations() {
        println!("fuzz: {invocation}");
        invocation.run(root).map_err(|error| format!("fuzz: {error}"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options, String> {
        Options::parse(&mut line.split_whitespace())
    }

    #[test]
    fn one_target_or_all() {
        let all = parse("").unwrap().invocations();
        assert_eq!(all.len(), TARGETS.len());
        let one = parse("--target resp --executions 7 --seed 0x9").unwrap().invocations();
        let shown: Vec<String> = one.iter().map(ToString::to_string).collect();
        let expected = "DORMOUSE_FUZZ_EXECUTIONS=7 DORMOUSE_SEED=0x9 cargo test --release --locked \
                        -p dormouse-server --lib -- --nocapture fuzz_resp";
        assert_eq!(shown, [expected]);
    }

    #[test]
    fn mistakes_are_named() {
        assert!(parse("--target rsep").unwrap_err().contains("there are http_head"));
        assert!(parse("--executions 0").unwrap_err().contains("number"));
        assert!(parse("--seed").unwrap_err().contains("value"));
    }
}
