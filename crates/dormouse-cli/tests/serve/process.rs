//! A server in a process of its own, and HTTP without a client that could be wrong itself.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// Nothing here takes that long unless it hangs.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(30);

/// The binary, without what the environment of the tests might say to it.
pub(crate) fn command(args: &[&str]) -> Command {
    clean(Command::new(env!("CARGO_BIN_EXE_dormouse")), args)
}

pub(crate) fn clean(mut command: Command, args: &[&str]) -> Command {
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("DORMOUSE_") {
            command.env_remove(name);
        }
    }
    command.args(args).env_remove("NOTIFY_SOCKET");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// How a process ended, and what it said.
#[derive(Debug)]
pub(crate) struct ProcessEnd {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Runs a command that ends by itself.
pub(crate) fn run(args: &[&str]) -> ProcessEnd {
    Process::start(command(args)).wait()
}

/// A running process; it is killed if it is left behind.
pub(crate) struct Process {
    child: Child,
    stdout: Receiver<String>,
    stderr: Receiver<String>,
}

impl Process {
    pub(crate) fn start(mut command: Command) -> Process {
        let mut child = command.spawn().unwrap();
        let stdout = lines(child.stdout.take().unwrap());
        let stderr = lines(child.stderr.take().unwrap());
        Process { child, stdout, stderr }
    }

    /// The next line of stdout, if one comes before the process ends.
    pub(crate) fn line(&self) -> Option<String> {
        self.stdout.recv_timeout(TIMEOUT).ok()
    }

    /// Waits until stderr has a line with this text, and gives the line.
    pub(crate) fn wait_for(&self, text: &str) -> String {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let line = self.stderr.recv_timeout(left);
            let line = line.unwrap_or_else(|_| panic!("stderr never said {text:?}"));
            if line.contains(text) {
                return line;
            }
        }
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    pub(crate) fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    pub(crate) fn wait(mut self) -> ProcessEnd {
        let deadline = Instant::now() + TIMEOUT;
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(Instant::now() < deadline, "the process does not end");
            std::thread::sleep(Duration::from_millis(5));
        };
        let text = |lines: &Receiver<String>| lines.iter().collect::<Vec<_>>().join("\n");
        ProcessEnd { code: status.code(), stdout: text(&self.stdout), stderr: text(&self.stderr) }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Lines as they come; ends with the stream.
fn lines(stream: impl std::io::Read + Send + 'static) -> Receiver<String> {
    let (send, lines) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stream).lines() {
            if line.is_err() || send.send(line.unwrap_or_default()).is_err() {
                return;
            }
        }
    });
    lines
}

/// A server that is ready.
pub(crate) struct Server {
    pub(crate) process: Process,
    pub(crate) addr: SocketAddr,
}

impl Server {
    /// Starts one on a free port.
    pub(crate) fn start(args: &[&str]) -> Server {
        let all = [&["serve", "--http", "127.0.0.1:0", "--resp", "off"], args].concat();
        Server::ready(command(&all))
    }

    pub(crate) fn ready(command: Command) -> Server {
        let process = Process::start(command);
        let Some(line) = process.line() else {
            panic!("it did not start: {:?}", process.wait());
        };
        let addr = line.strip_prefix("http listening on http://").unwrap().parse().unwrap();
        Server { process, addr }
    }

    pub(crate) fn get(&self, path: &str) -> Reply {
        request(self.addr, "GET", path, &[], "")
    }

    pub(crate) fn put(&self, path: &str, body: &str) -> Reply {
        request(self.addr, "PUT", path, &[], body)
    }

    pub(crate) fn post(&self, path: &str, body: &str) -> Reply {
        request(self.addr, "POST", path, &[], body)
    }

    /// Asks it to stop, and waits until it has.
    pub(crate) fn stop(self) -> ProcessEnd {
        self.process.signal(Signal::TERM);
        self.process.wait()
    }
}

#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) body: String,
}

/// One request on a connection of its own.
pub(crate) fn request(
    addr: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> Reply {
    let mut socket = connect(addr);
    let mut head = format!("{method} {path} HTTP/1.1\r\nHost: {addr}\r\nConnection: close\r\n");
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    let length = body.len();
    head.push_str(&format!("Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n"));
    socket.write_all(head.as_bytes()).unwrap();
    socket.write_all(body.as_bytes()).unwrap();
    read_reply(socket)
}

/// A connection whose reads time out.
pub(crate) fn connect(addr: SocketAddr) -> TcpStream {
    let socket = TcpStream::connect(addr).unwrap();
    socket.set_read_timeout(Some(TIMEOUT)).unwrap();
    socket
}

/// Reads to the end of the connection.
pub(crate) fn read_reply(mut socket: TcpStream) -> Reply {
    let mut text = String::new();
    socket.read_to_string(&mut text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {text}"));
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Reply { status, body: body.to_owned() }
}
