//! The pushes that the backend keeps: read, changed by compare-and-set, and told to the feed.

use std::sync::Arc;

use dormouse_core::error::{Code, Error};
use dormouse_core::op::{GetPush, SetPush};
use dormouse_core::topic::TopicName;
use tokio::sync::Notify;

use super::address::AddressRules;
use super::record::{PushFields, PushRecord};
use super::secret::MasterKey;
use super::url::PushUrl;
use crate::client::BackendClient;
use crate::limits::{PUSH_KEEP_MS_MAX, PUSH_TRIES_MAX};
use crate::units::wall_ms;

/// Changes the pushes of topics.
pub(crate) struct PushStore {
    client: BackendClient,
    key: MasterKey,
    allows_http: bool,
    rules: AddressRules,
    /// Tells the feed that something changed.
    changed: Arc<Notify>,
}

/// What a put of a push did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PutPushCode {
    Created,
    Replaced,
    Unchanged,
}

/// A push that was put.
pub(crate) struct PutPush {
    pub(crate) outcome: PutPushCode,
    pub(crate) record: PushRecord,
    /// The secret of a new one, to be shown once.
    pub(crate) secret: Option<String>,
}

/// A push with a new secret.
pub(crate) struct RotatedPush {
    /// To be shown once.
    pub(crate) secret: String,
    /// Until when the old one signs, too.
    pub(crate) retiring_until_ms: u64,
}

impl PushStore {
    pub(super) fn new(
        client: BackendClient,
        key: MasterKey,
        allows_http: bool,
        rules: AddressRules,
        changed: Arc<Notify>,
    ) -> PushStore {
        PushStore { client, key, allows_http, rules, changed }
    }

    /// How a topic is pushed.
    pub(crate) async fn get(&self, topic: &TopicName) -> Result<Option<PushRecord>, Error> {
        let push = self.client.call(GetPush(topic.clone())).await?;
        push.map(|push| PushRecord::read(&push)).transpose()
    }

    /// The same, `not_found` if it is not.
    pub(crate) async fn known(&self, topic: &TopicName) -> Result<PushRecord, Error> {
        self.get(topic).await?.ok_or_else(|| no_push(topic))
    }

    /// Sets all fields of a push; it goes on if it was disabled. `kept` names headers whose value
    /// stays as it is.
    pub(crate) async fn put(
        &self,
        topic: &TopicName,
        fields: &PushFields,
        kept: &[String],
    ) -> Result<PutPush, Error> {
        let mut outcome = PutPushCode::Unchanged;
        let changed = self.change(topic, None, |present| {
            let mut fields = fields.clone();
            keep_values(&mut fields, kept, present)?;
            let record = match present {
                Some(present) => PushRecord { fields, disabled: None, ..present.clone() },
                None => PushRecord {
                    fields,
                    generation: next_generation(0),
                    retiring: None,
                    disabled: None,
                },
            };
            record.settings(0)?.check(self.allows_http, &self.rules)?;
            outcome = match present {
                None => PutPushCode::Created,
                Some(present) if *present == record => PutPushCode::Unchanged,
                Some(_) => PutPushCode::Replaced,
            };
            Ok(Some(record))
        });
        let record = changed.await?.ok_or_else(|| no_push(topic))?;
        let is_new = outcome == PutPushCode::Created;
        let secret = is_new.then(|| self.key.secret(topic, record.generation).reveal());
        Ok(PutPush { outcome, record, secret })
    }

    /// Pushes the topic no more. If there is no push, the backend is told nevertheless: a removal
    /// that broke off may have left parts of it.
    pub(crate) async fn remove(&self, topic: &TopicName) -> Result<(), Error> {
        let mut was_there = false;
        let removed = self.change(topic, None, |present| {
            was_there = present.is_some();
            Ok(None)
        });
        removed.await?;
        if was_there { Ok(()) } else { Err(no_push(topic)) }
    }

