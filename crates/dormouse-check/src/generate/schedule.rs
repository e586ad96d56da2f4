//! Commands on schedules: few names, short spans, every policy.

use dormouse_core::command::Command;
use dormouse_core::op::*;
use dormouse_core::schedule::{Catchup, Overlap, ScheduleName, Template};

use super::vocabulary::topic;

/// The command of an op's numbers.
pub(crate) fn command([a, b, c, d, e, f]: [u16; 6]) -> Command {
    let (topic, name) = (topic(a), ScheduleName::new(["s", "r"][usize::from(b % 2)]));
    let name = name.unwrap_or_else(|_| unreachable!("these names are good"));
    let change = |change| {
        let (topic, name) = (topic.clone(), name.clone());
        Command::ChangeSchedule(ChangeSchedule { topic, name, change })
    };
    match c % 16 {
        0 => Command::GetSchedule(GetSchedule { topic, name }),
        1 => {
            let limit = usize::from(1 + d % 3);
            Command::Schedules(Schedules { topic, state: None, cursor: None, limit })
        }
        2 => {
            let cancel_job = d % 2 == 0;
            Command::RemoveSchedule(RemoveSchedule { topic, name, cancel_job })
        }
        3 => {
            let for_ms = (d % 3 != 0).then(|| i64::from(d % 500));
            change(ScheduleChange::Pause { for_ms })
        }
        4 | 5 => change(ScheduleChange::Resume),
        6 => change(ScheduleChange::Skip),
        7 => change(ScheduleChange::Replan),
        8 => Command::RunSchedule(RunSchedule { topic, name, ticks: None }),
        _ => {
            let put = put(PutSchedule::new(topic, name, template(d)), d, e, f);
            Command::PutSchedule(Box::new(put))
        }
    }
}

fn template(number: u16) -> Template {
    Template {
        body: "tick".repeat(usize::from(number % 5)).into(),
        ttr_ms: Some(i64::from(1 + number / 5 % 300)),
        attempts_max: Some(u32::from(number % 3)),
        expires_after_ms: (number % 4 == 1).then(|| i64::from(number / 4 % 300)),
        ..Template::default()
    }
}

fn put(mut put: PutSchedule, d: u16, e: u16, f: u16) -> PutSchedule {
    let span_ms = [100, 100, 130, 400][usize::from(d % 4)];
    match e % 4 {
        0 => put.cron = Some("* * * * * *".to_owned()),
        1 => put.gap_ms = Some(span_ms),
        _ => put.every_ms = Some(span_ms),
    }
    if put.gap_ms.is_none() {
        let overlaps = [Overlap::Skip, Overlap::Wait, Overlap::Allow, Overlap::Replace];
        put.overlap = Some(overlaps[usize::from(e / 4 % 4)]);
        let catchup = [Catchup::One, Catchup::All][usize::from(e / 16 % 2)];
        let may_catch_up = matches!(put.overlap, Some(Overlap::Wait | Overlap::Allow));
        put.catchup = Some(catchup).filter(|_| may_catch_up);
    }
    put.late_max_ms = (f % 4 == 0).then(|| i64::from(f / 4 % 300));
    put.jitter_ms = (f / 4 % 4 == 0).then(|| i64::from(f / 16 % 200));
    put.ticks_max = (f / 16 % 4 == 0).then(|| u64::from(1 + f / 64 % 4));
    put
}
