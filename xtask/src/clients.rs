//! The clients in other languages and the examples: their lints, types and tests against a real
//! server.

use std::path::Path;

use crate::step::{Invocation, build_binary};

/// What is run, in the root of the repository.
const SUITES: &[(&str, &[&str])] = &[
    ("python", &["sh", "clients/python/check.sh"]),
    ("typescript", &["sh", "clients/typescript/check.sh"]),
    ("console", &["sh", "crates/dormouse-cli/tests/console/axe.sh"]),
    ("java and go", &["node", "examples/test.mjs"]),
    ("receivers of pushes", &["node", "examples/push.mjs"]),
];

/// Builds the server and runs every suite against it.
pub(crate) fn run(root: &Path) -> Result<(), String> {
    let program = build_binary(root)?.display().to_string();
    for (name, words) in SUITES {
        println!("clients: {name}");
        let suite = Invocation::new(words.iter().copied()).with_env("DORMOUSE_BIN", &*program);
        suite.run(root).map_err(|reason| format!("{name} failed ({reason}): {suite}"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_suite_is_a_file_of_the_repository() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        for (name, words) in SUITES {
            assert!(root.join(words[1]).is_file(), "{name}: {}", words[1]);
        }
    }
}
