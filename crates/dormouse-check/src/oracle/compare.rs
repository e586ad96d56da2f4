//! Everything that the store and the oracle know, side by side.

use std::collections::BTreeSet;

use dormouse_core::error::Fatal;
use dormouse_core::image::TopicImage;
use dormouse_core::job::JobId;
use dormouse_core::machine::Machine;
use dormouse_core::place::Class;
use dormouse_core::time::{Clock, Now};
use dormouse_core::timeline::{Next, Resting, Room, Timeline};
use dormouse_core::topic::TopicNo;
use dormouse_disk::store::Store;

use crate::oracle::Oracle;
use crate::oracle::deadlines::check_deadlines;
use crate::oracle::ticks::check_ticks;

/// The names to look up.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// Every id ever seen.
    pub ids: Vec<JobId>,
    /// Every key ever used.
    pub keys: Vec<Vec<u8>>,
    /// Every priority ever used.
    pub priorities: Vec<u32>,
}

/// Compares tables, lanes, look-ups and counts.
pub fn compare(
    store: &mut Store,
    oracle: &mut Oracle,
    now: Now,
    known: &Known,
) -> Result<(), String> {
    compare_tables(store, oracle)?;
    let topics = oracle.machine.machine_image().next_topic;
    for topic in (1..topics).map(TopicNo) {
        for class in classes(known) {
            compare_lane(store, oracle, topic, class, now)?;
        }
        compare_deadlines(store, oracle, topic, now)?;
        compare_schedules(store, oracle, topic, now)?;
        for key in &known.keys {
            let want = oracle.machine.timeline_mut().find_key(topic, key).map_err(text)?;
            let have = store.machine().timeline_mut().find_key(topic, key).map_err(text)?;
            let lasts = |resting: &Resting| !is_over(resting, now);
            same_resting(have.filter(lasts), want.filter(lasts), || {
                format!("find_key {topic:?} {:?}", String::from_utf8_lossy(key))
            })?;
        }
    }
    for id in &known.ids {
        let want = oracle.machine.timeline_mut().find(*id).map_err(text)?;
        let have = store.machine().timeline_mut().find(*id).map_err(text)?;
        let place = store.machine().timeline_mut().place_of(*id).map_err(text)?;
        let found = have.as_ref().map(|resting| resting.place);
        if place != found {
            return Err(format!("place_of {id} is {place:?}, but it is found at {found:?}"));
        }
        same_resting(have, want, || format!("find {id}"))?;
    }
    check_deadlines(&oracle.machine)?;
    check_ticks(&oracle.machine)?;
    check_counts(oracle)
}

/// Compares what each topic has to offer. The store consumes tombstones at heads on the way, so
/// this is not done at every turn.
pub fn compare_next(store: &mut Store, oracle: &mut Oracle, now: Now) -> Result<(), String> {
    for topic in (1..oracle.machine.machine_image().next_topic).map(TopicNo) {
        let want = oracle.machine.timeline_mut().next(topic, now).map_err(text)?;
        let timeline = store.machine().timeline_mut();
        let mut have = Next::Again;
        while matches!(have, Next::Again | Next::Unread) {
            timeline.renew();
            have = timeline.next(topic, now).map_err(text)?;
        }
        timeline.renew();
        let fits = match (have, want) {
            // A lower bound is enough: what was first may have left.
            (Next::In(_), Next::Empty) => true,
            (Next::In(have_ms), Next::In(want_ms)) => have_ms <= want_ms,
            (have, want) => have == want,
        };
        if !fits {
            return Err(format!("next of {topic:?} at {now:?} is {have:?}, should be {want:?}"));
        }
    }
    Ok(())
}

fn classes(known: &Known) -> Vec<Class> {
    let waiting = known.priorities.iter().flat_map(|priority| {
        [Clock::Steady, Clock::Wall].map(|clock| Class::waiting(*priority, clock))
    });
    waiting.chain([Class::DEAD, Class::DONE, Class::HOLD]).collect()
}

