//! Secrets sign requests, and show up nowhere.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use dormouse_server::push::{Generations, MasterKey, PushHeaders, Retiring};

use crate::receiver::{Received, Receiver, answer, ok};
use crate::rig::{Rig, job, to, topic};

/// Verifies as a receiver does, with code that shares nothing with the server's.
fn verifies(received: &Received, secret: &str) -> bool {
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
    let key = MasterKey::new([7; 32]);
    let secret = |generation| key.secret(&topic("t"), generation).reveal();
    for received in receiver.received() {
        assert!(verifies(&received, &secret(1)) && verifies(&received, &secret(2)));
        assert!(!verifies(&received, &secret(0)) && !verifies(&received, &secret(3)));
    }
}

#[tokio::test]
async fn no_secret_is_shown() {
    let key = MasterKey::new([7; 32]);
    let secret = key.secret(&topic("t"), 0).reveal();
    let bare = secret.strip_prefix("whsec_").unwrap().to_owned();
    let receiver = Receiver::new(|_, _| answer(500, &[], "no")).await;
    let mut settings = to(&receiver.url("/path-secret"));
    let own = [("authorization".to_owned(), "header-secret".to_owned())];
    settings.headers = PushHeaders::new(&own).unwrap();
    let shown = format!("{settings:?} {key:?} {:?}", key.secret(&topic("t"), 0));
    let rig = Rig::new(settings).await;
    let error = rig.failure(job("x")).await;
    let status = format!("{:?}", rig.push.status(&topic("t")));
    let metrics = rig.metrics().await;
    assert!(verifies(&receiver.received()[0], &secret));
    for text in [shown, error, status, metrics] {
        for word in [&*bare, "header-secret", "path-secret", "[7, 7"] {
            assert!(!text.contains(word), "{word} in {text}");
        }
    }
}
