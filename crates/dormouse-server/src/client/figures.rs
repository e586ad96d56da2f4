//! The figures of several topics.

use dormouse_core::command::Operation;
use dormouse_core::error::{Code, Error};
use dormouse_core::op::{Stats, TopicStats};
use dormouse_core::topic::TopicName;

use super::{BackendClient, unnumbered};

impl BackendClient {
    /// The figures of these topics, as far as they exist: one round trip, however slow the backend
    /// is. The engine needs about 0.1 ms for a topic that is spread over ten runs: give few.
    pub(crate) async fn stats_of(
        &self,
        names: &[TopicName],
    ) -> Result<Vec<(TopicName, TopicStats)>, Error> {
        let requests = names.iter().map(|name| unnumbered(Stats { topic: Some(name.clone()) }));
        let mut replies = self.wait(&mut self.submit(requests.collect(), None)?).await;
        let mut found = Vec::with_capacity(names.len());
        for name in names {
            let stats = replies.next_answer().and_then(Stats::from_reply);
            found.extend(existing(stats)?.map(|stats| (name.clone(), stats)));
        }
        Ok(found)
    }
}

fn existing(stats: Result<TopicStats, Error>) -> Result<Option<TopicStats>, Error> {
    match stats {
        Ok(stats) => Ok(Some(stats)),
        Err(error) if error.code == Code::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