fn compare_tables(store: &mut Store, oracle: &Oracle) -> Result<(), String> {
    let (have, want) = (store.machine(), &oracle.machine);
    same("numbers", have.machine_image(), want.machine_image())?;
    same("totals", have.totals(), want.totals())?;
    same("topics", topics(have), topics(want))?;
    same("leases", have.lease_images().collect::<Vec<_>>(), want.lease_images().collect())?;
    same("locks", have.lock_images().collect::<Vec<_>>(), want.lock_images().collect())?;
    same("leased bytes", have.leased_bytes(), want.leased_bytes())
}

/// The topics as they are. Whether a topic has deadlines is only how far somebody has looked.
fn topics<T: Timeline>(machine: &Machine<T>) -> Vec<TopicImage> {
    machine
        .topic_images()
        .map(|image| TopicImage { has_deadlines: false, has_parked: false, ..image })
        .collect()
}

/// All jobs of a lane, read in as many portions as it takes.
fn whole_lane(
    timeline: &mut impl Timeline,
    topic: TopicNo,
    class: Class,
) -> Result<Vec<Resting>, String> {
    let (mut jobs, mut from) = (Vec::new(), Some((0, JobId(0))));
    while let Some(next) = from {
        let room = Room::jobs(usize::MAX);
        let stretch = timeline.page(topic, class, next, room).map_err(text)?;
        jobs.extend(stretch.jobs);
        from = stretch.next;
    }
    Ok(jobs)
}

fn compare_lane(
    store: &mut Store,
    oracle: &mut Oracle,
    topic: TopicNo,
    class: Class,
    now: Now,
) -> Result<(), String> {
    let lane = || format!("lane {topic:?} {class:?}");
    let mut want = whole_lane(oracle.machine.timeline_mut(), topic, class)?;
    let mut have = whole_lane(store.machine().timeline_mut(), topic, class)?;
    if class == Class::HOLD {
        have.retain(|resting| !is_over(resting, now));
        want.retain(|resting| !is_over(resting, now));
    }
    for (have, want) in have.iter().zip(&want) {
        same_resting(Some(have.clone()), Some(want.clone()), || format!("page of {}", lane()))?;
    }
    let places = |page: &[Resting]| page.iter().map(|resting| resting.place).collect::<Vec<_>>();
    same(&format!("places of {}", lane()), places(&have), places(&want))?;
    if class == Class::HOLD {
        return Ok(());
    }
    // Around every due time, so that a wrong weight shows at its place.
    let mut instants: Vec<u64> = vec![0, now.steady_ms, now.wall_ms, u64::MAX];
    for resting in &want {
        instants.extend([resting.place.due_at - 1, resting.place.due_at]);
    }
    for until in instants {
        let have = store.machine().timeline_mut().count(topic, class, until).map_err(text)?;
        let want = want.iter().filter(|resting| resting.place.due_at <= until).count() as u64;
        same(&format!("count of {} until {until}", lane()), have, want)?;
    }
    let have = store.machine().timeline_mut().count_steps(topic, class, 0, &steps(&want));
    let want_steps = oracle.machine.timeline_mut().count_steps(topic, class, 0, &steps(&want));
    let (have, want_steps) = (have.map_err(text)?, want_steps.map_err(text)?);
    same(&format!("steps of {}", lane()), &have[..], &want_steps[..have.len()])?;
    // From the middle on, as a cursor would.
    if let Some(middle) = want.get(want.len() / 2) {
        let from = (middle.place.due_at, middle.place.id);
        let have = store
            .machine()
            .timeline_mut()
            .page(topic, class, from, Room::jobs(2))
            .map_err(text)?
            .jobs;
        let want: Vec<_> = want[want.len() / 2..].iter().take(2).map(|r| r.place).collect();
        same(&format!("page of {} from {from:?}", lane()), places(&have), want)?;
    }
    Ok(())
}

