//! Metrics after known sequences of operations.

use std::net::SocketAddr;
use std::time::Duration;

use dormouse_core::backend::Backend;
use dormouse_core::command::Command;
use dormouse_core::job::JobId;
use dormouse_core::op::{Cancel, PauseTopic, SetTopic, Target};
use dormouse_core::topic::Settings;
use dormouse_disk::engine::{Engine, Options as EngineOptions};
use dormouse_server::limits::METRICS_TOPICS_MAX;
use dormouse_server::{BeanstalkAddr, BeanstalkOptions, Options};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::page::Page;
use crate::rig::{Rig, topic};

#[tokio::test]
async fn every_operation_is_counted() {
    let rig = Rig::start().await;
    // Ids 1 to 8, all due now but the last two.
    let jobs = "[{},{},{},{},{},{\"attempts_max\":1},{\"delay\":\"1h\"},{\"delay\":\"2h\"}]";
    rig.post("/v1/topics/orders/jobs", jobs).await;
    rig.clock.advance(Duration::from_millis(30));
    let mut tokens = Vec::new();
    for _ in 0..6 {
        tokens.push(rig.reserve("orders").await);
    }
    let end = async |verb: &str, token: &str, more: &str| {
        let body = format!("{{\"token\":\"{token}\"{more}}}");
        rig.post(&format!("/v1/{verb}"), &body).await;
    };
    end("ack", &tokens[0], "").await;
    end("nack", &tokens[1], ",\"delay\":\"1h\"").await;
    end("release", &tokens[2], "").await;
    end("kill", &tokens[3], "").await;
    // The last attempt of this one.
    end("nack", &tokens[5], "").await;
    let cancel = Cancel { target: Target::Id(JobId(8)), unless_leased: false };
    rig.backend.ask(Command::Cancel(vec![cancel])).await;
    rig.clock.advance(Duration::from_millis(1_500));

    let page = rig.metrics().await;
    page.check(&[
        ("dormouse_up", 1.0),
        // The one released.
        ("dormouse_jobs{topic=\"orders\",state=\"ready\"}", 1.0),
        // The one nacked, and the one of the next hour.
        ("dormouse_jobs{topic=\"orders\",state=\"delayed\"}", 2.0),
        ("dormouse_jobs{topic=\"orders\",state=\"leased\"}", 1.0),
        ("dormouse_jobs{topic=\"orders\",state=\"dead\"}", 2.0),
        ("dormouse_puts_total{topic=\"orders\"}", 8.0),
        ("dormouse_reserves_total{topic=\"orders\"}", 6.0),
        ("dormouse_acks_total{topic=\"orders\"}", 1.0),
        ("dormouse_nacks_total{topic=\"orders\"}", 2.0),
        ("dormouse_releases_total{topic=\"orders\"}", 1.0),
        ("dormouse_expiries_total{topic=\"orders\"}", 0.0),
        ("dormouse_dead_total{topic=\"orders\"}", 2.0),
        ("dormouse_cancels_total{topic=\"orders\"}", 1.0),
        ("dormouse_oldest_ready_seconds{topic=\"orders\"}", 1.5),
        ("dormouse_paused{topic=\"orders\"}", 0.0),
        ("dormouse_waiters{topic=\"orders\"}", 0.0),
        ("dormouse_all_jobs{state=\"delayed\"}", 2.0),
        ("dormouse_all_puts_total", 8.0),
        ("dormouse_all_dead_total", 2.0),
        // Of the engine itself.
        ("dormouse_leased_jobs", 1.0),
        ("dormouse_topics_alive", 1.0),
    ]);
    // No topic is left out.
    assert_eq!(page.labels("dormouse_puts_total", "topic").len(), 1);

    // The lease expires; the topic is paused.
    rig.clock.advance(Duration::from_secs(61));
    rig.backend.ask(Command::Pause(PauseTopic { topic: topic("orders"), for_ms: None })).await;
    rig.metrics().await.check(&[
        ("dormouse_expiries_total{topic=\"orders\"}", 1.0),
        ("dormouse_jobs{topic=\"orders\",state=\"leased\"}", 0.0),
        ("dormouse_jobs{topic=\"orders\",state=\"ready\"}", 2.0),
        ("dormouse_paused{topic=\"orders\"}", 1.0),
    ]);
}

