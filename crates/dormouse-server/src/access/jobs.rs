//! Access to jobs that a request names by id or token: only the backend knows their topics.

use std::collections::BTreeSet;

use dormouse_core::command::Command;
use dormouse_core::error::{Code, Error};
use dormouse_core::job::JobId;
use dormouse_core::op::TopicsOf;

use super::{Grant, Verb};
use crate::client::BackendClient;

/// The id of no job: ids begin at 1.
pub(crate) const NO_JOB: JobId = JobId(0);

/// Jobs whose topics are asked for at once.
const LOOKED_UP_AT_ONCE: usize = 512;

impl Grant {
    /// Whether this may be done to all of these jobs; returns those that do not exist for this
    /// caller: that are not there, or in a topic that the caller may neither use so nor read. An
    /// answer must not tell one from the other, for ids can be counted through.
    ///
    /// An absent job may be put before the next command, into a topic that this caller has no
    /// access to. So a caller who is limited to some topics must not name it in that command: see
    /// [`mask_absent`].
    pub(crate) async fn check_jobs(
        &self,
        client: &BackendClient,
        verb: Verb,
        ids: impl Iterator<Item = JobId>,
    ) -> Result<BTreeSet<JobId>, Error> {
        let mut absent = BTreeSet::new();
        if self.covers_all(verb) {
            return Ok(absent);
        }
        if !self.may_somewhere(verb) {
            return self.check_verb(verb).map(|()| absent);
        }
        // An id may be named thousands of times.
        let distinct: BTreeSet<JobId> = ids.collect();
        let distinct: Vec<JobId> = distinct.into_iter().collect();
        // The first refusal is the answer, so that nobody is asked about those after it.
        for ids in distinct.chunks(LOOKED_UP_AT_ONCE) {
            let topics = client.call(TopicsOf(ids.to_vec())).await?;
            for (id, topic) in ids.iter().zip(topics) {
                match topic {
                    Ok(topic) if self.allows(verb, topic.as_str()) => {}
                    // It may look at the job, so the refusal tells nothing new.
                    Ok(topic) if self.allows(Verb::Get, topic.as_str()) => {
                        self.check(verb, topic.as_str())?;
                    }
                    Ok(_) => drop(absent.insert(*id)),
                    Err(error) if error.code == Code::NotFound => drop(absent.insert(*id)),
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(absent)
    }
}

/// Replaces the ids of absent jobs in a command, so that it is answered as if they stayed absent.
pub(crate) fn mask_absent(command: &mut Command, absent: &BTreeSet<JobId>) {
    command.ids_mut(|id| {
        if absent.contains(id) {
            *id = NO_JOB;
        }
    });
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use dormouse_core::backend::{Backend, Request, Sink};
    use dormouse_core::limits::BATCH_MAX;
    use dormouse_core::op::Put;
    use dormouse_core::topic::TopicName;
    use dormouse_disk::engine::{Engine, Options};
    use tokio::sync::watch;

    use super::*;
    use crate::access::{Access, TokenEntry, hash_token};

    /// An engine, and the names of the commands that were submitted to it, with their items.
    struct Noted {
        engine: Engine,
        asked: Mutex<Vec<(&'static str, usize)>>,
    }

    impl Backend for Noted {
        fn submit(&self, batch: Vec<Request>, sink: Arc<dyn Sink>) -> Result<(), Error> {
            let asked = batch.iter().map(|request| &request.command);
            self.asked.lock().unwrap().extend(asked.map(|c| (c.verb(), c.items())));
            self.engine.submit(batch, sink)
        }
    }

    fn grant(scopes: &[&str]) -> Grant {
        let scopes = scopes.iter().map(|scope| scope.parse().unwrap()).collect();
        let entry = TokenEntry { name: "it".into(), hash: hash_token("it"), scopes };
        Access::new(vec![entry]).unwrap().grant(Some("it")).unwrap()
    }

    /// As many jobs as a batch may have, in a topic, and their ids.
    async fn jobs() -> (Arc<Noted>, BackendClient, Vec<JobId>) {
        let engine = Engine::memory(Options::default());
        let noted = Arc::new(Noted { engine, asked: Mutex::default() });
        // No command here waits, so no stop signal is needed.
        let client = BackendClient::new(
            Arc::clone(&noted) as Arc<dyn Backend>,
            Arc::<crate::metrics::Metrics>::default(),
            watch::channel(false).1,
        );
        let put = Put::new(TopicName::new("mine").unwrap(), "x");
        let put = client.call(vec![put; BATCH_MAX]).await.unwrap();
        noted.asked.lock().unwrap().clear();
        (noted, client, put.into_iter().map(|reply| reply.unwrap().id).collect())
    }

    #[tokio::test]
    async fn only_topics_are_asked_for_and_each_id_once() {
        let (noted, client, ids) = jobs().await;
        let absent = JobId(u64::MAX >> 8);
        let named = ids.iter().chain(&ids).copied().chain([absent]);
        let unseen = grant(&["ack:mine"]).check_jobs(&client, Verb::Ack, named).await.unwrap();
        assert_eq!(unseen, BTreeSet::from([absent]));
        let asked = noted.asked.lock().unwrap();
        assert!(asked.iter().all(|(verb, items)| *verb == "topics_of" && *items <= 512));
        assert_eq!(asked.iter().map(|(_, items)| items).sum::<usize>(), BATCH_MAX + 1);
    }

    #[tokio::test]
    async fn a_refusal_ends_the_look_up() {
        let (noted, client, ids) = jobs().await;
        let grant = grant(&["get:mine", "ack:others"]);
        let refused = grant.check_jobs(&client, Verb::Ack, ids.into_iter()).await.unwrap_err();
        assert_eq!(refused.code, Code::Forbidden);
        assert_eq!(*noted.asked.lock().unwrap(), [("topics_of", 512)]);
    }
}
