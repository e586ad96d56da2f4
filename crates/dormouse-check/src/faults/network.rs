//! Networks without names: namespaces that live as long as a process in them.
//!
//! `ip netns` would leave its names behind when a test is killed. Here each namespace is held by a
//! sleeping process that ends with this one, and everything in it goes with it, also the ends of
//! its cables on this side.

use std::fs::{self, File};
use std::io::Write;
use std::net::Ipv4Addr;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::harness::redis::ports::Claim;
use crate::harness::redis::supervise::Supervised;
use crate::harness::redis::wait::until;

const TIMEOUT: Duration = Duration::from_secs(10);
/// The last part of this machine's own address in the network.
const HOST: u8 = 254;

/// Some namespaces, each with a cable to a switch that has two halves.
#[derive(Debug)]
pub(crate) struct Network {
    members: Vec<Namespace>,
    switch: Namespace,
    /// The ends of cables on this machine.
    cables: Vec<String>,
    /// The third part of all addresses.
    range: Claim,
}

/// The switch has two halves that do not know each other; each cable is in one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Half {
    Main,
    Aside,
}

/// An end of a cable: a member by its number, or this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Member(usize),
    Host,
}

impl Network {
    /// `members` namespaces, of which the last `reached` have a second cable that leads straight
    /// to this machine and is never cut.
    pub(crate) fn new(members: usize, reached: usize) -> Network {
        let range = Claim::new("range", 256, is_unused);
        let mut network = Network {
            members: (0..members).map(|_| Namespace::new()).collect(),
            switch: Namespace::new(),
            cables: Vec::new(),
            range,
        };
        network.plug_host();
        network.plug_members();
        for number in members - reached..members {
            network.reach(number);
        }
        network
    }

    /// The process that holds a member's namespace.
    pub(crate) fn pid(&self, member: usize) -> u32 {
        self.members[member].pid()
    }

    /// The ends of cables on this machine.
    pub(crate) fn cables(&self) -> &[String] {
        &self.cables
    }

    /// All processes that hold namespaces.
    pub(crate) fn holders(&self) -> impl Iterator<Item = u32> {
        self.members.iter().chain([&self.switch]).map(Namespace::pid)
    }

    /// A member's address behind the switch.
    pub(crate) fn address(&self, member: usize) -> Ipv4Addr {
        let last = u8::try_from(member + 1).expect("a small network");
        Ipv4Addr::new(10, 77, self.third(), last)
    }

    /// The address at which this machine reaches a member, even if that one is cut off.
    pub(crate) fn near_address(&self, member: usize) -> Ipv4Addr {
        let last = u8::try_from(2 * member + 1).expect("a small network");
        Ipv4Addr::new(10, 78, self.third(), last)
    }

    /// Plugs a cable into a half of the switch. Those in one half reach each other and nobody
    /// else; no connection is closed.
    pub(crate) fn plug(&self, end: End, half: Half) {
        let port = match end {
            End::Member(number) => format!("member{number}"),
            End::Host => "host".to_owned(),
        };
        let half = if half == Half::Main { "main" } else { "aside" };
        self.switch.ip(&[format!("link set {port} master {half}")]);
    }

