//! `cargo xtask tidy`: the rules of this repository that a machine can hold.

mod console;
mod cycles;
mod docs;
mod glossary;
mod layers;
mod markers;
mod paths;
mod shape;
pub(crate) mod source;
mod text;

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::Path;

use crate::step::Invocation;
use glossary::Glossary;
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
    pub(crate) path: String,
    pub(crate) text: String,
}

/// Checks the repository and prints what it finds.
pub(crate) fn run(root: &Path) -> Result<(), String> {
    let paths = list_files(root)?;
    let files = read_texts(root, &paths);
    let (warnings, errors): (Vec<_>, Vec<_>) =
        check(&paths, &files).into_iter().partition(|finding| finding.is_warning);
    print_warnings(&warnings);
    for error in &errors {
        println!("{error}");
    }
    let (errors, warnings) = (errors.len(), warnings.len());
    println!("tidy: {} files, {errors} errors, {warnings} warnings", files.len());
    if errors == 0 { Ok(()) } else { Err(format!("tidy found {errors} errors")) }
}

/// One line for each kind of warning: the first place, and the number of others.
fn print_warnings(warnings: &[Finding]) {
    let mut kinds: BTreeMap<&str, (&Finding, usize)> = BTreeMap::new();
    for warning in warnings {
        kinds.entry(&warning.text).or_insert((warning, 0)).1 += 1;
    }
    for (first, count) in kinds.into_values() {
        match count {
            1 => println!("{first}"),
            _ => println!("{first} (and {} more)", count - 1),
        }
    }
}

/// All rules over all files, in the order of the files.
fn check(paths: &[String], files: &[TextFile]) -> Vec<Finding> {
    let (glossary, mut findings) = Glossary::read(files);
    let mut sources = Vec::new();
    // Rules that do not hold everywhere yet.
    let mut warnings = Vec::new();
    for file in files {
        findings.extend(paths::check_machine_paths(file));
        findings.extend(markers::check(file));
        findings.extend(console::check(file));
        match file.path.ends_with(".md") {
            true => warnings.extend(shape::check_lines(file)),
            false => findings.extend(shape::check_lines(file)),
        }
        findings.extend(glossary.check_words(file));
        if file.path.ends_with(".md") {
            findings.extend(docs::check_links(file, paths));
            findings.extend(docs::check_named_paths(file, paths));
        }
        if file.path.ends_with(".rs") {
            let source = Source::parse(&file.path, &file.text);
            findings.extend(shape::check_file(&source));
            findings.extend(glossary.check_types(&source));
            findings.extend(layers::check_core(&source));
            sources.push(source);
        }
    }
    findings.extend(cycles::check(&sources));
    findings.extend(warnings.into_iter().map(|warning| Finding { is_warning: true, ..warning }));
    findings.extend(layers::check_conformance(paths));
    findings.extend(docs::check_test_command(files));
    findings
}

/// Every file git knows or would add. New files count, so that they are checked before the commit.
pub(crate) fn list_files(root: &Path) -> Result<Vec<String>, String> {
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
pub(crate) fn read_texts(root: &Path, paths: &[String]) -> Vec<TextFile> {
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
