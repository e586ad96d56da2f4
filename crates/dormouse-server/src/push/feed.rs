//! Reads the pushes that the backend keeps, and tells them to the supervisor.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use dormouse_core::error::Error;
use dormouse_core::limits::PAGE_MAX;
use dormouse_core::op::Pushes;
use dormouse_core::topic::TopicName;
use tokio::sync::{Notify, watch};

use super::consumer::turned_on;
use super::record::PushRecord;
use super::settings::PushSettings;
use super::supervisor::PushTopics;
use crate::client::BackendClient;
use crate::limits::PUSH_TOPICS_MAX;

/// How soon a change by another server is seen.
const READ_EVERY: Duration = Duration::from_secs(2);

/// Follows the pushes of a backend.
pub(super) struct Feed {
    client: BackendClient,
    topics: watch::Sender<PushTopics>,
    changed: Arc<Notify>,
    /// The revision that was read last, whole.
    seen: Option<u64>,
    /// Pushes that are as they were are not read again: their consumers go on.
    known: HashMap<TopicName, Arc<PushSettings>>,
}

impl Feed {
    pub(super) fn new(
        client: BackendClient,
        topics: watch::Sender<PushTopics>,
        changed: Arc<Notify>,
    ) -> Feed {
        Feed { client, topics, changed, seen: None, known: HashMap::new() }
    }

    /// Runs until the server stops.
    pub(super) async fn run(mut self) {
        let mut stopping = self.client.stop_signal();
        let mut was_read = true;
        loop {
            match self.read().await {
                Ok(()) => was_read = true,
                // What is known goes on; the next reading comes.
                Err(error) if was_read => {
                    was_read = false;
                    tracing::warn!(%error, "cannot read which topics are pushed");
                }
                Err(error) => tracing::debug!(%error, "cannot read which topics are pushed"),
            }
            tokio::select! {
                () = self.changed.notified() => {}
                () = tokio::time::sleep(READ_EVERY) => {}
                () = turned_on(&mut stopping) => return,
            }
        }
    }

    /// Reads all pages, unless nothing has changed.
    async fn read(&mut self) -> Result<(), Error> {
        let mut all: Vec<(TopicName, Arc<PushSettings>)> = Vec::new();
        let (mut after, mut seen) = (None, self.seen);
        let mut first = None;
        loop {
            let page = Pushes { after, seen: seen.take(), limit: PAGE_MAX };
            let page = self.client.call(page).await?;
            if first.is_none() && self.seen == Some(page.revision) {
                return Ok(());
            }
            // A change between two pages gives another revision, so the next reading sees it.
            let revision = *first.get_or_insert(page.revision);
            after = page.pushes.last().map(|(topic, _)| topic.clone());
            for (topic, push) in page.pushes {
                let known = self.known.get(&topic);
                let settings = match known.filter(|known| known.version == push.version) {
                    Some(known) => Ok(Arc::clone(known)),
                    None => PushRecord::read(&push)
                        .and_then(|record| record.settings(push.version))
                        .map(Arc::new),
                };
                match settings {
                    Ok(settings) => all.push((topic, settings)),
                    Err(error) => tracing::warn!(%topic, %error, "cannot push a topic"),
                }
            }
            if !page.more || all.len() >= PUSH_TOPICS_MAX {
                self.known = all.iter().cloned().collect();
                self.seen = Some(revision);
                self.topics.send_replace(Arc::new(all));
                return Ok(());
            }
        }
    }
}