/// Ends of steps around the due times of these jobs.
fn steps(jobs: &[Resting]) -> Vec<u64> {
    let around = jobs.iter().flat_map(|job| [job.place.due_at, job.place.due_at + 1]);
    let mut ends: Vec<u64> = around.chain([u64::MAX]).collect();
    ends.dedup();
    ends
}

/// P14: counters and contents of the oracle itself agree.
fn check_counts(oracle: &Oracle) -> Result<(), String> {
    let mut leased = oracle.machine.lease_images().map(|lease| lease.topic).collect::<Vec<_>>();
    leased.sort_unstable();
    for image in oracle.machine.topic_images() {
        let of = |is_of: &dyn Fn(Class) -> bool| {
            let jobs = oracle.machine.timeline().iter();
            jobs.filter(|(place, _)| place.topic == image.topic && is_of(place.class)).count()
        };
        let name = &image.name;
        same(&format!("waiting of {name}"), image.counts.waiting, of(&|c| c.is_waiting()) as u64)?;
        same(&format!("dead of {name}"), image.counts.dead, of(&|c| c == Class::DEAD) as u64)?;
        same(&format!("done of {name}"), image.counts.done, of(&|c| c == Class::DONE) as u64)?;
        let leases = leased.iter().filter(|topic| **topic == image.topic).count() as u64;
        same(&format!("leased of {name}"), image.counts.leased, leases)?;
    }
    Ok(())
}

/// The lines of deadlines are the same, and the topics of the store know of those that are not
/// empty.
fn compare_deadlines(
    store: &mut Store,
    oracle: &mut Oracle,
    topic: TopicNo,
    now: Now,
) -> Result<(), String> {
    for clock in [Clock::Steady, Clock::Wall] {
        let class = Class::waiting(0, clock);
        compare_lane(store, oracle, topic.deadlines(), class, now)?;
        let line = whole_lane(oracle.machine.timeline_mut(), topic.deadlines(), class)?;
        let mut topics = store.machine().topic_images();
        if !line.is_empty() && !topics.any(|image| image.topic == topic && image.has_deadlines) {
            return Err(format!("topic {topic:?} does not know of its deadlines"));
        }
    }
    Ok(())
}

/// That there are no others is told by the numbers of the topics.
fn compare_schedules(
    store: &mut Store,
    oracle: &mut Oracle,
    topic: TopicNo,
    now: Now,
) -> Result<(), String> {
    let places = oracle.machine.timeline().iter().map(|(place, _)| place);
    let entries = places.filter(|place| place.topic == topic.schedules());
    let classes: BTreeSet<Class> = entries.map(|place| place.class).collect();
    for class in classes {
        compare_lane(store, oracle, topic.schedules(), class, now)?;
    }
    Ok(())
}

/// A hold past its end is as good as none, found or not.
fn is_over(resting: &Resting, now: Now) -> bool {
    resting.place.class == Class::HOLD && resting.place.due_at <= now.steady_ms
}

fn same_resting(
    have: Option<Resting>,
    want: Option<Resting>,
    what: impl FnOnce() -> String,
) -> Result<(), String> {
    let fits = match (&have, &want) {
        (None, None) => true,
        // A run no longer knows the batch; it needs not, all in it is durable.
        (Some(have), Some(want)) => {
            have.place == want.place
                && have.job == want.job
                && (have.put_batch == want.put_batch || have.put_batch == 0)
        }
        _ => false,
    };
    if fits { Ok(()) } else { Err(format!("{} gives {have:?}, should be {want:?}", what())) }
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, have: T, want: T) -> Result<(), String> {
    if have == want {
        return Ok(());
    }
    Err(format!("{what}: {have:?}, should be {want:?}"))
}

fn text(error: Fatal) -> String {
    error.to_string()
}
