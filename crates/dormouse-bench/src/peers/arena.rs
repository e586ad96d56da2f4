//! Where the contenders meet: their programs, and directories on one file system.

use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::contender::Contender;
use super::server::{Extras, Programs, Server};
use crate::Result;

pub(super) struct Arena {
    pub(super) programs: Programs,
    dir: TempDir,
    /// Servers started so far; each gets a directory of its own.
    entered: u64,
}

/// A contender's server on a fresh directory, which goes with it.
pub(super) struct Entered {
    /// Ends before its directory.
    pub(super) server: Server,
    _data: Data,
}

struct Data(PathBuf);

impl Drop for Data {
    fn drop(&mut self) {
        // The whole arena is removed at the end anyway.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Arena {
    /// Below a directory, or next to this program.
    pub(super) fn new(dir: Option<&Path>, dormouse: Option<&Path>) -> Result<Arena> {
        let beside = std::env::current_exe()?.parent().map(Path::to_owned).unwrap_or_default();
        let below = dir.unwrap_or(&beside);
        let dir = tempfile::Builder::new().prefix("dormouse-peers-").tempdir_in(below)?;
        let programs = Programs::find(dormouse, dir.path());
        Ok(Arena { programs, dir, entered: 0 })
    }

    pub(super) fn enter(&mut self, contender: Contender) -> Result<Entered> {
        self.enter_with(contender, &Extras::default())
    }

    pub(super) fn enter_with(&mut self, contender: Contender, extras: &Extras) -> Result<Entered> {
        let (data, log) = self.places();
        let removed = Data(data.clone());
        let server = Server::start(&self.programs, contender, &data, &log, extras)?;
        Ok(Entered { server, _data: removed })
    }

    /// A name for a directory and one for a log that nobody has.
    pub(super) fn places(&mut self) -> (PathBuf, PathBuf) {
        self.entered += 1;
        let below = |kind| self.dir.path().join(format!("{kind}-{}", self.entered));
        (below("data"), below("log"))
    }
}
