//! The rig of real Redis servers does what its tests rely on.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use dormouse_check::harness::redis::{
    Append, IsolatedCluster, NODE_TIMEOUT, RedisCluster, RedisConfig, RedisServer, Reply, Spot,
};

fn is_process(pid: u32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

#[test]
fn a_killed_server_that_syncs_always_keeps_its_data() {
    let config = RedisConfig { append: Append::Always, ..RedisConfig::default() };
    let mut server = RedisServer::start(config);
    let (port, pid) = (server.port(), server.pid());
    for number in 0..100 {
        server.must(&["SET", &format!("k{number}"), &number.to_string()]);
    }
    server.kill_nine();
    assert!(!is_process(pid) && !server.is_running());
    assert!(server.try_command(&["PING"]).is_err());
    server.restart();
    assert_eq!(server.port(), port);
    assert_ne!(server.pid(), pid);
    assert_eq!(server.command(&["DBSIZE"]), Reply::Int(100));
    assert_eq!(server.command(&["GET", "k99"]).text(), "99");
}

#[test]
fn a_server_without_a_file_comes_back_empty() {
    let mut server = RedisServer::start(RedisConfig::default());
    server.must(&["SET", "k", "v"]);
    server.restart();
    assert_eq!(server.command(&["GET", "k"]), Reply::Nil);
}

#[test]
fn nothing_is_left_of_a_server_that_is_dropped() {
    let mut server = RedisServer::start(RedisConfig::default());
    server.freeze();
    let (pid, dir) = (server.pid(), server.dir().to_owned());
    assert!(is_process(pid) && dir.is_dir());
    drop(server);
    assert!(!is_process(pid) && !dir.exists());
}

#[test]
fn a_frozen_server_answers_when_it_is_thawed() {
    let mut server = RedisServer::start(RedisConfig::default());
    server.freeze();
    let socket = server.dir().join("socket");
    let mut stream = std::os::unix::net::UnixStream::connect(socket).unwrap();
    stream.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    std::io::Write::write_all(&mut stream, b"PING\r\n").unwrap();
    let silence = std::io::Read::read(&mut stream, &mut [0; 7]).unwrap_err();
    assert_eq!(silence.kind(), std::io::ErrorKind::WouldBlock);
    server.thaw();
    stream.set_read_timeout(None).unwrap();
    let mut answer = [0; 7];
    std::io::Read::read_exact(&mut stream, &mut answer).unwrap();
    assert_eq!(&answer, b"+PONG\r\n");
}

#[test]
fn commands_inside_scripts_are_counted_and_the_rigs_own_are_not() {
    let server = RedisServer::start(RedisConfig::default());
    server.reset_stats();
    let script = "redis.call('SET', KEYS[1], 1) return redis.call('GET', KEYS[1])";
    assert_eq!(server.command(&["EVAL", script, "1", "k"]).text(), "1");
    assert_eq!(server.info("server", "redis_mode"), "standalone");
    let stats = server.commandstats();
    assert_eq!((stats["set"], stats["get"], stats["eval"]), (1, 1, 1));
    assert_eq!((server.commands_run(), server.scripts_run()), (2, 1));
}

#[test]
fn slow_calls_and_memory_are_told() {
    let server = RedisServer::start(RedisConfig::default());
    let before = server.memory_used();
    server.slow_from_micros(0);
    server.reset_stats();
    server.must(&["SET", "k", &"x".repeat(1 << 20)]);
    assert!(server.memory_used() >= before + (1 << 20));
    assert!(server.slowlog().iter().any(|call| call.words[..2] == ["SET", "k"]));
}

#[test]
fn beyond_maxmemory_writes_are_refused() {
    let config = RedisConfig { maxmemory: Some(4 << 20), ..RedisConfig::default() };
    let server = RedisServer::start(config);
    let body = "x".repeat(1 << 20);
    let refused = (0..8).map(|number| server.command(&["SET", &format!("k{number}"), &body]));
    let refused = refused.filter_map(|reply| reply.error().map(str::to_owned)).next();
    assert!(refused.unwrap().starts_with("OOM"));
}

#[test]
fn a_server_with_a_wrong_configuration_says_why() {
    let config = RedisConfig { extra: vec!["no-such-word 1".to_owned()], ..RedisConfig::default() };
    let panic = std::panic::catch_unwind(|| RedisServer::start(config)).unwrap_err();
    let text = panic.downcast_ref::<String>().unwrap();
    assert!(text.contains("no-such-word"), "{text}");
}

/// A cluster of the usual size, and how long it took to make.
fn cluster() -> RedisCluster {
    let began_at = Instant::now();
    let cluster = RedisCluster::start(3, 1);
    eprintln!("redis_harness: a cluster in {:?}", began_at.elapsed());
    cluster
}

#[test]
fn a_real_process_cluster_fails_over_and_takes_its_old_primary_back() {
    let mut cluster = cluster();
    assert_eq!(cluster.primaries(), [0, 1, 2]);
    let slot = cluster.slot_of("k");
    let primary = cluster.primary_of(slot);
    let replica = cluster.replica_of(primary);
    assert_eq!(cluster.command_on(primary, &["SET", "k", "before"]).text(), "OK");
    assert_eq!(cluster.command_on(primary, &["WAIT", "1", "5000"]), Reply::Int(1));

    cluster.kill_primary(primary);
    let took = cluster.await_failover(slot);
    eprintln!("redis_rig: failover in {took:?}");
    assert!(took >= NODE_TIMEOUT, "nobody is suspected earlier: {took:?}");
    assert_eq!(cluster.primary_of(slot), replica);
    assert_eq!(cluster.command_on(replica, &["GET", "k"]).text(), "before");
    assert_eq!(cluster.command_on(replica, &["SET", "k", "after"]).text(), "OK");

    cluster.restart(primary);
    cluster.await_whole();
    assert_eq!(cluster.replica_of(replica), primary);
    let pids: Vec<u32> = cluster.nodes().iter().map(RedisServer::pid).collect();
    drop(cluster);
    assert!(!pids.into_iter().any(is_process));
}

#[test]
fn a_real_process_cluster_answers_ask_then_moved_while_a_slot_moves() {
    let cluster = cluster();
    let slot = cluster.slot_of("{t}a");
    let from = cluster.primary_of(slot);
    let to = cluster.primaries().into_iter().find(|node| *node != from).unwrap();
    let (keys, there) = (["{t}a", "{t}b", "{t}c"], cluster.nodes()[to].address());
    for key in keys {
        assert_eq!(cluster.command_on(from, &["SET", key, key]).text(), "OK");
    }

    let moving = cluster.begin_move(slot, from, to);
    assert_eq!(cluster.command_on(from, &["GET", keys[0]]).text(), keys[0]);
    assert_eq!(moving.step(1), 1);
    let answers = keys.map(|key| cluster.command_on(from, &["GET", key]));
    let asks: Vec<&str> = answers.iter().filter_map(Reply::error).collect();
    assert_eq!(asks, [format!("ASK {slot} {there}")]);
    let some = cluster.command_on(from, &["MGET", keys[0], keys[1], keys[2]]);
    assert!(some.error().is_some_and(|text| text.starts_with("TRYAGAIN")), "{some:?}");

    moving.finish();
    let moved = format!("MOVED {slot} {there}");
    for key in keys {
        assert_eq!(cluster.command_on(from, &["GET", key]).error(), Some(moved.as_str()));
        assert_eq!(cluster.command_on(to, &["GET", key]).text(), key);
    }
    assert_eq!(cluster.primary_of(slot), to);
    assert_eq!(cluster.move_slot(slot, to, from, Duration::from_millis(1)), 3);
    assert_eq!(cluster.command_on(from, &["GET", keys[0]]).text(), keys[0]);
}

/// Whether a server answers a client in the network of a spot.
fn answers(net: &IsolatedCluster, from: Spot, node: usize) -> bool {
    let address = net.cluster().nodes()[node].address().parse().expect("an address");
    let timeout = Duration::from_millis(300);
    net.run_in(from, || std::net::TcpStream::connect_timeout(&address, timeout).is_ok())
}

#[test]
fn a_real_process_partition_separates_a_primary_and_its_client_from_the_rest() {
    let Some(mut net) = IsolatedCluster::start(2) else { return };
    let (near, far) = (Spot::Client(0), Spot::Client(1));
    let slot = net.cluster().slot_of("k");
    let primary = net.cluster().primary_of(slot);
    let replica = net.cluster().replica_of(primary);
    let all = [near, far, Spot::Host, Spot::Node(replica)];
    assert!(all.iter().all(|from| answers(&net, *from, primary)));

    net.cut(&[Spot::Node(primary), near]);
    assert_eq!(all.map(|from| answers(&net, from, primary)), [true, false, false, false]);
    assert_eq!(all.map(|from| answers(&net, from, replica)), [false, true, true, true]);
    // The old primary takes a write that nobody else will know.
    assert_eq!(net.cluster().command_on(primary, &["SET", "k", "lost"]).text(), "OK");
    let took = net.cluster().await_failover(slot);
    eprintln!("redis_rig: failover of a primary that is cut off in {took:?}");
    assert_eq!(net.cluster().primary_of(slot), replica);
    let refused = net.cluster().command_on(primary, &["SET", "k", "late"]);
    assert!(refused.error().is_some_and(|text| text.starts_with("CLUSTERDOWN")), "{refused:?}");
    assert_eq!(net.cluster().command_on(replica, &["SET", "k", "kept"]).text(), "OK");

    net.heal();
    net.cluster().await_whole();
    assert!(all.iter().all(|from| answers(&net, *from, primary)));
    assert_eq!(net.cluster().replica_of(replica), primary);
    assert_eq!(net.cluster().command_on(replica, &["GET", "k"]).text(), "kept");
}

#[test]
fn a_real_process_in_a_clients_place_is_reached_while_it_is_cut_off() {
    let Some(mut net) = IsolatedCluster::start(1) else { return };
    net.cut(&[Spot::Client(0)]);
    let listener = net.run_in(Spot::Client(0), || std::net::TcpListener::bind("0.0.0.0:0"));
    let port = listener.as_ref().unwrap().local_addr().unwrap().port();
    std::net::TcpStream::connect((net.near_address(0), port)).unwrap();
    assert!(!answers(&net, Spot::Client(0), 0));

    let output = net.command_in(Spot::Client(0), "ip").args(["-o", "link"]).output().unwrap();
    let links = String::from_utf8(output.stdout).unwrap();
    assert!(links.contains("eth0") && links.contains("near"), "{links}");
}

/// Set for a test that is to be killed by another one.
const VICTIM: &str = "DORMOUSE_REDIS_RIG_VICTIM";

/// Processes and interfaces that must not be left behind.
#[derive(Debug)]
struct Traces {
    pids: Vec<u32>,
    /// Network links, directories.
    paths: Vec<PathBuf>,
    /// Network namespaces.
    networks: BTreeSet<PathBuf>,
}

impl Traces {
    fn of(server: &RedisServer, net: Option<&IsolatedCluster>) -> Traces {
        let servers = net.map(|net| net.cluster().nodes()).unwrap_or_default();
        let cables = net.map(IsolatedCluster::cables).unwrap_or_default();
        let cables = cables.iter().map(|cable| Path::new("/sys/class/net").join(cable));
        let dirs = servers.iter().chain([server]).map(|server| server.dir().to_owned());
        let held = net.map(IsolatedCluster::processes).unwrap_or_default();
        Traces {
            paths: cables.chain(dirs).collect(),
            networks: held.iter().filter_map(|pid| network_of(&pid.to_string())).collect(),
            pids: held.into_iter().chain([server.pid()]).collect(),
        }
    }

    /// Panics if they are not all there.
    fn check_present(&self) {
        assert!(self.pids.iter().all(|pid| is_process(*pid)), "{self:?}");
        assert!(self.paths.iter().all(|path| path.exists()), "{self:?}");
    }

    fn is_gone(&self) -> bool {
        !self.pids.iter().any(|pid| is_process(*pid)) && !self.paths.iter().any(|p| p.exists())
    }

    /// Whether no process is in the networks any more: then the kernel takes them down.
    fn is_left(&self) -> bool {
        let processes = fs::read_dir("/proc").expect("there are processes").flatten();
        let networks = processes.filter_map(|p| network_of(&p.file_name().to_string_lossy()));
        networks.collect::<BTreeSet<_>>().is_disjoint(&self.networks)
    }
}

fn network_of(pid: &str) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{pid}/ns/net")).ok()
}

