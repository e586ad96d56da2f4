//! The rig of real Redis servers does what its tests rely on.

use std::path::Path;
use std::time::{Duration, Instant};

use dormouse_check::redis::{Append, NODE_TIMEOUT, RedisCluster, RedisConfig, RedisServer, Reply};

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
    eprintln!("redis_rig: a cluster in {:?}", began_at.elapsed());
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
