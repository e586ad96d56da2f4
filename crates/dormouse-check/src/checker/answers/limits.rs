//! Limits of topics by the answers: how many jobs are leased at once, and how fast they came.

use std::collections::VecDeque;

use bytes::Bytes;
use dormouse_core::Map;
use dormouse_core::op::{LeasedJob, SetTopic};
use dormouse_core::rate::Rate;
use dormouse_core::time::Now;
use dormouse_core::topic::{Settings, TopicName};

/// So many jobs are remembered for each rate.
const GIVEN_MAX: usize = 256;

/// When jobs were given while this rate held, ascending.
#[derive(Debug)]
struct Given {
    rate: Rate,
    at_ms: VecDeque<u64>,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Limits {
    settings: Map<TopicName, Settings>,
    /// By topic, and by group. No crash takes anything away from it: who was given a job has it.
    given: Map<(TopicName, Option<Bytes>), Given>,
}

impl Limits {
    /// The settings are to be learnt again.
    pub(super) fn forget_settings(&mut self) {
        self.settings.clear();
    }

    /// A topic has these settings from now on.
    pub(super) fn set(&mut self, set: &SetTopic) {
        self.settings.insert(set.topic.clone(), set.settings.clone());
    }

    /// A rate that is another from now on says nothing about the jobs before.
    pub(super) fn begin_rates(&mut self, set: &SetTopic) {
        let Settings { rate, group_rate, .. } = set.settings;
        self.given.retain(|(topic, group), given| {
            let now = if group.is_none() { rate } else { group_rate };
            *topic != set.topic || now == Some(given.rate)
        });
    }

    /// This job is given while so many others of its topic, and of its group, are leased.
    pub(super) fn check_slots(
        &self,
        given: &LeasedJob,
        of_topic: usize,
        of_group: usize,
    ) -> Result<(), String> {
        let Some(settings) = self.settings.get(&given.topic) else { return Ok(()) };
        let check = |what, leased: usize, max: Option<u64>| match max {
            Some(max) if leased as u64 >= max => {
                Err(format!("{what} is {max}, and {leased} other jobs are leased"))
            }
            _ => Ok(()),
        };
        check("leased_max", of_topic, settings.leased_max)?;
        let group_max = settings.group_leased_max.filter(|_| given.group.is_some());
        check("group_leased_max", of_group, group_max)
    }

    /// This job is given: no window that ends now has more jobs than the rates allow.
    pub(super) fn give(&mut self, now: Now, given: &LeasedJob) -> Result<(), String> {
        let Some(settings) = self.settings.get(&given.topic) else { return Ok(()) };
        let (rate, group_rate) = (settings.rate, settings.group_rate);
        self.spend((given.topic.clone(), None), rate, now)?;
        match &given.group {
            Some(group) => self.spend((given.topic.clone(), Some(group.clone())), group_rate, now),
            None => Ok(()),
        }
    }

    fn spend(
        &mut self,
        whose: (TopicName, Option<Bytes>),
        rate: Option<Rate>,
        now: Now,
    ) -> Result<(), String> {
        let Some(rate) = rate else { return Ok(()) };
        let fresh = Given { rate, at_ms: VecDeque::new() };
        let given = self.given.entry(whose.clone()).or_insert(fresh);
        if given.rate != rate {
            *given = Given { rate, at_ms: VecDeque::new() };
        }
        given.at_ms.push_back(now.steady_ms);
        if given.at_ms.len() > GIVEN_MAX {
            given.at_ms.pop_front();
        }
        for (jobs, from) in given.at_ms.iter().rev().enumerate() {
            let span_ms = now.steady_ms.saturating_sub(*from) + 1;
            let allowed = (span_ms * rate.jobs - 1) / rate.per_ms + rate.burst;
            if jobs as u64 + 1 > allowed {
                let jobs = jobs + 1;
                return Err(format!("{whose:?} gave {jobs} jobs in {span_ms} ms at {rate:?}"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use dormouse_core::job::Token;

    use super::*;

    fn limited(settings: Settings) -> Limits {
        let mut limits = Limits::default();
        limits.set(&SetTopic { topic: topic(), settings });
        limits
    }

    fn topic() -> TopicName {
        TopicName::new("t").unwrap()
    }

    fn job(group: Option<&'static str>) -> LeasedJob {
        LeasedJob {
            topic: topic(),
            id: dormouse_core::job::JobId(1),
            key: None,
            token: Token { id: dormouse_core::job::JobId(1), fence: 1 },
            attempt: 1,
            due_at: 0,
            put_at: 0,
            late_ms: 0,
            expires_at: 0,
            ttr_ms: 1,
            priority: 0,
            headers: None,
            body: Bytes::new(),
            body_kind: Default::default(),
            tick: None,
            group: group.map(|group| Bytes::from_static(group.as_bytes())),
            expires_after_ms: 0,
        }
    }

    fn at(steady_ms: u64) -> Now {
        Now { steady_ms, wall_ms: steady_ms, fraction: false }
    }

    #[test]
    fn a_job_beyond_the_slots_is_seen() {
        let settings =
            Settings { leased_max: Some(3), group_leased_max: Some(2), ..Settings::default() };
        let limits = limited(settings);
        assert!(limits.check_slots(&job(None), 2, 2).is_ok());
        assert!(limits.check_slots(&job(None), 3, 0).is_err());
        assert!(limits.check_slots(&job(Some("g")), 2, 1).is_ok());
        assert!(limits.check_slots(&job(Some("g")), 2, 2).is_err());
    }

    #[test]
    fn a_job_before_the_instant_of_a_rate_is_seen() {
        let rate = Rate { burst: 2, ..Rate::new(1, 10) };
        let settings = Settings { rate: Some(rate), ..Settings::default() };
        let mut limits = limited(settings.clone());
        for (at_ms, is_ok) in [(100, true), (100, true), (110, true), (119, false)] {
            assert_eq!(limits.give(at(at_ms), &job(None)).is_ok(), is_ok, "{at_ms}");
        }
        // The same settings change nothing, others begin anew.
        limits.begin_rates(&SetTopic { topic: topic(), settings });
        assert!(limits.give(at(119), &job(None)).is_err());
        limits.begin_rates(&SetTopic { topic: topic(), settings: Settings::default() });
        assert!(limits.give(at(119), &job(None)).is_ok());
    }

    #[test]
    fn each_group_has_a_rate_of_its_own() {
        let settings = Settings { group_rate: Some(Rate::new(1, 10)), ..Settings::default() };
        let mut limits = limited(settings);
        assert!(limits.give(at(5), &job(Some("g"))).is_ok());
        assert!(limits.give(at(5), &job(Some("h"))).is_ok());
        assert!(limits.give(at(5), &job(None)).is_ok());
        assert!(limits.give(at(6), &job(Some("g"))).is_err());
    }
}