    /// Signs with a new secret, and for so long with the present one, too.
    pub(crate) async fn rotate(
        &self,
        topic: &TopicName,
        keep_ms: u64,
    ) -> Result<RotatedPush, Error> {
        if keep_ms > PUSH_KEEP_MS_MAX {
            let text = format!("keep is {keep_ms} ms; give at most {PUSH_KEEP_MS_MAX}");
            return Err(Error::invalid(text));
        }
        let retiring_until_ms = wall_ms().saturating_add(keep_ms);
        let changed = self.change(topic, None, |present| {
            let present = present.ok_or_else(|| no_push(topic))?;
            Ok(Some(PushRecord {
                generation: next_generation(present.generation),
                retiring: Some((present.generation, retiring_until_ms)),
                ..present.clone()
            }))
        });
        let record = changed.await?.ok_or_else(|| no_push(topic))?;
        let secret = self.key.secret(topic, record.generation).reveal();
        Ok(RotatedPush { secret, retiring_until_ms })
    }

    /// Goes on with a push that was disabled.
    pub(crate) async fn resume(&self, topic: &TopicName) -> Result<PushRecord, Error> {
        let changed = self.change(topic, None, |present| {
            let present = present.ok_or_else(|| no_push(topic))?;
            Ok(Some(PushRecord { disabled: None, ..present.clone() }))
        });
        changed.await?.ok_or_else(|| no_push(topic))
    }

    /// Disables a push that still has this version: one that was changed since is another.
    pub(super) async fn disable(
        &self,
        topic: &TopicName,
        version: u64,
        why: &str,
    ) -> Result<(), Error> {
        let changed = self.change(topic, Some(version), |present| {
            let present = present.ok_or_else(|| no_push(topic))?;
            Ok(Some(PushRecord { disabled: Some(why.to_owned()), ..present.clone() }))
        });
        changed.await.map(drop)
    }

    /// Makes a change of the present push; again if another one came in between.
    async fn change(
        &self,
        topic: &TopicName,
        if_version: Option<u64>,
        mut make: impl FnMut(Option<&PushRecord>) -> Result<Option<PushRecord>, Error>,
    ) -> Result<Option<PushRecord>, Error> {
        let mut tries = 0;
        loop {
            let push = self.client.call(GetPush(topic.clone())).await?;
            let present = push.as_deref().map(PushRecord::read).transpose()?;
            let wanted = make(present.as_ref())?;
            let version = if_version.unwrap_or(push.map_or(0, |push| push.version));
            let set = SetPush {
                topic: topic.clone(),
                push: wanted.as_ref().map(PushRecord::to_new),
                if_version: Some(version),
            };
            tries += 1;
            match self.client.call(set).await {
                Ok(_) => {
                    self.changed.notify_one();
                    return Ok(wanted);
                }
                Err(error)
                    if error.code == Code::Conflict
                        && if_version.is_none()
                        && tries < PUSH_TRIES_MAX => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// A generation that no secret of the topic had: topics that are removed and set again, too, begin
/// with the time.
fn next_generation(last: u64) -> u64 {
    wall_ms().max(last.saturating_add(1))
}

/// Puts the stored values of headers back in that the caller has not seen.
fn keep_values(
    fields: &mut PushFields,
    kept: &[String],
    present: Option<&PushRecord>,
) -> Result<(), Error> {
    let origin = |url: &str| PushUrl::parse(url).ok().map(|url| url.origin().to_owned());
    let is_elsewhere = |record: &PushRecord| {
        let before = &record.fields;
        origin(&before.url) != origin(&fields.url) || before.job_urls != fields.job_urls
    };
    if !kept.is_empty() && present.is_some_and(is_elsewhere) {
        return Err(Error::invalid(
            "headers: stored values are not sent to other receivers; give them again with another \
             host or other job_urls",
        ));
    }
    for name in kept {
        let mut stored = present.iter().flat_map(|record| &record.fields.headers);
        let Some(value) = stored.find(|(known, _)| known.eq_ignore_ascii_case(name)) else {
            let text = format!("headers: `{name}` has no stored value to keep; give its value");
            return Err(Error::invalid(text));
        };
        fields.headers.push((name.clone(), value.1.clone()));
    }
    Ok(())
}

/// About a topic that is not pushed.
fn no_push(topic: &TopicName) -> Error {
    Error::not_found(format!("topic {topic} has no push; set it with PUT /v1/topics/{topic}/push"))
}
