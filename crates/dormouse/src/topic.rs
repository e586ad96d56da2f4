//! Topics as a whole: settings, counts, pause, purge, kick, revive, forecast.

use std::time::{Duration, SystemTime};

use dormouse_core::error::Error;
use dormouse_core::job::State;
use dormouse_core::limits::{BATCH_MAX, PAGE_MAX};
use dormouse_core::op::{self, TopicStats, TopicsPage};
use dormouse_core::topic::{Settings, TopicName};

use crate::call::Call;
use crate::queue::Queue;
use crate::time::{span_ms, wall_ms};

impl Queue {
    /// A page of topics and their counts, in the order of their names.
    pub fn topics(&self) -> Call<op::Topics, TopicsPage> {
        let options = op::Topics { after: None, limit: PAGE_MAX };
        Call::new(self, Ok(options), Queue::call)
    }

    /// Replaces a topic's settings, all at once; empty settings unset everything.
    ///
    /// ```
    /// # use dormouse::{Queue, Settings};
    /// let queue = Queue::memory();
    /// let settings = Settings { attempts_max: Some(3), ..Settings::default() };
    /// queue.set_topic("mails", settings.clone()).wait()?;
    /// assert_eq!(queue.stats("mails").wait()?.settings, settings);
    /// # Ok::<(), dormouse::Error>(())
    /// ```
    ///
    /// Limits hold for jobs that wait already, and revoke nothing:
    ///
    /// ```
    /// # use dormouse::{HeldBy, Queue, Rate, Settings};
    /// # let queue = Queue::memory();
    /// let settings = Settings {
    ///     rate: Some(Rate { jobs: 100, per_ms: 60_000, burst: 5 }),
    ///     group_leased_max: Some(1),
    ///     ..Settings::default()
    /// };
    /// queue.set_topic("mails", settings).wait()?;
    /// queue.put("mails", "hello").group("tenant 1").wait()?;
    /// let held = queue.put("mails", "hello again").group("tenant 1").wait()?;
    /// let job = queue.reserve_one("mails").wait()?.expect("a job");
    /// assert_eq!(job.group(), Some(&b"tenant 1"[..]));
    /// assert!(queue.reserve_one("mails").wait()?.is_none());
    /// assert_eq!(queue.get(held.id).wait()?.held_by, Some(HeldBy::GroupLeasedMax));
    /// # Ok::<(), dormouse::Error>(())
    /// ```
    pub fn set_topic(&self, topic: &str, settings: Settings) -> Call<op::SetTopic, ()> {
        let options = TopicName::new(topic).map(|topic| op::SetTopic { topic, settings });
        Call::new(self, options, Queue::call)
    }

    /// Counts of a topic, exact and at a cost independent of the backlog.
    pub fn stats(&self, topic: &str) -> Call<op::Stats, TopicStats> {
        let options = TopicName::new(topic).map(|topic| op::Stats { topic: Some(topic) });
        Call::new(self, options, Queue::call)
    }

    /// Counts of all topics together.
    pub fn stats_all(&self) -> Call<op::Stats, TopicStats> {
        Call::new(self, Ok(op::Stats { topic: None }), Queue::call)
    }

    /// Stops reserve on a topic and nothing else, until [`resume`](Queue::resume) or for a given
    /// [`span`](Call::span). Survives a restart.
    pub fn pause(&self, topic: &str) -> Call<op::PauseTopic, ()> {
        let options = TopicName::new(topic).map(|topic| op::PauseTopic { topic, for_ms: None });
        Call::new(self, options, Queue::call)
    }

    /// Undoes a pause.
    pub fn resume(&self, topic: &str) -> Call<TopicName, ()> {
        Call::new(self, TopicName::new(topic), |queue, topic| queue.call(op::Resume(topic)))
    }

    /// Removes all delayed, ready and dead jobs of a topic and frees their keys; leased jobs stay.
    /// Answers how many went. [`state`](Call::state) removes those of one state only.
    pub fn purge(&self, topic: &str) -> Call<op::Purge, u64> {
        Call::new(self, TopicName::new(topic).map(op::Purge::from), Queue::call)
    }

