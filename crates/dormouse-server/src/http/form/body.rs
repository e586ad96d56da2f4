//! A body coming out the way it came in.

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
    /// The kind is what the producer said; bytes are looked at again, so that none is mangled.
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
