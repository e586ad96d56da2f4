//! The record of a push as the backend keeps it: everything but its concurrency, as JSON.
//!
//! No secret is in it: generations lead to secrets only together with the master key. Values of
//! headers are, because they must be sent.

use bytes::Bytes;
use dormouse_core::error::Error;
use dormouse_core::op::NewPush;
use dormouse_core::topic::Push;
use serde::{Deserialize, Serialize};

use super::settings::{Generations, PushHeaders, PushSettings, Retiring};
use super::url::{PushUrl, UrlPattern};

/// What an operator gives. `Debug` would show values of headers, so there is none.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct PushFields {
    pub(crate) url: String,
    #[serde(default)]
    pub(crate) job_urls: Vec<String>,
    #[serde(default)]
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) timeout_ms: u64,
    #[serde(skip)]
    pub(crate) concurrency: u64,
    #[serde(default)]
    pub(crate) fatal: Vec<u16>,
    pub(crate) keep_reply: bool,
}

/// The whole record.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct PushRecord {
    #[serde(flatten)]
    pub(crate) fields: PushFields,
    pub(crate) generation: u64,
    /// The generation before, and its end.
    #[serde(default)]
    pub(crate) retiring: Option<(u64, u64)>,
    /// Why nothing is pushed.
    #[serde(default)]
    pub(crate) disabled: Option<String>,
}

impl PushRecord {
    /// Reads what `to_new` wrote.
    pub(crate) fn read(push: &Push) -> Result<PushRecord, Error> {
        let mut record: PushRecord = serde_json::from_slice(&push.record).map_err(|_| {
            // The text of the error could show a part of the record.
            Error::unavailable("the stored push cannot be read; set it again")
        })?;
        record.fields.concurrency = push.concurrency;
        Ok(record)
    }

    /// As the backend takes it.
    pub(crate) fn to_new(&self) -> NewPush {
        // Strings and numbers cannot fail to be written.
        let record = serde_json::to_vec(self).map(Bytes::from).unwrap_or_default();
        let (concurrency, is_disabled) = (self.fields.concurrency, self.disabled.is_some());
        NewPush { concurrency, is_disabled, record }
    }

    /// As consumers use it; an error if it was not checked.
    pub(crate) fn settings(&self, version: u64) -> Result<PushSettings, Error> {
        let fields = &self.fields;
        let patterns = fields.job_urls.iter().map(|text| UrlPattern::parse(text));
        let retiring =
            self.retiring.map(|(generation, until_ms)| Retiring { generation, until_ms });
        Ok(PushSettings {
            url: PushUrl::parse(&fields.url)?,
            job_urls: patterns.collect::<Result<_, _>>()?,
            headers: PushHeaders::new(&fields.headers)?,
            timeout_ms: fields.timeout_ms,
            concurrency: usize::try_from(fields.concurrency).unwrap_or(usize::MAX),
            fatal: fields.fatal.clone(),
            keep_reply: fields.keep_reply,
            generations: Generations { newest: self.generation, retiring },
            version,
            disabled: self.disabled.as_deref().map(Into::into),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let fields = PushFields {
            url: "https://example.com/a?b=\"c\"".into(),
            job_urls: vec!["https://*.example.com/".into()],
            headers: vec![("authorization".into(), "ä \u{1} \\".into())],
            timeout_ms: 1_500,
            concurrency: 7,
            fatal: vec![400, 422],
            keep_reply: false,
        };
        let (retiring, disabled) = (Some((3, 99)), Some("why".to_owned()));
        let record = PushRecord { fields, generation: 4, retiring, disabled };
        let push = record.to_new().numbered(1);
        assert!(push.is_disabled && push.concurrency == 7);
        assert!(PushRecord::read(&push).unwrap() == record);
        let broken = Push { record: Bytes::from_static(b"{\"url\": \"geheim\""), ..push };
        let error = PushRecord::read(&broken).err().unwrap();
        assert!(!error.text.contains("geheim"), "{error}");
    }
}
