//! Bodies and what they remember.

use bytes::Bytes;
use dormouse::{Body, BodyKind, Code, Queue};
use serde::{Deserialize, Serialize};

use crate::util::take;

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Order {
    number: u64,
    items: Vec<String>,
}

#[test]
fn values_travel_as_json() {
    let queue = Queue::memory();
    let order = Order { number: 42, items: vec!["nut".into()] };
    queue.put_json("orders", &order).wait().unwrap();
    let job = take(&queue, "orders");
    assert_eq!(job.body_kind(), BodyKind::Json);
    assert_eq!(job.text(), Ok(r#"{"number":42,"items":["nut"]}"#));
    assert_eq!(job.json::<Order>().unwrap(), order);
}

#[test]
fn a_body_can_be_read_in_place() {
    #[derive(Deserialize)]
    struct Borrowed<'a> {
        name: &'a str,
    }
    let queue = Queue::memory();
    queue.put("t", serde_json::json!({"name": "dora"})).wait().unwrap();
    assert_eq!(take(&queue, "t").json::<Borrowed<'_>>().unwrap().name, "dora");
}

#[test]
fn unexpected_json_is_explained() {
    let queue = Queue::memory();
    queue.put("t", "{\"number\": true}").wait().unwrap();
    let job = take(&queue, "t");
    let error = job.json::<Order>().unwrap_err();
    assert_eq!(error.code, Code::Invalid);
    assert!(error.text.contains("invalid type: boolean `true`"), "{}", error.text);
}

#[test]
fn a_value_without_json_is_refused_and_nothing_is_stored() {
    let queue = Queue::memory();
    let value = std::collections::BTreeMap::from([((1, 2), 3)]);
    let error = queue.put_json("t", &value).wait().unwrap_err();
    assert_eq!(error.code, Code::Invalid);
    assert!(error.text.contains("key must be a string"), "{}", error.text);
    assert_eq!(queue.stats_all().wait().unwrap().topics, 0);
}

#[test]
fn text_and_bytes_are_returned_unchanged() {
    let queue = Queue::memory();
    let cases: [(Body, BodyKind); 5] = [
        ("text".into(), BodyKind::Text),
        (String::from("text").into(), BodyKind::Text),
        (vec![0xff].into(), BodyKind::Bytes),
        (Bytes::from_static(&[0xff]).into(), BodyKind::Bytes),
        ((&[0xff; 3]).into(), BodyKind::Bytes),
    ];
    for (body, kind) in cases {
        queue.put("t", body.clone()).wait().unwrap();
        let job = take(&queue, "t");
        assert_eq!((job.body(), job.body_kind()), (body.bytes(), kind));
        assert_eq!(job.text().is_ok(), kind == BodyKind::Text);
        job.ack().wait().unwrap();
    }
}
