//! What is wrong, in words.

use dormouse_core::op::TopicStats;
use dormouse_core::topic::TopicName;

/// Jobs that have been ready for so long should have been taken.
const LATE_MS: u64 = 10_000;
/// Where jobs are taken, they may wait longer.
const SLOW_MS: u64 = 60_000;

/// Something that an operator should mend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Verdict {
    pub(crate) code: &'static str,
    /// `None` = the server or its store.
    pub(crate) topic: Option<TopicName>,
    pub(crate) for_ms: Option<u64>,
    pub(crate) text: String,
}

impl Verdict {
    /// About the server or its store.
    pub(super) fn of_server(code: &'static str, text: impl Into<String>) -> Verdict {
        Verdict { code, topic: None, for_ms: None, text: text.into() }
    }
}

/// What is wrong with a topic, if anything. `taken` is how many of its jobs were taken since the
/// look before; `None` if that is unknown.
pub(super) fn judge(name: &TopicName, stats: &TopicStats, taken: Option<u64>) -> Option<Verdict> {
    let (ready, leased) = (stats.ready, stats.counts.leased);
    if ready == 0 {
        return None;
    }
    let late_ms = stats.oldest_ready_ms.unwrap_or(0);
    let late = span(late_ms);
    let jobs = |count: u64| if count == 1 { "1 job".to_owned() } else { format!("{count} jobs") };
    let (code, text) = if let Some(rest) = stats.paused {
        let rest = rest.map_or("until a resume".to_owned(), |ms| format!("for {} more", span(ms)));
        ("paused", format!("paused {rest}, with {} ready: topic {name}", jobs(ready)))
    } else if late_ms < LATE_MS {
        return None;
    } else if let Some(max) = stats.settings.leased_max.filter(|&max| leased >= max) {
        let text = format!("its limit of {max} leased jobs holds the ready ones: topic {name}");
        ("limited", format!("{text}, {late}"))
    } else if taken? == 0 && stats.waiters > 0 && has_limits(stats) {
        ("limited", format!("a rate or a limit of groups holds ready jobs: topic {name}, {late}"))
    } else if taken? == 0 && stats.waiters == 0 && leased == 0 {
        ("no_consumer", format!("ready jobs, nobody takes them: topic {name}, {late}"))
    } else if taken? == 0 && stats.waiters == 0 {
        let text = format!("consumers are busy with {} and take no more", jobs(leased));
        ("slow", format!("{text}: topic {name}, {late}"))
    } else if late_ms >= SLOW_MS {
        let text = format!("jobs wait {late} until they are taken, {} are ready", jobs(ready));
        ("slow", format!("{text}: topic {name}; it needs more consumers"))
    } else {
        return None;
    };
    let for_ms = stats.oldest_ready_ms;
    Some(Verdict { code, topic: Some(name.clone()), for_ms, text })
}

fn has_limits(stats: &TopicStats) -> bool {
    let settings = &stats.settings;
    settings.rate.is_some() || settings.group_leased_max.is_some() || settings.group_rate.is_some()
}

/// A span as people say it, in one unit.
fn span(ms: u64) -> String {
    let seconds = ms / 1_000;
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        7_200..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dormouse_core::image::Counts;

    fn mails(ready: u64, late_s: u64) -> TopicStats {
        let oldest_ready_ms = (ready > 0).then_some(late_s * 1_000);
        TopicStats { ready, oldest_ready_ms, ..TopicStats::default() }
    }

    fn check(stats: &TopicStats, taken: Option<u64>, expected: Option<(&str, &str)>) {
        let verdict = judge(&TopicName::new("mails").unwrap(), stats, taken);
        let found = verdict.as_ref().map(|verdict| (verdict.code, verdict.text.as_str()));
        assert_eq!(found, expected, "{stats:?}");
    }

    #[test]
    fn a_topic_that_stands_still_is_told_with_its_cause() {
        let nobody = Some(("no_consumer", "ready jobs, nobody takes them: topic mails, 12 min"));
        check(&mails(3, 720), Some(0), nobody);
        let leased = |stats: TopicStats, leased| TopicStats {
            counts: Counts { leased, ..Counts::default() },
            ..stats
        };
        let busy = "consumers are busy with 2 jobs and take no more: topic mails, 12 min";
        check(&leased(mails(3, 720), 2), Some(0), Some(("slow", busy)));
        let mut limited = leased(mails(3, 720), 2);
        limited.settings.leased_max = Some(2);
        let text = "its limit of 2 leased jobs holds the ready ones: topic mails, 12 min";
        check(&limited, None, Some(("limited", text)));
        let more = "jobs wait 12 min until they are taken, 3 jobs are ready: topic mails; it \
                    needs more consumers";
        check(&mails(3, 720), Some(5), Some(("slow", more)));
        let paused = TopicStats { paused: Some(Some(90_000)), ..mails(1, 1) };
        let text = "paused for 90 s more, with 1 job ready: topic mails";
        check(&paused, None, Some(("paused", text)));
        let paused = TopicStats { paused: Some(None), ..mails(2, 1) };
        let text = "paused until a resume, with 2 jobs ready: topic mails";
        check(&paused, None, Some(("paused", text)));
    }

    #[test]
    fn a_topic_that_works_is_not_told() {
        check(&mails(0, 0), Some(0), None);
        check(&mails(9, 5), Some(0), None);
        // It was looked at only once.
        check(&mails(9, 720), None, None);
        check(&mails(9, 30), Some(1), None);
        check(&TopicStats { paused: Some(None), ..mails(0, 0) }, Some(0), None);
        // A consumer waits: it gets the job at once.
        check(&TopicStats { waiters: 1, ..mails(1, 30) }, Some(0), None);
    }
}
