//! `Queue::connect` over TLS.

use std::time::Duration;

use dormouse::{Code, ConnectOptions, Put, Queue};

use crate::server::Server;

fn options(server: &Server) -> ConnectOptions {
    let ca_file = Some(server.authority.write(server.dir.path()));
    ConnectOptions { ca_file, ..ConnectOptions::default() }
}

#[test]
fn a_queue_puts_waits_and_acks() {
    let server = Server::start();
    let url = format!("dormouses://localhost:{}", server.resp.port());
    let queue = Queue::connect_with(&url, &options(&server)).unwrap();
    let waiting = queue.reserve("mails").max(10).wait_for(Duration::from_secs(30)).send();
    queue.put("mails", "hello").wait().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let jobs = runtime.block_on(waiting).unwrap();
    assert_eq!(jobs[0].text(), Ok("hello"));
    jobs[0].ack().wait().unwrap();
    // Far more than a record or a socket takes at once, in both directions.
    let body = "x".repeat(1 << 20);
    let puts = (0..24).map(|_| Put::new("large", body.as_str()));
    assert!(queue.put_many(puts).wait().unwrap().iter().all(Result::is_ok));
    let mut taken = 0;
    while let jobs = queue.reserve("large").max(24).wait().unwrap()
        && !jobs.is_empty()
    {
        assert!(jobs.iter().all(|job| job.body().len() == body.len()));
        taken += jobs.len();
    }
    assert_eq!(taken, 24);
    queue.close().unwrap();
}

#[test]
fn a_wrong_certificate_or_port_is_told() {
    let server = Server::start();
    let refused = |url: String, options: &ConnectOptions, part: &str| {
        let error = Queue::connect_with(&url, options).unwrap_err();
        assert_eq!(error.code, Code::Unavailable, "{error}");
        assert!(error.text.contains(part), "{error}");
    };
    let port = server.resp.port();
    let other = crate::authority::Authority::new();
    let dir = tempfile::tempdir().unwrap();
    let untrusted = ConnectOptions { ca_file: Some(other.write(dir.path())), ..options(&server) };
    refused(format!("dormouses://localhost:{port}"), &untrusted, "as ca_file");
    let error = Queue::connect(&format!("dormouse://localhost:{port}")).unwrap_err();
    assert!(error.code == Code::Invalid && error.text.contains("dormouses://"), "{error}");
    let nothing = ConnectOptions { ca_file: Some("/no/such/file".into()), ..options(&server) };
    let error = Queue::connect_with("dormouses://localhost", &nothing).unwrap_err();
    assert_eq!(error.code, Code::Invalid, "{error}");
}
