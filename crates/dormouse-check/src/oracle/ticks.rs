//! The law of ticks: each that passed was given, missed, overlapped or skipped.

use dormouse_core::machine::Machine;
use dormouse_core::schedule::{RuleSpec, Schedule};
use dormouse_core::timeline::memory::MemoryTimeline;
use jiff::tz::TimeZoneDatabase;

/// Ticks that the present schedules have given.
pub(crate) fn ticks_given(machine: &Machine<MemoryTimeline>) -> u64 {
    let entries = machine.timeline().iter().filter(|(it, _)| it.topic.scheduled_topic().is_some());
    let schedules = entries.filter_map(|(_, job)| Schedule::decode(&job.content.body));
    schedules.map(|schedule| schedule.progress.counts.given).sum()
}

/// Holds for schedules whose rule is the first they had, and whose ticks are counted from there.
pub(super) fn check_ticks(machine: &Machine<MemoryTimeline>) -> Result<(), String> {
    let zones = TimeZoneDatabase::none();
    for (place, job) in machine.timeline().iter() {
        if place.topic.scheduled_topic().is_none() {
            continue;
        }
        let unread = || format!("the schedule at {place:?} cannot be read");
        let schedule = Schedule::decode(&job.content.body).ok_or_else(unread)?;
        let rule = schedule.rule(&zones).map_err(|error| error.to_string())?;
        if schedule.version != 1
            || !matches!(schedule.definition.recurrence.spec, RuleSpec::Every { .. })
        {
            continue;
        }
        let progress = &schedule.progress;
        let passed = rule.count(progress.anchor_ms, progress.last_ms);
        if progress.counts.total() != passed {
            return Err(format!("{passed} ticks have passed of {schedule:?}"));
        }
    }
    Ok(())
}
