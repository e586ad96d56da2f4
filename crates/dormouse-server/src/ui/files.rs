//! The files of the console: part of the binary; while it is developed, read from a directory.

use std::borrow::Cow;
use std::path::{Component, Path, PathBuf};

use sha2::{Digest, Sha256};

/// All files below `ui/`, as `build.rs` found them.
const FILES: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/ui_files.rs"));

/// The file of the path without a name.
const INDEX: &str = "index.html";

/// Debug builds read the files from this directory, so that a change needs no build.
const DIRECTORY_ENV: &str = "DORMOUSE_UI_DIR";

/// The types that browsers must be told; what they execute is refused without the right one.
const KINDS: [(&str, &str); 6] = [
    ("html", "text/html; charset=utf-8"),
    ("js", "text/javascript; charset=utf-8"),
    ("css", "text/css; charset=utf-8"),
    ("svg", "image/svg+xml"),
    ("png", "image/png"),
    ("woff2", "font/woff2"),
];

/// The files of the console.
pub(crate) struct UiFiles {
    files: Vec<(&'static str, UiFile)>,
    directory: Option<PathBuf>,
}

/// One of them.
#[derive(Clone, Debug)]
pub(crate) struct UiFile {
    pub(crate) bytes: Cow<'static, [u8]>,
    /// Its content type.
    pub(crate) kind: &'static str,
    /// Names this content and no other, with quotes.
    pub(crate) etag: String,
}

impl UiFile {
    fn new(name: &str, bytes: impl Into<Cow<'static, [u8]>>) -> Option<UiFile> {
        let (_, ending) = name.rsplit_once('.')?;
        let (_, kind) = KINDS.iter().find(|(known, _)| *known == ending)?;
        let bytes = bytes.into();
        let hash = Sha256::digest(&bytes);
        let digits: String = hash.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        Some(UiFile { bytes, kind, etag: format!("\"{digits}\"") })
    }
}

impl UiFiles {
    /// Those of the binary; in debug builds those of a directory, if the environment names one.
    pub(crate) fn load() -> UiFiles {
        let directory = cfg!(debug_assertions).then(|| std::env::var_os(DIRECTORY_ENV)).flatten();
        let files =
            FILES.iter().filter_map(|(name, bytes)| Some((*name, UiFile::new(name, *bytes)?)));
        UiFiles { files: files.collect(), directory: directory.map(PathBuf::from) }
    }

    /// The file of a path below `/ui/`.
    pub(crate) fn find(&self, path: &str) -> Option<UiFile> {
        let name = if path.is_empty() { INDEX } else { path };
        match &self.directory {
            Some(directory) => read(directory, name),
            None => {
                let found = self.files.iter().find(|(known, _)| *known == name);
                found.map(|(_, file)| file.clone())
            }
        }
    }
}

/// Reads a file that lies below the directory.
fn read(directory: &Path, name: &str) -> Option<UiFile> {
    let is_below = Path::new(name).components().all(|part| matches!(part, Component::Normal(_)));
    let bytes = if is_below { std::fs::read(directory.join(name)).ok()? } else { return None };
    UiFile::new(name, bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::UI_BYTES_MAX;

    #[test]
    fn all_files_are_embedded_and_small() {
        let files = UiFiles { directory: None, ..UiFiles::load() };
        assert_eq!(files.files.len(), FILES.len(), "each has a content type");
        let bytes: usize = FILES.iter().map(|(_, bytes)| bytes.len()).sum();
        assert!(bytes <= UI_BYTES_MAX, "{bytes} bytes, at most {UI_BYTES_MAX}");
        assert!(files.find("").unwrap().kind.starts_with("text/html"));
        assert!(files.find("VENDOR.md").is_none() && files.find("../build.rs").is_none());
    }

    #[test]
    fn a_directory_is_not_left() {
        let parent = tempfile::tempdir().unwrap();
        let directory = parent.path().join("ui");
        std::fs::create_dir_all(directory.join("vendor")).unwrap();
        std::fs::write(parent.path().join("secret.js"), "no").unwrap();
        std::fs::write(directory.join("index.html"), "<p>").unwrap();
        std::fs::write(directory.join("vendor/a.js"), "1").unwrap();
        std::fs::write(directory.join("notes.md"), "no").unwrap();
        let files = UiFiles { files: Vec::new(), directory: Some(directory) };
        assert_eq!(files.find("").unwrap().bytes.as_ref(), b"<p>");
        assert_eq!(files.find("vendor/a.js").unwrap().bytes.as_ref(), b"1");
        for path in ["../secret.js", "vendor/../../secret.js", "/etc/a.js", "notes.md", "vendor"] {
            assert!(files.find(path).is_none(), "{path}");
        }
    }
}
