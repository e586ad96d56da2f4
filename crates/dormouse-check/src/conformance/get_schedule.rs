//! get_schedule: a schedule as it is.

use super::prelude::*;

cases! { get_schedule:
    it_tells_its_definition_and_its_next_ticks
    by_the_calendar_of_a_zone
    one_that_is_not_there
}

fn it_tells_its_definition_and_its_next_ticks(s: &mut Subject) {
    let put = PutSchedule {
        overlap: Some(Overlap::Allow),
        catchup: Some(Catchup::All),
        late_max_ms: Some(5_000),
        jitter_ms: Some(7),
        ticks_max: Some(9),
        ..every(60_000)
    };
    let reply = s.schedule(put);
    let view = s.look();
    assert_eq!((view.topic.as_str(), view.name.as_str(), view.version), ("t", "s", 1));
    assert_eq!((view.state, view.last), (ScheduleState::Waiting, None));
    let definition = &view.definition;
    assert_eq!((definition.overlap, definition.catchup), (Overlap::Allow, Catchup::All));
    assert_eq!((definition.late_max_ms, definition.ticks_max), (Some(5_000), Some(9)));
    assert_eq!(definition.recurrence.jitter_ms, 7);
    let first = reply.next_at.expect("a next tick");
    let expected: Vec<u64> = (0..5).map(|number| first + 60_000 * number).collect();
    assert_eq!(view.next, expected);
    assert_eq!(s.tick_counts(), [0; 4]);
}

fn by_the_calendar_of_a_zone(s: &mut Subject) {
    let zone = Some("europe/berlin".to_owned());
    let reply = s.schedule(PutSchedule { zone, ..cron("30 2 * * *") });
    assert!(reply.words.contains("Europe/Berlin"), "{}", reply.words);
    assert!(!reply.notes.is_empty(), "02:30 does not exist on one day of the year");
    let view = s.look();
    assert_eq!((view.words, view.next.len()), (reply.words, 5));
}

fn one_that_is_not_there(s: &mut Subject) {
    refused(s.try_look("s"), Code::NotFound, &["topic t", "schedule s"]);
    s.schedule(every(1_000));
    refused(s.try_look("r"), Code::NotFound, &["schedule r"]);
}
