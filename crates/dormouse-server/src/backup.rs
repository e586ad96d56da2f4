//! Backups: made by whoever opened the store, asked for by name.

use std::path::PathBuf;

use dormouse_core::error::Error;

/// A backup that was made.
#[derive(Clone, Debug)]
pub struct Backup {
    /// Where it lies on the server.
    pub path: PathBuf,
    /// Its files.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// Makes a backup of this name. Blocks.
pub type MakeBackup = dyn Fn(&str) -> Result<Backup, Error> + Send + Sync;
