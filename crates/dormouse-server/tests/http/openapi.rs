//! The OpenAPI document is complete and committed.

use dormouse_server::openapi;
use serde_json::Value;

use crate::rig::Rig;

const SNAPSHOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/openapi.json");

fn document() -> Value {
    serde_json::to_value(openapi()).unwrap()
}

#[test]
fn the_committed_document_is_current() {
    let text = serde_json::to_string_pretty(&openapi()).unwrap() + "\n";
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(SNAPSHOT, &text).unwrap();
    }
    let committed = std::fs::read_to_string(SNAPSHOT).unwrap_or_default();
    assert!(
        committed == text,
        "docs/openapi.json is not what the routes say; refresh it with \
         `UPDATE=1 cargo test -p dormouse-server --test http openapi`"
    );
}

#[test]
fn every_reference_resolves() {
    let document = document();
    let mut seen = 0;
    visit(&document, &mut |value| {
        if let Some(Value::String(to)) = value.get("$ref") {
            let pointer = to.strip_prefix('#').unwrap();
            assert!(document.pointer(pointer).is_some(), "{to}");
            seen += 1;
        }
    });
    assert!(seen > 100);
}

#[test]
fn every_operation_is_named_once_and_described() {
    let document = document();
    let mut names = std::collections::BTreeSet::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let name = operation["operationId"].as_str().unwrap();
            assert!(names.insert(name.to_owned()), "{name} twice");
            assert!(!operation["summary"].as_str().unwrap().is_empty(), "{method} {path}");
            assert_eq!(operation["tags"].as_array().unwrap().len(), 1, "{method} {path}");
            for name in path.split('/').filter_map(|part| part.strip_prefix('{')) {
                let name = name.strip_suffix('}').unwrap();
                let known = operation["parameters"].as_array().unwrap();
                assert!(known.iter().any(|known| known["name"] == name), "{path}: {name}");
            }
            for (status, response) in operation["responses"].as_object().unwrap() {
                let content = response["content"].as_object();
                assert!(content.is_some_and(|content| !content.is_empty()), "{path} {status}");
            }
        }
    }
}

#[tokio::test]
async fn the_server_serves_it_without_a_token() {
    let rig = Rig::with_tokens(&[("all", &["*:*"])]).await;
    let given = rig.client().await.get("/openapi.json").await.ok();
    assert_eq!(given, document());
    assert_eq!(given["openapi"], "3.1.0");
}

fn visit(value: &Value, look: &mut impl FnMut(&Value)) {
    look(value);
    match value {
        Value::Object(fields) => fields.values().for_each(|value| visit(value, look)),
        Value::Array(items) => items.iter().for_each(|value| visit(value, look)),
        _ => {}
    }
}
