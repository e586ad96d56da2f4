//! The servers' programs: where they are, or where they come from.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::super::contender::Maker;
use super::process::on_path;
use crate::Result;

/// A program each, or why there is none.
pub(in crate::peers) struct Programs {
    redis: std::result::Result<PathBuf, String>,
    beanstalkd: std::result::Result<PathBuf, String>,
    dormouse: std::result::Result<PathBuf, String>,
}

impl Programs {
    /// Looks for all of them; what has to be made or brought goes into the directory.
    pub(in crate::peers) fn find(dormouse: Option<&Path>, dir: &Path) -> Programs {
        Programs {
            redis: redis(dir),
            beanstalkd: beanstalkd(dir),
            dormouse: self::dormouse(dormouse),
        }
    }

    /// Where nobody else takes part.
    pub(in crate::peers) fn only_dormouse(named: Option<&Path>) -> Programs {
        let absent = || Err("only dormouse takes part".to_owned());
        Programs { redis: absent(), beanstalkd: absent(), dormouse: dormouse(named) }
    }

    pub(in crate::peers) fn of(&self, maker: Maker) -> Result<String> {
        let found = match maker {
            Maker::Redis => &self.redis,
            Maker::Beanstalkd => &self.beanstalkd,
            Maker::Dormouse => &self.dormouse,
        };
        Ok(found.as_ref().map(|path| path.display().to_string()).map_err(Clone::clone)?)
    }
}

/// Debian's redis-tools has the server too, but under the name of a tool of it: it looks at the
/// name it is called by.
fn redis(dir: &Path) -> std::result::Result<PathBuf, String> {
    if let Some(program) = on_path("redis-server") {
        return Ok(program);
    }
    let same = on_path("redis-check-rdb")
        .ok_or("there is no redis-server on the path; Debian's redis-tools has one")?;
    let link = dir.join("redis-server");
    symlink(same, &link).map_err(|error| format!("{}: {error}", link.display()))?;
    Ok(link)
}

/// The package is unpacked, not installed: no root is needed and no service started.
fn beanstalkd(dir: &Path) -> std::result::Result<PathBuf, String> {
    const SCRIPT: &str = "apt-get download beanstalkd && dpkg -x beanstalkd_*.deb .";
    if let Some(program) = on_path("beanstalkd") {
        return Ok(program);
    }
    let failed = |reason: String| {
        format!(
            "there is no beanstalkd on the path, and `{SCRIPT}` failed: {}; install it",
            reason.trim()
        )
    };
    let done = Command::new("sh").args(["-c", SCRIPT]).current_dir(dir).output();
    let done = done.map_err(|error| failed(error.to_string()))?;
    let program = dir.join("usr/bin/beanstalkd");
    if done.status.success() && program.is_file() {
        return Ok(program);
    }
    Err(failed(String::from_utf8_lossy(&done.stderr).into_owned()))
}

/// The one that was named, or the one that was built together with this program.
fn dormouse(named: Option<&Path>) -> std::result::Result<PathBuf, String> {
    let beside = || Some(std::env::current_exe().ok()?.with_file_name("dormouse"));
    let program = named.map(Path::to_owned).or_else(beside).unwrap_or_default();
    if program.is_file() {
        return Ok(program);
    }
    Err(format!(
        "there is no {}; `cargo build --release` makes it, or give --dormouse",
        program.display()
    ))
}
