//! Every response of every test is checked against the OpenAPI document: its status, its content
//! type and its shape.

use std::sync::LazyLock;

use serde_json::Value;

use crate::client::Answer;

static DOCUMENT: LazyLock<Value> =
    LazyLock::new(|| serde_json::to_value(dormouse_server::openapi()).unwrap());

/// Panics if the document does not describe this response. Paths and methods that are not in it
/// are ignored.
pub(crate) fn check(method: &str, target: &str, answer: &Answer) {
    let Some(operation) = operation(method, target) else { return };
    let what = || format!("{method} {target}: {} {}", answer.status, answer.text());
    let response = &operation["responses"][answer.status.to_string()];
    assert!(response.is_object(), "status is not documented: {}", what());
    let kind = answer.header("content-type").unwrap_or_default();
    let content = &response["content"][kind];
    assert!(content.is_object(), "content type {kind} is not documented: {}", what());
    if kind.contains("json") {
        let value: Value = serde_json::from_slice(&answer.body).unwrap();
        if let Err(reason) = fits(&value, &content["schema"]) {
            panic!("{reason}: {}", what());
        }
    }
}

fn operation(method: &str, target: &str) -> Option<&'static Value> {
    let path = target.split('?').next().unwrap();
    let parts: Vec<&str> = path.split('/').collect();
    let paths = DOCUMENT["paths"].as_object().unwrap();
    let matches = |template: &&String| {
        let template: Vec<&str> = template.split('/').collect();
        let same = |(known, part): (&&str, &&str)| known.starts_with('{') || known == part;
        template.len() == parts.len() && template.iter().zip(&parts).all(same)
    };
    let template = paths.keys().find(matches)?;
    paths[template].get(method.to_lowercase())
}

/// The part of JSON Schema that the document uses.
fn fits(value: &Value, schema: &Value) -> Result<(), String> {
    if let Some(Value::String(to)) = schema.get("$ref") {
        return fits(value, DOCUMENT.pointer(to.strip_prefix('#').unwrap()).unwrap());
    }
    if let Some(all) = schema.get("allOf").and_then(Value::as_array) {
        all.iter().try_for_each(|schema| fits(value, schema))?;
    }
    if let Some(either) = schema.get("oneOf").and_then(Value::as_array) {
        let reasons: Vec<_> = either.iter().map(|schema| fits(value, schema)).collect();
        let fitting = reasons.iter().filter(|reason| reason.is_ok()).count();
        if fitting != 1 {
            return Err(format!("{value} fits {fitting} of {}: {reasons:?}", either.len()));
        }
    }
    let is_of = |kind: &Value| match kind.as_str().unwrap() {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        other => panic!("type {other}"),
    };
    let kind_fits = match schema.get("type") {
        None => true,
        Some(Value::Array(kinds)) => kinds.iter().any(is_of),
        Some(kind) => is_of(kind),
    };
    if !kind_fits {
        return Err(format!("{value} is not {}", schema["type"]));
    }
    if let Some(known) = schema.get("enum").and_then(Value::as_array)
        && !known.contains(value)
    {
        return Err(format!("{value} is none of {known:?}"));
    }
    fits_inside(value, schema)
}

fn fits_inside(value: &Value, schema: &Value) -> Result<(), String> {
    if let (Some(items), Some(values)) = (schema.get("items"), value.as_array()) {
        values.iter().try_for_each(|value| fits(value, items))?;
    }
    let Some(fields) = value.as_object() else { return Ok(()) };
    for name in schema.get("required").and_then(Value::as_array).into_iter().flatten() {
        if !fields.contains_key(name.as_str().unwrap()) {
            return Err(format!("{value} has no {name}"));
        }
    }
    let Some(known) = schema.get("properties").and_then(Value::as_object) else { return Ok(()) };
    for (name, schema) in known {
        if let Some(value) = fields.get(name) {
            fits(value, schema).map_err(|reason| format!("{name}: {reason}"))?;
        }
    }
    Ok(())
}