#[test]
fn a_real_process_network_leaves_nothing_behind() {
    let Some(mut net) = IsolatedCluster::start(1) else { return };
    net.cut(&[Spot::Node(0), Spot::Client(0)]);
    let server = RedisServer::start(RedisConfig::default());
    let traces = Traces::of(&server, Some(&net));
    assert_eq!(traces.networks.len(), 8, "six nodes, a client, the switch: {traces:?}");
    assert_eq!(net.cables().len(), 2, "this machine's and the client's: {traces:?}");
    traces.check_present();
    drop((net, server));
    // At once, not some time later: the next test may get the same addresses.
    assert!(traces.is_gone() && traces.is_left(), "{traces:?}");
}

/// Not a test by itself: tells what it started, and waits.
#[test]
fn a_real_process_waits_to_be_killed() {
    if std::env::var_os(VICTIM).is_none() {
        return;
    }
    let mut server = RedisServer::start(RedisConfig::default());
    server.freeze();
    let net = IsolatedCluster::start(1);
    let Traces { pids, paths, networks } = Traces::of(&server, net.as_ref());
    // Lines of their own: the harness may have begun one.
    println!();
    pids.iter().for_each(|pid| println!("pid {pid}"));
    paths.iter().for_each(|path| println!("path {}", path.display()));
    networks.iter().for_each(|network| println!("network {}", network.display()));
    println!("told");
    loop {
        std::thread::park();
    }
}

#[test]
fn a_real_process_that_is_killed_leaves_nothing_behind() {
    let mut victim = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "a_real_process_waits_to_be_killed", "--nocapture"])
        .env(VICTIM, "1")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(victim.stdout.take().unwrap()).lines().map_while(Result::ok);
    let lines: Vec<String> = lines.take_while(|line| line != "told").collect();
    let told = |kind| lines.iter().filter_map(move |line| line.strip_prefix(kind));
    let traces = Traces {
        pids: told("pid ").map(|pid| pid.parse().unwrap()).collect(),
        paths: told("path ").map(PathBuf::from).collect(),
        networks: told("network ").map(PathBuf::from).collect(),
    };
    assert!(!traces.pids.is_empty());
    traces.check_present();

    victim.kill().unwrap();
    victim.wait().unwrap();
    let deadline = Instant::now() + Duration::from_secs(20);
    while !traces.is_gone() || !traces.is_left() {
        assert!(Instant::now() < deadline, "something is left behind: {traces:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
