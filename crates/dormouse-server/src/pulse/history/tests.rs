use super::*;
use dormouse_core::image::Counts;

fn stats(puts: u64, waiting: u64) -> TopicStats {
    let counts = Counts { puts, waiting, ..Counts::default() };
    TopicStats { counts, ready: waiting, ..TopicStats::default() }
}

fn name(number: usize) -> TopicName {
    TopicName::new(&format!("t{number:04}")).unwrap()
}

/// The puts of each step, `None` where they are unknown.
fn puts(part: &HistoryPart) -> Vec<Option<u32>> {
    let puts = |point: &Option<Point>| point.and_then(|point| point.counts).map(|counts| counts[0]);
    part.points.iter().map(puts).collect()
}

#[test]
fn a_step_has_what_was_counted_in_it() {
    let mut history = History::default();
    for (at_s, put) in [(0, 100), (1, 101), (2, 103), (3, 103), (4, 110)] {
        history.note_all(at_s, &stats(put, at_s), true);
    }
    let part = history.of_all(Step::Second, 4);
    assert_eq!((part.from_s, part.to_s, part.step_s), (0, 4, 1));
    assert_eq!(puts(&part), [None, Some(1), Some(2), Some(0)]);
    assert_eq!(part.points[3].unwrap().levels, [3, 0, 0]);
    // The step of the present is not over.
    assert_eq!(puts(&history.of_all(Step::TenSeconds, 4)), []);
    history.note_all(10, &stats(115, 0), true);
    let part = history.of_all(Step::TenSeconds, 11);
    // Before the first sample nothing is known.
    assert_eq!(puts(&part), [Some(10)]);
}

#[test]
fn what_was_not_sampled_is_unknown() {
    let mut history = History::default();
    history.note_all(0, &stats(0, 0), true);
    history.note_all(1, &stats(5, 0), true);
    // Nobody looked for half a minute.
    history.note_all(10, &stats(6, 0), false);
    history.note_all(20, &stats(7, 0), false);
    history.note_all(30, &stats(9, 0), true);
    history.note_all(31, &stats(10, 0), true);
    let part = history.of_all(Step::Second, 32);
    assert_eq!(part.points.len(), 32);
    assert_eq!(puts(&part)[..3], [None, Some(5), None]);
    assert_eq!(puts(&part)[30..], [None, Some(1)]);
    assert_eq!(puts(&history.of_all(Step::TenSeconds, 32)), [Some(5), Some(1), Some(1)]);
}

#[test]
fn rings_are_bounded() {
    let mut history = History::default();
    for at_s in 0..100_000 {
        history.note_all(at_s, &stats(at_s, 1), true);
    }
    for (_, step) in Step::ALL {
        let part = history.of_all(step, 100_000);
        assert_eq!(part.points.len(), step.kept(), "{step:?}");
        assert_eq!(part.to_s, 100_000 / step.seconds() * step.seconds());
        assert!(puts(&part).iter().all(|puts| *puts == Some(cut(step.seconds()))), "{step:?}");
        assert!(history.all[step as usize].points.len() <= step.kept() + 1);
    }
    // A long pause forgets everything, in one step.
    history.note_all(10_000_000, &stats(1, 1), true);
    assert_eq!(history.all[0].points.len(), 1);
    let point = std::mem::size_of::<Option<Point>>();
    assert!(point <= 44, "{point} bytes");
}

#[test]
fn topics_that_are_asked_for_are_followed_first() {
    let mut history = History::default();
    let first: Vec<_> = (0..300).map(|number| (name(number), stats(1, 1))).collect();
    history.note_topics(10, &first, &[]);
    assert_eq!(history.topics.len(), HISTORY_TOPICS_MAX);
    let last = name(299);
    assert_eq!(history.of_topic(&last, 12).points, []);
    assert_eq!(history.asked(), std::slice::from_ref(&last));
    assert_eq!(history.topics.len(), HISTORY_TOPICS_MAX);
    history.note_topics(20, &first, &[(last.clone(), stats(5, 1))]);
    history.note_topics(30, &first, &[(last.clone(), stats(9, 1))]);
    assert_eq!(puts(&history.of_topic(&last, 40)), [None, Some(4)]);
    assert_eq!(history.topics.len(), HISTORY_TOPICS_MAX);
    // A topic that is gone is not followed any more.
    history.note_topics(40, &first, &[]);
    assert!(history.asked().is_empty());
    // However many are asked for.
    for number in 1_000..2_000 {
        history.of_topic(&name(number), 41);
    }
    assert_eq!(history.topics.len(), HISTORY_TOPICS_MAX);
}

#[test]
fn seconds_are_wanted_for_a_while() {
    let mut history = History::default();
    assert!(!history.wants_seconds(0));
    history.of_all(Step::Minute, 5);
    assert!(!history.wants_seconds(5));
    history.of_all(Step::Second, 5);
    assert!(history.wants_seconds(304) && !history.wants_seconds(305));
}
