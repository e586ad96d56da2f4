//! Secrets sign requests, and show up nowhere.

use std::fmt;
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use dormouse_core::op::Put;
use dormouse_server::push::{Generations, MasterKey, PushHeaders, Retiring};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use crate::receiver::{Received, Receiver, answer, ok};
use crate::rig::{Rig, alone, job, to, topic};

/// Verifies as a receiver does, with code that shares nothing with the server's.
pub(crate) fn verifies(received: &Received, secret: &str) -> bool {
    let key = STANDARD.decode(secret.strip_prefix("whsec_").unwrap()).unwrap();
    let header = |name| received.header(name).unwrap();
    let mut signed =
        format!("{}.{}.", header("webhook-id"), header("webhook-timestamp")).into_bytes();
    signed.extend(&received.body);
    let expected = format!("v1,{}", STANDARD.encode(hmac(&key, &signed)));
    header("webhook-signature").split(' ').any(|one| one == expected)
}

/// HMAC-SHA256 by its definition.
fn hmac(key: &[u8], message: &[u8]) -> Vec<u8> {
    use sha2::{Digest as _, Sha256};
    let padded = |fill: u8| -> Vec<u8> {
        (0..64).map(|index| key.get(index).copied().unwrap_or(0) ^ fill).collect()
    };
    let inner = Sha256::digest([padded(0x36), message.to_vec()].concat());
    Sha256::digest([padded(0x5c), inner.to_vec()].concat()).to_vec()
}

#[tokio::test]
async fn receivers_verify_with_the_new_and_the_retiring_secret() {
    let receiver = Receiver::new(|_, _| ok()).await;
    let mut settings = to(&receiver.url("/"));
    let retiring = Some(Retiring { generation: 1, until_ms: u64::MAX });
    settings.generations = Generations { newest: 2, retiring };
    let rig = Rig::new(settings).await;
    let big = "b".repeat(1 << 20);
    for body in ["", "text", "{\"a\": 1.0}", &big] {
        let id = rig.put(job(body));
        rig.gone(id).await;
    }
    let id = rig.put(Put::new(topic("t"), vec![0xff, 0, 0xfe, b'\r', b'\n']));
    rig.gone(id).await;
    let key = MasterKey::new([7; 32]);
    let secret = |generation| key.secret(&topic("t"), generation).reveal();
    for received in receiver.received() {
        assert!(verifies(&received, &secret(1)) && verifies(&received, &secret(2)));
        assert!(!verifies(&received, &secret(0)) && !verifies(&received, &secret(3)));
    }
}

/// Keeps everything that is logged on this thread.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<String>>);

impl Visit for Log {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.lock().unwrap().push_str(&format!("{field}={value:?}\n"));
    }
}

impl Subscriber for Log {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }
    fn new_span(&self, span: &Attributes<'_>) -> Id {
        span.record(&mut self.clone());
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, values: &Record<'_>) {
        values.record(&mut self.clone());
    }
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, event: &Event<'_>) {
        event.record(&mut self.clone());
    }
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

/// Threads without a log, those of other tests, keep places of the code from being logged.
#[test]
fn no_secret_is_shown() {
    alone("secrets::alone_no_secret_is_shown");
}

#[tokio::test]
#[ignore = "the test above runs it in a process of its own"]
async fn alone_no_secret_is_shown() {
    let log = Log::default();
    // All tasks of this test run on its thread.
    let _logged = tracing::subscriber::set_default(log.clone());
    let key = MasterKey::new([7; 32]);
    let secret = key.secret(&topic("t"), 0).reveal();
    let bare = secret.strip_prefix("whsec_").unwrap().to_owned();
    let receiver = Receiver::new(|number, _| match number {
        0 => answer(500, &[], "no"),
        _ => answer(410, &[], "never"),
    })
    .await;
    let mut settings = to(&receiver.url("/path-secret"));
    let own = [("authorization".to_owned(), "header-secret".to_owned())];
    settings.headers = PushHeaders::new(&own).unwrap();
    let shown = format!("{settings:?} {key:?} {:?}", key.secret(&topic("t"), 0));
    let rig = Rig::new(settings).await;
    let error = rig.failure(job("x")).await;
    let status = format!("{:?}", rig.push.status(&topic("t")));
    let metrics = rig.metrics().await;
    assert!(verifies(&receiver.received()[0], &secret));
    rig.failure(job("y")).await;
    let logged = log.0.lock().unwrap().clone();
    assert!(logged.contains("pushes are disabled"), "the log is kept: {logged}");
    for text in [shown, error, status, metrics, logged] {
        for word in [&*bare, "header-secret", "path-secret", "[7, 7"] {
            assert!(!text.contains(word), "{word} in {text}");
        }
    }
}