    /// Runs on a thread inside the namespace of a member.
    pub(crate) fn run_in<T: Send>(&self, member: usize, work: impl FnOnce() -> T + Send) -> T {
        let path = self.members[member].path();
        let inside = || {
            let namespace = File::open(&path).expect("the namespace is held");
            let kind = Some(LinkNameSpaceType::Network);
            move_into_link_name_space(namespace.as_fd(), kind).expect("root may enter");
            work()
        };
        // A thread of its own: the calling one stays where it is.
        thread::scope(|scope| match scope.spawn(inside).join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        })
    }

    fn third(&self) -> u8 {
        u8::try_from(self.range.number).expect("a claim below 256")
    }

    fn plug_host(&mut self) {
        for half in ["main", "aside"] {
            self.switch
                .ip(&[format!("link add {half} type bridge"), format!("link set {half} up")]);
        }
        let (third, switch) = (self.third(), self.switch.pid());
        let name = cable(third);
        ip_here(&[
            format!("link add {name} type veth peer name host netns {switch}"),
            format!("addr add 10.77.{third}.{HOST}/24 dev {name}"),
            format!("link set {name} up"),
        ]);
        self.switch.ip(&["link set host master main up"]);
        self.cables.push(name);
    }

    fn plug_members(&self) {
        for (number, member) in self.members.iter().enumerate() {
            let (pid, address) = (member.pid(), self.address(number));
            self.switch.ip(&[
                format!("link add member{number} type veth peer name eth0 netns {pid}"),
                format!("link set member{number} master main up"),
            ]);
            let address = format!("addr add {address}/24 dev eth0");
            member.ip(&[&address, "link set eth0 up", "link set lo up"]);
        }
    }

    /// The second cable of a member.
    fn reach(&mut self, number: usize) {
        let (member, near) = (&self.members[number], self.near_address(number));
        let here = Ipv4Addr::from_bits(near.to_bits() - 1);
        let (name, pid) = (format!("{}-{number}", cable(self.third())), member.pid());
        ip_here(&[
            format!("link add {name} type veth peer name near netns {pid}"),
            format!("addr add {here}/31 dev {name}"),
            format!("link set {name} up"),
        ]);
        member.ip(&[&format!("addr add {near}/31 dev near"), "link set near up"]);
        self.cables.push(name);
    }
}

impl Drop for Network {
    /// The kernel takes namespaces down some time after their last process; the cables on this
    /// side must be gone before another test may have the range.
    fn drop(&mut self) {
        self.members.clear();
        for name in &self.cables {
            // The kernel may have been faster.
            let _ = Command::new("ip").args(["link", "del", name]).output();
        }
    }
}

/// A network namespace and the process that holds it.
#[derive(Debug)]
struct Namespace(Supervised);

impl Namespace {
    fn new() -> Namespace {
        let words = ["unshare", "--net", "sleep", "infinity"].map(str::to_owned);
        let namespace = Namespace(Supervised::start(&words, Path::new("/dev/null"), None));
        let here = fs::read_link("/proc/self/ns/net").expect("this process has a network");
        until("a network namespace", TIMEOUT, || match fs::read_link(namespace.path()) {
            Ok(there) if there != here => Ok(()),
            other => Err(format!("it has {other:?}, this process has {here:?}")),
        });
        namespace
    }

    fn pid(&self) -> u32 {
        self.0.pid()
    }

    fn path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/{}/ns/net", self.pid()))
    }

    fn ip<L: AsRef<str>>(&self, lines: &[L]) {
        ip(enter(self.pid()).arg("ip"), lines);
    }
}

/// The beginning of a command in the network of a process.
pub(crate) fn enter(pid: u32) -> Command {
    let mut command = Command::new("nsenter");
    command.arg(format!("--target={pid}")).arg("--net");
    command
}

fn ip_here(lines: &[String]) {
    ip(&mut Command::new("ip"), lines);
}

/// Runs lines of `ip`, all of which must do.
fn ip<L: AsRef<str>>(command: &mut Command, lines: &[L]) {
    let lines = lines.iter().map(AsRef::as_ref).collect::<Vec<_>>().join("\n");
    let command = command.args(["-batch", "-"]).stdin(Stdio::piped());
    let mut child = command.stderr(Stdio::piped()).spawn().expect("nsenter and ip are installed");
    let mut input = child.stdin.take().expect("the input was asked for");
    writeln!(input, "{lines}").expect("ip reads");
    drop(input);
    let output = child.wait_with_output().expect("ip ends");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "ip refuses\n{lines}\n{text}");
}

/// The name of this machine's cable; short, as names of links must be.
fn cable(third: u8) -> String {
    format!("dmouse{third}")
}

/// Whether this machine has no address and no route there.
fn is_unused(third: u16) -> bool {
    let routes = fs::read_to_string("/proc/net/fib_trie").unwrap_or_default();
    let links = Path::new("/sys/class/net").join(format!("dmouse{third}"));
    let has = |second: u8| routes.contains(&format!("10.{second}.{third}."));
    !has(77) && !has(78) && !links.exists()
}