#[tokio::test]
async fn lateness_falls_into_its_buckets() {
    let rig = Rig::start().await;
    for late_ms in [0, 1, 2, 30, 5_001, 4_000_000] {
        rig.post("/v1/topics/mails/jobs", "{}").await;
        rig.clock.advance(Duration::from_millis(late_ms));
        // Acked at once: an expired lease would make it late again.
        let token = rig.reserve("mails").await;
        rig.post("/v1/ack", &format!("{{\"token\":\"{token}\"}}")).await;
    }
    let page = rig.metrics().await;
    let bucket = |le: &str| {
        let series = format!("dormouse_lateness_seconds_bucket{{le=\"{le}\",topic=\"mails\"}}");
        page.get(&series).unwrap_or_else(|| panic!("{series}"))
    };
    let buckets = [
        ("0.001", 2.0),
        ("0.002", 3.0),
        ("0.005", 3.0),
        ("0.025", 3.0),
        ("0.05", 4.0),
        ("5.0", 4.0),
        ("30.0", 5.0),
        ("3600.0", 5.0),
        ("+Inf", 6.0),
    ];
    for (le, expected) in buckets {
        assert_eq!(bucket(le), expected, "{le}");
    }
    page.check(&[
        ("dormouse_lateness_seconds_count{topic=\"mails\"}", 6.0),
        ("dormouse_lateness_seconds_sum{topic=\"mails\"}", 4_005.034),
    ]);
}

#[tokio::test]
async fn topics_have_series_of_their_own_up_to_a_limit() {
    let rig = Rig::start().await;
    // One topic has the name of the label.
    let names = (0..1_000).map(|number| format!("t{number:04}")).chain(["_other".to_owned()]);
    rig.backend.put(names.clone()).await;
    let page = rig.metrics().await;
    for family in ["dormouse_jobs", "dormouse_puts_total", "dormouse_job_bytes"] {
        let topics = page.labels(family, "topic");
        assert_eq!(topics.len(), METRICS_TOPICS_MAX + 1, "{family}");
        assert!(topics.contains("_other"));
    }
    let others = 1_001.0 - METRICS_TOPICS_MAX as f64;
    page.check(&[
        // With more topics than a page the totals do not split delayed and ready.
        ("dormouse_jobs{topic=\"_other\",state=\"waiting\"}", others),
        ("dormouse_puts_total{topic=\"_other\"}", others),
        ("dormouse_all_puts_total", 1_001.0),
        ("dormouse_all_jobs{state=\"waiting\"}", 1_001.0),
    ]);
    assert_eq!(page.sum("dormouse_jobs"), 1_001.0);

    // One more put for each; reported counters do not decrease.
    rig.backend.put(names).await;
    rig.metrics().await.check(&[
        ("dormouse_puts_total{topic=\"_other\"}", 2.0 * others),
        ("dormouse_puts_total{topic=\"t0000\"}", 2.0),
        ("dormouse_all_puts_total", 2_002.0),
    ]);
}

/// Topics that come first by name, more than are shown.
#[tokio::test]
async fn many_topics_do_not_push_others_out() {
    let rig = Rig::start().await;
    rig.backend.put(["out.late".to_owned()].into_iter()).await;
    rig.clock.advance(Duration::from_secs(100));
    rig.backend.put((0..1_000).map(|number| format!("in.n{number:04}"))).await;
    rig.backend.put(std::iter::repeat_n("out.ready".to_owned(), 3)).await;
    rig.post("/v1/topics/out.dead/jobs", "{}").await;
    let token = rig.reserve("out.dead").await;
    rig.post("/v1/kill", &format!("{{\"token\":\"{token}\"}}")).await;
    rig.clock.advance(Duration::from_secs(200));
    let mut page = rig.metrics().await;
    // On a busy machine one page looks at a part of them only, at least at 200.
    for _ in 0..1_003 / METRICS_TOPICS_MAX {
        page = rig.metrics().await;
    }
    page.check(&[
        ("dormouse_oldest_ready_seconds{topic=\"out.late\"}", 300.0),
        ("dormouse_jobs{topic=\"out.ready\",state=\"ready\"}", 3.0),
        ("dormouse_jobs{topic=\"out.dead\",state=\"dead\"}", 1.0),
        // What is left out is told, and how bad it is.
        ("dormouse_topics_hidden", 1_003.0 - METRICS_TOPICS_MAX as f64),
        ("dormouse_oldest_ready_seconds{topic=\"_other\"}", 200.0),
    ]);
    assert_eq!(page.labels("dormouse_puts_total", "topic").len(), METRICS_TOPICS_MAX + 1);
}

#[tokio::test]
async fn configured_topics_are_always_shown() {
    let metrics_topics = vec![topic("z.fine"), topic("z.missing")];
    let rig = Rig::start_options(Options { metrics_topics, ..Options::default() }).await;
    rig.backend.put((0..1_000).map(|number| format!("in.n{number:04}"))).await;
    rig.clock.advance(Duration::from_secs(9));
    rig.backend.put(["z.fine".to_owned(), "z.other".to_owned()].into_iter()).await;
    let page = rig.metrics().await;
    let topics = page.labels("dormouse_jobs", "topic");
    assert!(topics.contains("z.fine"), "{topics:?}");
    assert!(!topics.contains("z.other") && !topics.contains("z.missing"), "{topics:?}");
}

