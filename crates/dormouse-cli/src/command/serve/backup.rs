//! Backups that clients ask for: by name, in a directory of the data directory.

use std::path::{Component, Path, PathBuf, absolute};

use dormouse_core::error::Error;
use dormouse_disk::engine::Engine;
use dormouse_server::{Backup, MakeBackup};

use crate::command::config::{BackendKind, Settings};

/// Where they lie: on the store's own file system, so that runs can be linked.
const BACKUPS_DIR: &str = "backups";

/// Makes backups of this store, if it has files.
pub(super) fn maker(engine: &Engine, settings: &Settings) -> Option<Box<MakeBackup>> {
    if settings.backend != BackendKind::Disk {
        return None;
    }
    let engine = engine.clone();
    // For an answer that says where to find it.
    let data = absolute(&settings.data).unwrap_or_else(|_| settings.data.clone());
    Some(Box::new(move |name| {
        let path = place(&data, name)?;
        let made = engine.backup(&path)?;
        tracing::info!("backup {}: {} files, {} bytes", path.display(), made.files, made.bytes);
        Ok(Backup { path, files: made.files, bytes: made.bytes })
    }))
}

/// The directory of a backup. Protocols have their own rules for names; here it must lead nowhere
/// else.
fn place(data: &Path, name: &str) -> Result<PathBuf, Error> {
    let mut parts = Path::new(name).components();
    let is_one = matches!(parts.next(), Some(Component::Normal(part)) if part == name);
    if !is_one || parts.next().is_some() || name.starts_with('.') || name.contains('\0') {
        return Err(Error::invalid(format!("{name:?} cannot be the name of a directory")));
    }
    Ok(data.join(BACKUPS_DIR).join(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_leads_nowhere_else() {
        let place = |name: &str| place(Path::new("/data"), name);
        for name in ["monday", "2027-01-01", "a.b_c-D", "x..y"] {
            assert_eq!(place(name), Ok(Path::new("/data/backups").join(name)));
        }
        for name in ["", ".", "..", ".x", "a/b", "../x", "/", "/x", "x/", "./x", "a\0"] {
            assert!(place(name).is_err(), "{name:?}");
        }
    }
}