    /// Makes up to `max` delayed jobs of a topic ready now, the earliest first; answers how many.
    pub fn kick(&self, topic: &str, max: usize) -> Call<op::Kick, u64> {
        let options = TopicName::new(topic).map(|topic| op::Kick { topic, max });
        Call::new(self, options, Queue::call)
    }

    /// Gives up to `max` leased jobs of a topic back, whoever has them: they are ready now, their
    /// attempts are not spent, and the tokens are no longer good. Answers how many.
    pub fn release_topic(&self, topic: &str, max: usize) -> Call<op::ReleaseTopic, u64> {
        let options = TopicName::new(topic).map(|topic| op::ReleaseTopic { topic, max });
        Call::new(self, options, Queue::call)
    }

    /// Makes up to `max` dead jobs of a topic ready now, the oldest first; answers how many.
    pub fn revive_topic(&self, topic: &str, max: usize) -> Call<op::ReviveTopic, u64> {
        let options = TopicName::new(topic).map(|topic| op::ReviveTopic { topic, max });
        Call::new(self, options, Queue::call)
    }

    /// Makes all dead jobs of a topic ready now, in as many batches as it takes; answers how many.
    pub async fn revive_all(&self, topic: &str) -> Result<u64, Error> {
        let mut revived = 0;
        loop {
            let count = self.revive_topic(topic, BATCH_MAX).await?;
            revived += count;
            // Less than was asked for: no dead one was left.
            if count < BATCH_MAX as u64 {
                return Ok(revived);
            }
        }
    }

    /// As [`revive_all`](Queue::revive_all), blocking the thread.
    pub fn revive_all_wait(&self, topic: &str) -> Result<u64, Error> {
        crate::block::block_on(self.revive_all(topic))
    }

    /// How many jobs become due in each `step` between two instants.
    ///
    /// ```
    /// # use dormouse::{Queue, VirtualClock};
    /// # use std::time::{Duration, UNIX_EPOCH};
    /// # let clock = VirtualClock::new();
    /// # let queue = Queue::builder().clock(clock.clone()).memory();
    /// # let now = UNIX_EPOCH + Duration::from_millis(1_767_225_600_000);
    /// let minute = Duration::from_secs(60);
    /// queue.put("mails", "").at(now + minute + minute / 2).wait()?;
    /// assert_eq!(queue.forecast("mails", now, now + 3 * minute, minute).wait()?, [0, 1, 0]);
    /// # Ok::<(), dormouse::Error>(())
    /// ```
    pub fn forecast(
        &self,
        topic: &str,
        from: SystemTime,
        to: SystemTime,
        step: Duration,
    ) -> Call<op::Forecast, Vec<u64>> {
        // Instants before 1970 are as good as 1970: no job is due there.
        let unsigned = |ms: i64| u64::try_from(ms).unwrap_or(0);
        let options = TopicName::new(topic).map(|topic| op::Forecast {
            topic,
            from_ms: unsigned(wall_ms(from)),
            to_ms: unsigned(wall_ms(to)),
            step_ms: unsigned(span_ms(step)),
        });
        Call::new(self, options, Queue::call)
    }
}

impl Call<op::Topics, TopicsPage> {
    /// Begins after this name, such as the last of the page before.
    pub fn after(self, topic: TopicName) -> Self {
        self.set(|topics| topics.after = Some(topic))
    }

    /// How many at most; as many as a page may hold unless given.
    pub fn limit(self, limit: usize) -> Self {
        self.set(|topics| topics.limit = limit)
    }
}

impl Call<op::Purge, u64> {
    /// Only jobs of this state, which is not leased.
    pub fn state(self, state: State) -> Self {
        self.set(|purge| purge.state = Some(state))
    }

    /// Fails with `conflict`, and removes nothing, if there are more.
    pub fn at_most(self, at_most: u64) -> Self {
        self.set(|purge| purge.at_most = Some(at_most))
    }
}

impl Call<op::PauseTopic, ()> {
    /// Ends the pause after this span, instead of when it is resumed.
    pub fn span(self, span: Duration) -> Self {
        self.set(|pause| pause.for_ms = Some(span_ms(span)))
    }
}
