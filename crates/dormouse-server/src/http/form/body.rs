//! The body of a job in a response: in the kind in which it was put.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use dormouse_core::job::BodyKind;
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

/// Exactly one of the three; none in a list without bodies.
#[derive(Default, Serialize, ToSchema)]
#[schema(as = Body)]
pub(crate) struct BodyOut<'a> {
    /// A JSON value.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<serde_json::Value>)]
    body: Option<&'a RawValue>,
    /// A string.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    text: Option<&'a str>,
    /// Bytes that are not text.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    base64: Option<String>,
}

impl<'a> BodyOut<'a> {
    /// The producer chose the kind; bytes are checked again, so that none is mangled.
    pub(crate) fn new(kind: BodyKind, bytes: &'a Bytes) -> BodyOut<'a> {
        if kind == BodyKind::Json
            && let Ok(body) = serde_json::from_slice(bytes)
        {
            return BodyOut { body: Some(body), ..BodyOut::default() };
        }
        match std::str::from_utf8(bytes) {
            Ok(text) => BodyOut { text: Some(text), ..BodyOut::default() },
            Err(_) => BodyOut { base64: Some(STANDARD.encode(bytes)), ..BodyOut::default() },
        }
    }
}

/// The largest size of a body as JSON: a control character takes six bytes.
pub(crate) fn body_json_bytes(kind: BodyKind, bytes: &Bytes) -> usize {
    if kind == BodyKind::Json {
        return bytes.len();
    }
    let escapes = bytes.iter().map(|byte| match byte {
        b'"' | b'\\' => 1,
        0..0x20 => 5,
        _ => 0,
    });
    // Bytes that are not text become base64, which takes a third more.
    (bytes.len() + escapes.sum::<usize>()).max(bytes.len().div_ceil(3) * 4)
}
