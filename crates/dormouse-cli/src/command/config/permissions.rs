//! Files and directories that other users of this machine could read or change.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// The group or others may write.
const WRITE: u32 = 0o022;
/// Others may read. The group may: that is how a file is given to the server's user.
const READ: u32 = 0o004;

/// Describes a mode that lets other users in, and the fix; `None` if the mode is right or the file
/// is absent. Others may read the file unless it `is_secret`.
pub(crate) fn exposure(what: &str, path: &Path, is_secret: bool) -> Option<String> {
    let mode = fs::metadata(path).ok()?.permissions().mode() & 0o7777;
    let is_read = is_secret && mode & READ != 0;
    let (can, fix) = match (is_read, mode & WRITE != 0) {
        (false, false) => return None,
        (true, false) => ("read", "o="),
        (false, true) => ("change", "go-w"),
        (true, true) => ("read and change", "go-w,o="),
    };
    let path = path.display();
    Some(format!(
        "{what} {path} has mode {mode:04o}, so other users can {can} it; run `chmod {fix} {path}`"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mode_that_lets_others_in_is_told_with_its_fix() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let path = file.path();
        let check = |mode: u32, is_secret: bool, expected: Option<&str>| {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
            let found = exposure("file", path, is_secret);
            let expected = expected.map(|text| {
                let (can, fix) = text.split_once(": ").unwrap();
                let path = path.display();
                format!(
                    "file {path} has mode {mode:04o}, so other users can {can} it; run `chmod \
                     {fix} {path}`"
                )
            });
            assert_eq!(found, expected, "{mode:o}");
        };
        check(0o600, true, None);
        check(0o640, true, None);
        check(0o711, true, None);
        check(0o644, false, None);
        check(0o644, true, Some("read: o="));
        check(0o755, true, Some("read: o="));
        check(0o660, true, Some("change: go-w"));
        check(0o666, false, Some("change: go-w"));
        check(0o666, true, Some("read and change: go-w,o="));
        assert_eq!(exposure("file", Path::new("/nowhere/x"), true), None);
    }
}
