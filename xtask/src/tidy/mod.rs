//! `cargo xtask tidy`: the rules of this repository that a machine can hold.

mod docs;
mod layers;
mod paths;
mod shape;
mod source;
mod text;
mod words;

use std::fmt;
use std::fs;
use std::path::Path;

use crate::step::Invocation;
use source::Source;

/// Something a rule objects to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    path: String,
    /// Counted from 1; 0 means the file as a whole.
    line: usize,
    text: String,
    /// Worth a look, but no reason to fail.
    is_warning: bool,
}

impl Finding {
    fn new(path: &str, line: usize, text: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, text: text.into(), is_warning: false }
    }

    fn warning(path: &str, line: usize, text: impl Into<String>) -> Self {
        Self { is_warning: true, ..Self::new(path, line, text) }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.is_warning { "warning: " } else { "" };
        match self.line {
            0 => write!(f, "{}: {kind}{}", self.path, self.text),
            line => write!(f, "{}:{line}: {kind}{}", self.path, self.text),
        }
    }
}

/// A text file of the repository; the path is relative to its root, with slashes.
#[derive(Clone, Debug)]
pub(crate) struct TextFile {
    path: String,
    text: String,
}

/// Checks the repository and prints what it finds.
pub(crate) fn run(root: &Path) -> Result<(), String> {
    let paths = list_files(root)?;
    let files = read_texts(root, &paths);
    let findings = check(&paths, &files);
    for finding in &findings {
        println!("{finding}");
    }
    let warnings = findings.iter().filter(|finding| finding.is_warning).count();
    let errors = findings.len() - warnings;
    println!("tidy: {} files, {errors} errors, {warnings} warnings", files.len());
    if errors == 0 { Ok(()) } else { Err(format!("tidy found {errors} errors")) }
}

/// All rules over all files, in the order of the files.
fn check(paths: &[String], files: &[TextFile]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files {
        findings.extend(paths::check_machine_paths(file));
        findings.extend(words::check_markers(file));
        if file.path.ends_with(".md") {
            findings.extend(docs::check_links(file, paths));
        }
        if file.path.ends_with(".rs") {
            let source = Source::parse(&file.path, &file.text);
            findings.extend(shape::check(&source));
            findings.extend(words::check_code(&source));
            findings.extend(layers::check_clock_reads(&source));
            findings.extend(layers::check_core(&source));
        }
    }
    findings.extend(layers::check_conformance(paths));
    findings.extend(docs::check_test_command(files));
    findings
}

/// Every file git knows or would add. New files count, so that they are checked before the commit.
fn list_files(root: &Path) -> Result<Vec<String>, String> {
    let git = Invocation::new(["git", "ls-files", "-z", "-co", "--exclude-standard"]);
    let mut paths = match git.command(root).output() {
        Ok(output) if output.status.success() => {
            let listed = String::from_utf8_lossy(&output.stdout).into_owned();
            listed.split('\0').filter(|path| !path.is_empty()).map(str::to_owned).collect()
        }
        // A source archive has no git: look at all there is.
        _ => {
            let mut found = Vec::new();
            walk(root, "", &mut found)
                .map_err(|error| format!("cannot list the repository: {error}"))?;
            found
        }
    };
    paths.retain(|path| root.join(path).is_file());
    paths.sort_unstable();
    paths.dedup();
    Ok(paths)
}

fn walk(root: &Path, below: &str, found: &mut Vec<String>) -> std::io::Result<()> {
    const SKIPPED: &[&str] = &[".git", "target", "dormouse-data"];
    for entry in fs::read_dir(root.join(below))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = if below.is_empty() { name.clone() } else { format!("{below}/{name}") };
        let kind = entry.file_type()?;
        if kind.is_dir() && !SKIPPED.contains(&name.as_str()) {
            walk(root, &path, found)?;
        } else if kind.is_file() {
            found.push(path);
        }
    }
    Ok(())
}

/// The files that are text; fixtures may be bytes.
fn read_texts(root: &Path, paths: &[String]) -> Vec<TextFile> {
    let read = |path: &String| {
        let text = fs::read_to_string(root.join(path)).ok()?;
        Some(TextFile { path: path.clone(), text })
    };
    paths.iter().filter_map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_to_list_files_find_this_package() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut walked = Vec::new();
        walk(root, "", &mut walked).unwrap();
        for paths in [list_files(root).unwrap(), walked] {
            for path in ["Cargo.toml", "src/tidy/mod.rs"] {
                assert!(paths.iter().any(|found| found == path), "{path} in {paths:?}");
            }
        }
    }

    #[test]
    fn this_package_is_tidy() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut paths = list_files(root).unwrap();
        let mut files = read_texts(root, &paths);
        for path in paths.iter_mut().chain(files.iter_mut().map(|file| &mut file.path)) {
            path.insert_str(0, "xtask/");
        }
        let findings = check(&paths, &files);
        assert!(findings.iter().all(|finding| finding.is_warning), "{findings:?}");
    }

    #[test]
    fn findings_name_file_and_line() {
        assert_eq!(Finding::new("a.rs", 3, "too long").to_string(), "a.rs:3: too long");
        assert_eq!(Finding::warning("a.rs", 0, "big").to_string(), "a.rs: warning: big");
    }
}
