//! Which topics have schedules, or other things that happen by themselves: deadlines, dead letters,
//! done jobs. They happen whether or not a caller names the topic, so a server reads from the
//! register which topics have had any, after its start and from time to time, and lets the
//! scheduler watch their partitions. What this server wrote it knows anyway.

use std::rc::{Rc, Weak};
use std::time::Duration;

use dormouse_core::error::Error;
use tokio::task::spawn_local;

use super::Dispatcher;
use super::fanout::Fanout;

/// How often the list is read: so long after the end of the only server that knew of a schedule,
/// others give its ticks.
const READ_EVERY: Duration = Duration::from_secs(10);
/// Topics that are read from the list at a time.
const PAGE: usize = 128;
/// The pause between two pages.
const PAGE_PAUSE: Duration = Duration::from_millis(50);

impl Dispatcher {
    /// Reads the list again and again, until the backend is closed.
    pub(super) async fn watch_ticking(dispatcher: Weak<Dispatcher>) {
        while let Some(present) = dispatcher.upgrade() {
            // Redis may be away: the next reading comes.
            if let Err(error) = present.read_ticking().await {
                tracing::debug!("redis: cannot read which topics have schedules: {error}");
            }
            drop(present);
            tokio::time::sleep(READ_EVERY).await;
        }
    }

    async fn read_ticking(&self) -> Result<(), Error> {
        let mut after = None;
        loop {
            let names = self.ticking_page(after.as_ref(), PAGE).await?;
            for name in &names {
                match self.find(name).await {
                    Ok(Some(topic)) => topic.partitions.iter().for_each(|it| it.watch_ticks()),
                    Ok(None) => {}
                    // Others are looked at all the same.
                    Err(error) => {
                        tracing::debug!("redis: cannot look for ticks of {name}: {error}");
                    }
                }
            }
            after = names.last().cloned();
            if names.len() < PAGE {
                return Ok(());
            }
            tokio::time::sleep(PAGE_PAUSE).await;
        }
    }

    /// Gives a portion of the ticks of a partition, in a task.
    pub(super) fn give_ticks(self: &Rc<Dispatcher>, shard: u32) {
        let Some(partition) = self.shards.borrow().get(&shard).cloned() else { return };
        let dispatcher = Rc::clone(self);
        spawn_local(async move {
            let fanout = Fanout { dispatcher: &dispatcher, submission: None };
            let report = fanout.give_ticks(&partition).await;
            match (&report, &partition.topic) {
                (Err(error), _) => {
                    tracing::debug!("redis: cannot give ticks of {}: {error}", partition.tag);
                }
                // Redis may have lost the list, or the part of it that names this topic.
                (Ok(report), Some(topic)) if report.is_watched => {
                    if let Err(error) = dispatcher.register_ticking(topic).await {
                        tracing::debug!("redis: cannot note that {topic} has schedules: {error}");
                    }
                }
                _ => {}
            }
            partition.end_ticks(report.ok());
        });
    }
}
