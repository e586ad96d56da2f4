//! A file system that fails on command, mounted where only the servers on it see it: it goes with
//! the process that holds it.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};

use super::super::server::on_path;
use crate::Result;

const SIZE: &str = "1G";
/// `$1` is the mount point.
const MOUNT_FULL: &str = r#"mount -t tmpfs -o size="$2" none "$1""#;
/// The image is beside the mount point.
const MOUNT_DEAD: &str = r#"truncate -s "$2" "$1.img" && mkfs.ext4 -q "$1.img" &&
mount -o loop "$1.img" "$1""#;
const MOUNT_AGAIN: &str = r#"umount "$1" && mount -o loop "$1.img" "$1""#;
/// The file system is shut down without its journal being written: as by a power cut, except that
/// later calls get errors.
const SHUT_DOWN: &str = r#"open(my $dir, "<", $ARGV[0]) or die "$!";
my $flags = pack("I", 2); ioctl($dir, 0x8004587D, $flags) or die "$!";"#;

/// How the disk fails.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    Full,
    Dead,
}

impl Fault {
    pub(super) fn name(self) -> &'static str {
        match self {
            Fault::Full => "full",
            Fault::Dead => "dead",
        }
    }

    pub(super) fn key(self) -> &'static str {
        match self {
            Fault::Full => "disk_full",
            Fault::Dead => "disk_dead",
        }
    }
}

pub(super) struct Volume {
    /// A shell in a mount namespace of its own.
    holder: Child,
    /// When it is closed the holder ends.
    input: Option<ChildStdin>,
    mount: PathBuf,
    fault: Fault,
}

impl Volume {
    /// Needs root, and for a dead disk mkfs.ext4, loop devices and perl.
    pub(super) fn new(mount: &Path, fault: Fault) -> Result<Volume> {
        if fault == Fault::Dead && (on_path("mkfs.ext4").is_none() || on_path("perl").is_none()) {
            return Err("there is no mkfs.ext4 or no perl".into());
        }
        std::fs::create_dir_all(mount)?;
        let script = if fault == Fault::Full { MOUNT_FULL } else { MOUNT_DEAD };
        let mut holder = Command::new("unshare")
            .args(["--mount", "sh", "-c", &format!("{script} && echo mounted && read end"), "sh"])
            .arg(mount)
            .arg(SIZE)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let (input, output) = (holder.stdin.take(), holder.stdout.take());
        let mut line = String::new();
        if let Some(output) = output {
            BufReader::new(output).read_line(&mut line)?;
        }
        if line.trim() != "mounted" {
            let why = holder.wait_with_output()?.stderr;
            let why = String::from_utf8_lossy(&why).trim().to_owned();
            return Err(format!("cannot mount a file system (root may): {why}").into());
        }
        Ok(Volume { holder, input, mount: mount.to_owned(), fault })
    }

    /// As the servers see it.
    pub(super) fn path(&self) -> &Path {
        &self.mount
    }

    /// As this process sees it.
    fn outside(&self) -> PathBuf {
        let below = self.mount.strip_prefix("/").unwrap_or(&self.mount);
        PathBuf::from(format!("/proc/{}/root", self.holder.id())).join(below)
    }

    /// Words before a program that is to see it.
    pub(super) fn under(&self) -> Vec<String> {
        let target = format!("--target={}", self.holder.id());
        vec!["nsenter".to_owned(), target, "--mount".to_owned(), "--".to_owned()]
    }

    /// A directory that is there for good.
    pub(super) fn make_dir(&self, name: &str) -> Result<()> {
        std::fs::create_dir_all(self.outside().join(name))?;
        Ok(File::open(self.outside())?.sync_all()?)
    }

    /// From now on nothing can be written.
    pub(super) fn fail(&self) -> Result<()> {
        match self.fault {
            Fault::Full => self.fill(),
            Fault::Dead => self.run(&["perl", "-e", SHUT_DOWN]),
        }
    }

    /// The disk is as it was, with what it has kept. Nobody may use it now.
    pub(super) fn mend(&self) -> Result<()> {
        match self.fault {
            Fault::Full => Ok(std::fs::remove_file(self.filler())?),
            Fault::Dead => self.run(&["sh", "-c", MOUNT_AGAIN, "sh"]),
        }
    }

    fn filler(&self) -> PathBuf {
        self.outside().join("filler")
    }

    /// Large pieces first, then small ones, until there is no room for any.
    fn fill(&self) -> Result<()> {
        let mut file = File::create(self.filler())?;
        for piece in [vec![0; 1 << 20], vec![0; 1 << 12], vec![0; 1]] {
            while file.write_all(&piece).is_ok() {}
        }
        Ok(())
    }

    /// Runs a program where the file system is seen, with the mount point as its last word.
    fn run(&self, words: &[&str]) -> Result<()> {
        let under = self.under();
        let [program, rest @ ..] = under.as_slice() else { return Ok(()) };
        let done = Command::new(program).args(rest).args(words).arg(&self.mount).output()?;
        if done.status.success() {
            return Ok(());
        }
        Err(format!("{}: {}", words[0], String::from_utf8_lossy(&done.stderr).trim()).into())
    }
}

impl Drop for Volume {
    fn drop(&mut self) {
        drop(self.input.take());
        // It ends by itself at the end of its input.
        let _ = self.holder.wait();
        let _ = std::fs::remove_file(self.mount.with_extension("img"));
    }
}
