//! Damage to files: reported with file and offset, never repaired by deleting.

use std::io;

/// Why a file of the store could not be used.
#[derive(Debug, thiserror::Error)]
pub enum Damage {
    /// The bytes differ from those that were written.
    #[error("{file} is damaged at byte {offset}: {what}")]
    Corrupt {
        /// File name within the data directory.
        file: String,
        /// Where.
        offset: u64,
        /// The check that failed.
        what: String,
    },
    /// The file was written by a newer version.
    #[error("{file} has format {found}; this version reads up to {known}: use a newer dormouse")]
    Newer {
        /// File name within the data directory.
        file: String,
        /// The format found.
        found: u32,
        /// The newest format known here.
        known: u32,
    },
    /// The operating system said no.
    #[error("{file}: {source}")]
    Io {
        /// File name within the data directory.
        file: String,
        /// The error of the operating system.
        source: io::Error,
    },
}

impl Damage {
    /// Bytes that do not fit.
    pub fn corrupt(file: &str, offset: u64, what: impl Into<String>) -> Damage {
        Damage::Corrupt { file: file.to_owned(), offset, what: what.into() }
    }

    /// An I/O error on a file.
    pub fn io(file: &str, source: io::Error) -> Damage {
        Damage::Io { file: file.to_owned(), source }
    }
}
