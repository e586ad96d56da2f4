//! Both servers as processes, on free ports of loopback.

use std::io::{BufRead as _, BufReader};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::setup::Setup;

/// Names the program of the original.
const ORIGINAL: &str = "DORMOUSE_BEANSTALKD";
/// Nothing here takes that long unless it hangs.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(20);
/// Somebody else may take a port between the look at it and the start.
const TRIES: usize = 5;

/// A server; killed when it is dropped.
pub(crate) struct Server {
    child: Child,
    pub(crate) addr: SocketAddr,
    _dir: TempDir,
}

impl Server {
    /// `dormouse beanstalkd`, which logs its port with -V.
    pub(crate) fn ours(setup: &Setup) -> Server {
        let dir = tempfile::tempdir().unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_dormouse"));
        command.args(["beanstalkd", "-V", "-l", "127.0.0.1", "-p", "0"]);
        command.arg("-z").arg(setup.body_bytes_max.to_string());
        if setup.is_on_disk {
            command.arg("-b").arg(dir.path().join("store"));
        }
        let mut child = quiet(command, &dir).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let addr = lines.by_ref().map_while(Result::ok).find_map(|line| {
            let (_, addr) = line.split_once("listening on ")?;
            addr.trim().parse().ok()
        });
        // Later log lines must not fill the pipe.
        std::thread::spawn(move || lines.count());
        let addr = addr.expect("it prints its address");
        let mut server = Server { child, addr, _dir: dir };
        // The original is asked so too, and counts connections.
        assert!(server.comes_up(), "it has ended");
        server
    }

    /// The original, which wants a port by number.
    pub(crate) fn original(setup: &Setup) -> Server {
        let program = std::env::var_os(ORIGINAL).map(PathBuf::from);
        let program = program.unwrap_or_else(|| {
            panic!("{ORIGINAL} is to be the program of the original; `cargo xtask foreign` sets it")
        });
        for _ in 0..TRIES {
            let addr = free_addr();
            let dir = tempfile::tempdir().unwrap();
            let mut command = Command::new(&program);
            command.args(["-l", "127.0.0.1", "-p"]).arg(addr.port().to_string());
            command.arg("-z").arg(setup.body_bytes_max.to_string());
            let child = quiet(command, &dir).spawn();
            let child = child.unwrap_or_else(|error| panic!("{}: {error}", program.display()));
            let mut server = Server { child, addr, _dir: dir };
            if server.comes_up() {
                return server;
            }
        }
        panic!("{} does not start", program.display());
    }

    /// Whether it has not ended by itself.
    pub(crate) fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// False if it ends instead, because somebody has taken its port.
    fn comes_up(&mut self) -> bool {
        let start = Instant::now();
        while self.is_running() {
            if TcpStream::connect(self.addr).is_ok() {
                return self.is_running();
            }
            assert!(start.elapsed() < TIMEOUT, "nobody listens on {}", self.addr);
            std::thread::yield_now();
        }
        false
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// In a directory of its own, without what the environment of the tests might say to it.
fn quiet(mut command: Command, dir: &TempDir) -> Command {
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("DORMOUSE_") {
            command.env_remove(name);
        }
    }
    command.current_dir(dir.path());
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

fn free_addr() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).unwrap()
}
