//! The server in a memory cgroup of 256 MiB, where the machine lets us make one.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

const MEMORY: &str = "268435456";

/// A running `dormouse serve`.
pub(crate) struct Server {
    child: Child,
    addr: SocketAddr,
    resp: Option<SocketAddr>,
    cgroup: Option<PathBuf>,
    _data: tempfile::TempDir,
}

impl Server {
    /// HTTP without tokens.
    pub(crate) fn start() -> Server {
        Server::launch(tempfile::tempdir().unwrap(), &["--resp", "off"], make_cgroup())
    }

    /// HTTP and RESP with these tokens, each with a name and a scope; `secret` has their texts.
    pub(crate) fn with_tokens(tokens: &[(&str, &str)], args: &[&str]) -> Server {
        Server::configured(tokens, args, make_cgroup())
    }

    /// As `with_tokens`, without a limit of memory: as much as may be leased is in memory.
    pub(crate) fn unlimited(tokens: &[(&str, &str)]) -> Server {
        Server::configured(tokens, &[], None)
    }

    fn configured(tokens: &[(&str, &str)], args: &[&str], cgroup: Option<PathBuf>) -> Server {
        let data = tempfile::tempdir().unwrap();
        let config = data.path().join("dormouse.toml");
        write_tokens(&config, tokens);
        let served = ["--resp", "127.0.0.1:0", "--config", config.to_str().unwrap()];
        Server::launch(data, &[&served, args].concat(), cgroup)
    }

    fn launch(data: tempfile::TempDir, args: &[&str], cgroup: Option<PathBuf>) -> Server {
        let mut command = Command::new("sh");
        // The process joins before it becomes the server, so that every byte counts.
        let join = cgroup.as_ref().map_or(String::new(), |cgroup| {
            format!("echo $$ > {}/cgroup.procs && ", cgroup.display())
        });
        command
            .arg("-c")
            .arg(format!("{join}ulimit -n 8192; exec \"$0\" \"$@\""))
            .arg(env!("CARGO_BIN_EXE_dormouse"))
            .args(["serve", "--http", "127.0.0.1:0", "--data"])
            .arg(data.path().join("data"))
            .args(args)
            .stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut line = || lines.next().unwrap().unwrap();
        let addr = line().rsplit_once("http://").unwrap().1.parse().unwrap();
        let has_resp = !args.contains(&"off");
        let resp = has_resp.then(|| line().rsplit_once(" on ").unwrap().1.parse().unwrap());
        Server { child, addr, resp, cgroup, _data: data }
    }

    pub(crate) fn addr(&self) -> SocketAddr {
        self.addr
    }

    pub(crate) fn resp(&self) -> SocketAddr {
        self.resp.unwrap()
    }

    /// The most memory it ever had.
    pub(crate) fn rss_max(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() << 10
    }

    pub(crate) fn cgroup(&self) -> String {
        self.cgroup
            .as_ref()
            .map_or("none, not allowed".into(), |cgroup| cgroup.display().to_string())
    }

    pub(crate) fn stop(mut self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        let status = self.child.wait().unwrap();
        assert!(status.success(), "{status}");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if let Some(cgroup) = &self.cgroup {
            let _ = fs::remove_dir(cgroup);
        }
    }
}

/// The token of this name.
pub(crate) fn secret(name: &str) -> String {
    format!("{name}-0123456789abcdef0123456789abcdef")
}

fn write_tokens(path: &Path, tokens: &[(&str, &str)]) {
    let table = |(name, scope): &(&str, &str)| {
        let secret = path.with_file_name(format!("{name}.token"));
        fs::write(&secret, self::secret(name)).unwrap();
        let secret = secret.display();
        format!(
            "[[tokens]]\nname = \"{name}\"\ntoken_file = \"{secret}\"\nscopes = [\"{scope}\"]\n"
        )
    };
    fs::write(path, tokens.iter().map(table).collect::<String>()).unwrap();
}

/// Version 1 or 2 of cgroups; `None` if neither lets us.
fn make_cgroup() -> Option<PathBuf> {
    static SERVERS: AtomicUsize = AtomicUsize::new(0);
    let number = SERVERS.fetch_add(1, Ordering::Relaxed);
    let name = format!("dormouse-abuse-{}-{number}", std::process::id());
    let trees =
        [("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")];
    trees.iter().find_map(|(tree, limit)| {
        let cgroup = PathBuf::from(tree).join(&name);
        fs::create_dir(&cgroup).ok()?;
        if fs::write(cgroup.join(limit), MEMORY).is_ok() {
            return Some(cgroup);
        }
        let _ = fs::remove_dir(&cgroup);
        None
    })
}
