//! The body of a job: opaque bytes with the form in which they were put.

use bytes::Bytes;
use dormouse_core::job::BodyKind;

/// A job's body. Text stays text and JSON stays JSON for every consumer, over every protocol.
///
/// ```
/// # use dormouse::{Body, BodyKind};
/// assert_eq!(Body::from("hello").kind(), BodyKind::Text);
/// assert_eq!(Body::from(vec![0xff, 0]).kind(), BodyKind::Bytes);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Body {
    bytes: Bytes,
    kind: BodyKind,
}

impl Body {
    /// The content.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// Whether it was put as text, JSON or bytes.
    pub fn kind(&self) -> BodyKind {
        self.kind
    }

    pub(crate) fn into_parts(self) -> (Bytes, BodyKind) {
        (self.bytes, self.kind)
    }

    /// A value as a JSON document; `invalid` if it cannot be one (a map whose keys are not text).
    #[cfg(feature = "json")]
    pub fn json<T: serde::Serialize + ?Sized>(
        value: &T,
    ) -> Result<Body, dormouse_core::error::Error> {
        let bytes = serde_json::to_vec(value).map_err(|error| {
            dormouse_core::error::Error::invalid(format!(
                "the body cannot be written as JSON: {error}"
            ))
        })?;
        Ok(Body { bytes: bytes.into(), kind: BodyKind::Json })
    }
}

impl From<Bytes> for Body {
    fn from(bytes: Bytes) -> Body {
        Body { bytes, kind: BodyKind::Bytes }
    }
}

impl From<Vec<u8>> for Body {
    fn from(bytes: Vec<u8>) -> Body {
        Bytes::from(bytes).into()
    }
}

impl From<&[u8]> for Body {
    fn from(bytes: &[u8]) -> Body {
        Bytes::copy_from_slice(bytes).into()
    }
}

impl<const N: usize> From<&[u8; N]> for Body {
    fn from(bytes: &[u8; N]) -> Body {
        bytes.as_slice().into()
    }
}

impl From<String> for Body {
    fn from(text: String) -> Body {
        Body { bytes: text.into(), kind: BodyKind::Text }
    }
}

impl From<&str> for Body {
    fn from(text: &str) -> Body {
        Body { bytes: Bytes::copy_from_slice(text.as_bytes()), kind: BodyKind::Text }
    }
}

#[cfg(feature = "json")]
impl From<serde_json::Value> for Body {
    fn from(value: serde_json::Value) -> Body {
        Body { bytes: value.to_string().into(), kind: BodyKind::Json }
    }
}