#[tokio::test]
async fn a_topic_with_the_name_of_the_label_is_one_of_the_others() {
    let rig = Rig::start().await;
    rig.backend.put(["_other", "a"].into_iter().map(str::to_owned)).await;
    rig.metrics().await.check(&[
        ("dormouse_jobs{topic=\"_other\",state=\"ready\"}", 1.0),
        ("dormouse_puts_total{topic=\"_other\"}", 1.0),
        ("dormouse_puts_total{topic=\"a\"}", 1.0),
    ]);
}

#[tokio::test]
async fn waiting_jobs_of_the_others_are_one_state() {
    let rig = Rig::start().await;
    rig.backend.put((0..300).map(|number| format!("t{number:04}"))).await;
    rig.post("/v1/topics/z/jobs", "[{\"delay\":\"1h\"},{\"delay\":\"1h\"}]").await;
    let others = 300.0 - METRICS_TOPICS_MAX as f64;
    rig.metrics().await.check(&[
        ("dormouse_jobs{topic=\"_other\",state=\"waiting\"}", others + 2.0),
        ("dormouse_all_jobs{state=\"waiting\"}", 302.0),
    ]);
}

#[tokio::test]
async fn a_removed_topic_is_still_in_the_totals() {
    let rig = Rig::start().await;
    rig.post("/v1/topics/brief/jobs", "{}").await;
    let token = rig.reserve("brief").await;
    rig.post("/v1/ack", &format!("{{\"token\":\"{token}\"}}")).await;
    rig.clock.advance(Duration::from_secs(2));
    let page = rig.metrics().await;
    assert_eq!(page.labels("dormouse_puts_total", "topic").len(), 0);
    page.check(&[("dormouse_all_puts_total", 1.0), ("dormouse_all_acks_total", 1.0)]);
}

#[tokio::test]
async fn the_server_measures_itself() {
    let rig = Rig::start().await;
    let settings = Settings { jobs_max: Some(1), ..Settings::default() };
    rig.backend.ask(Command::from(SetTopic { topic: topic("small"), settings })).await;
    rig.post("/v1/topics/small/jobs", "{}").await;
    rig.post("/v1/topics/small/jobs", "[{},{}]").await;
    rig.reserve("small").await;
    assert_eq!(rig.get("/nowhere/in/particular", &[]).await.status, 404);
    let page = rig.metrics().await;
    let requests = |route: &str, method: &str, status: &str| {
        let labels = format!("route=\"{route}\",method=\"{method}\",status=\"{status}\"");
        page.get(&format!("dormouse_http_requests_total{{{labels}}}"))
    };
    assert_eq!(requests("/v1/topics/{topic}/jobs", "POST", "201"), Some(1.0));
    assert_eq!(requests("/v1/topics/{topic}/jobs", "POST", "200"), Some(1.0));
    assert_eq!(requests("/v1/topics/{topic}/reserve", "POST", "200"), Some(1.0));
    assert_eq!(requests("none", "GET", "404"), Some(1.0));
    page.check(&[
        ("dormouse_http_connections", 1.0),
        ("dormouse_http_connections_accepted_total", 5.0),
        ("dormouse_http_connections_refused_total", 0.0),
        ("dormouse_http_request_seconds_count{may_wait=\"false\"}", 3.0),
        ("dormouse_http_request_seconds_count{may_wait=\"true\"}", 1.0),
        ("dormouse_puts_full_total", 2.0),
        ("dormouse_event_streams", 0.0),
        ("dormouse_http_bodies_bytes", 0.0),
    ]);
    let version = env!("CARGO_PKG_VERSION");
    page.check(&[(&format!("dormouse_build_info{{version=\"{version}\"}}"), 1.0)]);
    if cfg!(target_os = "linux") {
        assert!(page.get("process_resident_memory_bytes") > Some(1e6));
        assert!(page.get("process_open_fds") > Some(3.0));
        assert!(page.get("process_start_time_seconds") > Some(1.6e9));
    }
}

#[tokio::test]
async fn a_page_is_made_once_a_second() {
    let rig = Rig::start().await;
    let first = rig.get("/metrics", &[]).await;
    assert!(first.head.contains("application/openmetrics-text; version=1.0.0"), "{}", first.head);
    rig.post("/v1/topics/a/jobs", "{}").await;
    assert_eq!(rig.get("/metrics", &[]).await.body, first.body);
    rig.metrics().await.check(&[("dormouse_all_puts_total", 1.0)]);
}

