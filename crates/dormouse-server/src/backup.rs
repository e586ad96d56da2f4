//! Backups: requested by name, made by the program that opened the store.

use std::path::PathBuf;

use dormouse_core::error::Error;

/// A backup that was made.
#[derive(Clone, Debug)]
pub struct Backup {
    /// Its directory on the server.
    pub path: PathBuf,
    /// The number of its files.
    pub files: u64,
    /// The bytes of its files.
    pub bytes: u64,
}

/// Makes a backup of this name. Blocks.
pub type MakeBackup = dyn Fn(&str) -> Result<Backup, Error> + Send + Sync;