#[tokio::test]
async fn a_stopped_store_is_reported() {
    let rig = Rig::start().await;
    rig.backend.close();
    let page = rig.metrics().await;
    page.check(&[("dormouse_up", 0.0), ("dormouse_http_connections", 1.0)]);
    assert_eq!(page.get("dormouse_all_puts_total"), None);
}

#[tokio::test]
async fn metrics_need_a_token_for_all_topics() {
    let rig = Rig::start_with_tokens(&[("all", "metrics:*"), ("some", "viewer:a.*")]).await;
    let get = async |headers: &[(&str, &str)]| rig.get("/metrics", headers).await.status;
    assert_eq!(get(&[]).await, 401);
    assert_eq!(get(&[("Authorization", "Bearer some")]).await, 403);
    assert_eq!(get(&[("Authorization", "Bearer all")]).await, 200);
    assert_eq!(rig.get("/metrics?x=1", &[("Authorization", "Bearer all")]).await.status, 400);
}

#[tokio::test]
async fn connections_beyond_the_limit_are_counted() {
    let options = Options { connections_max: 1, ..Options::default() };
    let rig = Rig::start_options(options).await;
    // Connections are accepted in order.
    let mut only = TcpStream::connect(rig.addr).await.unwrap();
    let mut refused = TcpStream::connect(rig.addr).await.unwrap();
    let mut answer = String::new();
    refused.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    let request = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    only.write_all(request).await.unwrap();
    let mut answer = String::new();
    only.read_to_string(&mut answer).await.unwrap();
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    Page::parse(body).check(&[
        ("dormouse_http_connections", 1.0),
        ("dormouse_http_connections_accepted_total", 1.0),
        ("dormouse_http_connections_refused_total", 1.0),
    ]);
}

/// Sends a text on a new connection and expects a reply; the connection stays open.
async fn exchange(addr: SocketAddr, sent: &str, expected: &str) -> TcpStream {
    let mut socket = TcpStream::connect(addr).await.unwrap();
    socket.write_all(sent.as_bytes()).await.unwrap();
    let mut answer = vec![0; expected.len()];
    socket.read_exact(&mut answer).await.unwrap();
    assert_eq!(String::from_utf8(answer).unwrap(), expected);
    socket
}

/// All protocols share one limit; each refuses a connection beyond it in its own way.
#[tokio::test]
async fn connections_are_counted_by_protocol() {
    let free = "127.0.0.1:0".parse().unwrap();
    let beanstalk = Some(BeanstalkOptions::new(BeanstalkAddr::Tcp(free)));
    let options = Options { connections_max: 4, resp: Some(free), beanstalk, ..Options::default() };
    let rig = Rig::start_options(options).await;
    let (resp, beanstalk) = (rig.server.resp_addr(), rig.server.beanstalk_addr());
    let (resp, beanstalk) = (resp.unwrap(), beanstalk.unwrap());
    let _resp = exchange(resp, "PING\r\n", "+PONG\r\n").await;
    let _first = exchange(beanstalk, "use a\r\n", "USING a\r\n").await;
    let _second = exchange(beanstalk, "use b\r\n", "USING b\r\n").await;
    let mut http =
        exchange(rig.addr, "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n", "HTTP").await;
    for (addr, word) in [
        (resp, "-ERR max number of clients reached\r\n"),
        (beanstalk, "OUT_OF_MEMORY\r\n"),
        (rig.addr, "HTTP/1.1 503 "),
    ] {
        let mut refused = exchange(addr, "", word).await;
        refused.read_to_end(&mut Vec::new()).await.unwrap();
    }
    let request = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    http.write_all(request).await.unwrap();
    let mut answers = String::new();
    http.read_to_string(&mut answers).await.unwrap();
    let (_, page) = answers.rsplit_once("\r\n\r\n").unwrap();
    for (protocol, open) in [("http", 1.0), ("resp", 1.0), ("beanstalk", 2.0)] {
        Page::parse(page).check(&[
            (&format!("dormouse_{protocol}_connections"), open),
            (&format!("dormouse_{protocol}_connections_accepted_total"), open),
            (&format!("dormouse_{protocol}_connections_refused_total"), 1.0),
        ]);
    }
}

#[tokio::test]
async fn the_documentation_names_every_metric() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/operations.md");
    let documentation = std::fs::read_to_string(path).unwrap();
    let mut names = Rig::start().await.metrics().await.families;
    let dir = tempfile::tempdir().unwrap();
    let on_disk = Engine::open(dir.path(), EngineOptions::default()).unwrap();
    names.extend(on_disk.meters().iter().map(|meter| format!("dormouse_{}", meter.name)));
    for name in names {
        assert!(documentation.contains(&format!("`{name}`")), "{name} is not in {path}");
    }
}
