use std::sync::Arc;

use bytes::Bytes;
use dormouse_core::backoff::{Backoff, Delays};
use dormouse_core::fact::{Cause, Destination, Fact};
use dormouse_core::job::{BodyKind, Content, Job, JobId, Progress, TickOrigin};
use dormouse_core::limits::JITTER_PERMILLE_MAX;
use dormouse_core::place::{Class, Place};
use dormouse_core::rate::Rate;
use dormouse_core::schedule::ScheduleName;
use dormouse_core::time::Clock;
use dormouse_core::topic::{Pause, Push, Settings, TopicName, TopicNo};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use super::*;

fn bytes(max: usize) -> impl Strategy<Value = Bytes> {
    vec(any::<u8>(), 0..max).prop_map(Bytes::from)
}

/// Numbers of every length, with the extremes more often than chance gives them.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), Just(u64::MAX), (any::<u64>(), 0..64u32).prop_map(|(n, by)| n >> by)]
}

fn number_u32() -> impl Strategy<Value = u32> {
    prop_oneof![Just(0), Just(u32::MAX), (any::<u32>(), 0..32u32).prop_map(|(n, by)| n >> by)]
}

fn place() -> impl Strategy<Value = Place> {
    let class = prop_oneof![
        number_u32().prop_map(|priority| Class::waiting(priority, Clock::Steady)),
        number_u32().prop_map(|priority| Class::waiting(priority, Clock::Wall)),
        Just(Class::DEAD),
        Just(Class::HOLD),
    ];
    (number_u32(), class, number(), number()).prop_map(|(topic, class, due_at, id)| Place {
        topic: TopicNo(topic),
        class,
        due_at,
        id: JobId(id),
    })
}

fn backoff() -> impl Strategy<Value = Arc<Backoff>> {
    let delays = prop_oneof![
        number().prop_map(|delay_ms| Delays::Fixed { delay_ms }),
        (number(), number_u32(), number()).prop_map(|(base_ms, factor, cap_ms)| {
            Delays::Exponential { base_ms, factor, cap_ms }
        }),
        vec(number(), 0..5).prop_map(|delays_ms| Delays::List { delays_ms }),
    ];
    (delays, option::of(0..=JITTER_PERMILLE_MAX)).prop_map(|(delays, jitter)| {
        let usual = delays.default_jitter_permille();
        Arc::new(Backoff { delays, jitter_permille: jitter.unwrap_or(usual) })
    })
}

fn tick() -> impl Strategy<Value = Arc<TickOrigin>> {
    ("[a-z0-9.:]{1,20}", number(), number()).prop_map(|(name, tick_ms, missed)| {
        let schedule = ScheduleName::new(&name).unwrap();
        Arc::new(TickOrigin { schedule, tick_ms, missed })
    })
}

fn content() -> impl Strategy<Value = Content> {
    let kind = prop_oneof![Just(BodyKind::Bytes), Just(BodyKind::Text), Just(BodyKind::Json)];
    let headers = option::of(vec((any::<String>(), any::<String>()), 0..3).prop_map(Arc::new));
    let ttr_ms = prop_oneof![Just(60_000), number()];
    let attempts_max = prop_oneof![Just(16), number_u32()];
    (
        (option::of(bytes(20)), headers, bytes(300), kind),
        (ttr_ms, attempts_max, option::of(backoff()), number(), number(), option::of(tick())),
        (prop_oneof![Just(0), number()], option::of(bytes(20))),
    )
        .prop_map(|((key, headers, body, body_kind), rest, (expires_after_ms, group))| {
            Content {
                key,
                headers,
                body,
                body_kind,
                ttr_ms: rest.0,
                attempts_max: rest.1,
                backoff: rest.2,
                key_ttl_ms: rest.3,
                expires_after_ms,
                put_at: rest.4,
                tick: rest.5,
                group,
            }
        })
}

fn progress() -> impl Strategy<Value = Progress> {
    let priority = prop_oneof![Just(1_024), number_u32()];
    let numbers = (number_u32(), number_u32(), number_u32(), number_u32(), number_u32());
    (
        (priority, number(), any::<bool>(), any::<bool>(), number_u32(), number_u32()),
        numbers,
        option::of(bytes(20)),
    )
        .prop_map(|(first, second, error)| Progress {
            priority: first.0,
            fence: first.1,
            lapsed: first.2,
            key_lost: first.3,
            attempts: first.4,
            reserves: first.5,
            expiries: second.0,
            releases: second.1,
            kills: second.2,
            kicks: second.3,
            bytes: second.4,
            error,
        })
}

fn job() -> impl Strategy<Value = Job> {
    let fresh = Progress { priority: 1_024, ..Progress::default() };
    (number(), content(), prop_oneof![Just(fresh), progress()], any::<bool>()).prop_map(
        |(id, content, mut progress, true_bytes)| {
            if true_bytes {
                progress.bytes = content.bytes() as u32;
            }
            Job { id: JobId(id), content, progress }
        },
    )
}

fn movement() -> impl Strategy<Value = Fact> {
    let to = prop_oneof![
        Just(Destination::Gone),
        (number(), any::<bool>())
            .prop_map(|(ttr_ms, session)| Destination::Leased { ttr_ms, session }),
        place().prop_map(Destination::Rest),
        place().prop_map(Destination::Hold),
    ];
    let places = (place(), option::of(place()), to, any::<bool>());
    let cause = (0..12u8).prop_map(|number| Cause::from_u8(number).unwrap());
    (places, progress(), option::of(bytes(20)), cause).prop_map(|(places, progress, key, cause)| {
        let (own, mut left, mut to, shared) = places;
        let share = |place: &mut Place| (place.topic, place.id) = (own.topic, own.id);
        if shared {
            left.as_mut().map(share);
            if let Destination::Rest(place) | Destination::Hold(place) = &mut to {
                share(place);
            }
        }
        Fact::Move { id: own.id, topic: own.topic, left, to, progress, key, cause }
    })
}

fn rate() -> impl Strategy<Value = Rate> {
    (number(), number(), number()).prop_map(|(jobs, per_ms, burst)| Rate { jobs, per_ms, burst })
}

fn push() -> impl Strategy<Value = Push> {
    (number(), number(), proptest::bool::ANY, bytes(20)).prop_map(
        |(version, concurrency, is_disabled, record)| Push {
            version,
            concurrency,
            is_disabled,
            record,
        },
    )
}

fn fact() -> impl Strategy<Value = Fact> {
    let topic = || number_u32().prop_map(TopicNo);
    let settings = (
        (option::of(number()), option::of(number_u32()), option::of(backoff())),
        (option::of(number()), option::of(number()), option::of(number()), option::of(number())),
        (option::of(number()), option::of(number()), option::of(number())),
        option::of("[a-z0-9.:]{1,20}"),
        (
            option::of(number()),
            option::of(rate()),
            option::of(number()),
            option::of(rate()),
            option::of(push()),
        ),
    )
        .prop_map(|(first, second, third, dead_topic, limits)| Settings {
            ttr_ms: first.0,
            attempts_max: first.1,
            backoff: first.2,
            jobs_max: second.0,
            bytes_max: second.1,
            dead_ttl_ms: second.2,
            dead_max: second.3,
            delay_ms: third.0,
            expires_after_ms: third.1,
            keep_done_ms: third.2,
            dead_topic: dead_topic.map(|name| TopicName::new(&name).unwrap()),
            leased_max: limits.0,
            rate: limits.1,
            group_leased_max: limits.2,
            group_rate: limits.3,
            push: limits.4.map(Arc::new),
        });
    let pause = option::of(prop_oneof![Just(Pause::Open), number().prop_map(Pause::Until)]);
    let lock = (bytes(20), bytes(20), number(), number_u32(), number());
    let left = option::of((place(), number_u32()));
    let put = (job(), place(), left, option::of(number().prop_map(JobId)));
    prop_oneof![
        put.prop_map(|(job, at, left, key_loser)| {
            let left_bytes = left.map_or(0, |(_, bytes)| bytes);
            let (at, left) = (Place { id: job.id, ..at }, left.map(|(place, _)| place));
            Fact::Put { at, job, left, left_bytes, key_loser }
        }),
        movement(),
        topic().prop_map(|topic| Fact::Purged { topic }),
        (topic(), "[a-zA-Z0-9+/;.$_():][-a-z]{0,20}").prop_map(|(topic, name)| {
            Fact::TopicBorn { topic, name: TopicName::new(&name).unwrap() }
        }),
        topic().prop_map(|topic| Fact::TopicGone { topic }),
        (topic(), settings).prop_map(|(topic, settings)| Fact::TopicSet { topic, settings }),
        (topic(), pause).prop_map(|(topic, pause)| Fact::TopicPaused { topic, pause }),
        lock.prop_map(|(name, owner, fence, depth, ttl_ms)| {
            Fact::LockHeld { name, owner, fence, depth, ttl_ms }
        }),
        bytes(20).prop_map(|name| Fact::LockFreed { name }),
        (topic(), option::of(push()))
            .prop_map(|(topic, push)| Fact::PushSet { topic, push: push.map(Arc::new) }),
    ]
}

fn encoded_job(job: &Job) -> Vec<u8> {
    let mut payload = Vec::new();
    encode_payload(job, &mut payload);
    payload
}

fn encoded_fact(fact: &Fact) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode_fact(fact, &mut bytes);
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn jobs_come_back(job in job()) {
        let payload = encoded_job(&job);
        prop_assert_eq!(payload_key(&payload), job.key().map(|key| &key[..]));
        prop_assert_eq!(decode_payload(job.id, &payload), Some(job));
    }

    #[test]
    fn facts_come_back(facts in vec(fact(), 1..4)) {
        let mut bytes = Vec::new();
        facts.iter().for_each(|fact| encode_fact(fact, &mut bytes));
        let mut reader = Reader::new(&bytes);
        for fact in facts {
            prop_assert_eq!(decode_fact(&mut reader), Some(fact));
        }
        prop_assert!(reader.is_empty());
    }

    #[test]
    fn a_put_is_the_same_from_a_job_and_from_its_payload(fact in fact()) {
        if let Fact::Put { job, at, left, left_bytes, key_loser } = &fact {
            let mut bytes = Vec::new();
            let payload = encoded_job(job);
            encode_put(at, left.as_ref(), *left_bytes, *key_loser, &payload, &mut bytes);
            prop_assert_eq!(bytes, encoded_fact(&fact));
        }
    }

    #[test]
    fn short_facts_are_refused(fact in fact()) {
        let bytes = encoded_fact(&fact);
        for len in 0..bytes.len() {
            prop_assert_eq!(decode_fact(&mut Reader::new(&bytes[..len])), None, "of {} bytes", len);
        }
    }

    #[test]
    fn short_payloads_lose_nothing_but_body(job in job()) {
        let payload = encoded_job(&job);
        for len in 0..payload.len() - job.content.body.len() {
            prop_assert_eq!(decode_payload(job.id, &payload[..len]), None);
            let _ = payload_key(&payload[..len]);
        }
    }

    #[test]
    fn garbage_is_survived(mut bytes in vec(any::<u8>(), 0..80), kind in 0..12u8) {
        let _ = decode_payload(JobId(1), &bytes);
        let _ = payload_key(&bytes);
        if let Some(first) = bytes.first_mut() {
            *first = kind;
        }
        let _ = decode_fact(&mut Reader::new(&bytes));
        let _ = decode_settings(&mut Reader::new(&bytes));
    }

    #[test]
    fn numbers_come_back(value in number(), signed in any::<i64>()) {
        let mut bytes = Vec::new();
        put_varint(value, &mut bytes);
        put_zigzag(signed, &mut bytes);
        let mut reader = Reader::new(&bytes);
        prop_assert_eq!(reader.varint(), Some(value));
        prop_assert_eq!(reader.zigzag(), Some(signed));
    }
}

#[test]
fn a_varint_too_long_or_too_great_is_refused() {
    let max = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
    assert_eq!(Reader::new(&max).varint(), Some(u64::MAX));
    let mut greater = max;
    greater[9] = 2;
    assert_eq!(Reader::new(&greater).varint(), None);
    assert_eq!(Reader::new(&[0x80; 11]).varint(), None);
}

#[test]
fn what_is_of_the_future_is_refused() {
    let job = plain_job();
    let mut payload = encoded_job(&job);
    payload[0] |= 0x80;
    assert_eq!(decode_payload(job.id, &payload), None);
    payload[0] = 3 << 2;
    assert_eq!(decode_payload(job.id, &payload), None, "a fourth body kind");
    assert_eq!(decode_fact(&mut Reader::new(&[10, 0])), None, "a tenth kind of fact");
    assert_eq!(decode_settings(&mut Reader::new(&[0x80, 0x80])), None);
}

#[test]
fn a_declared_length_allocates_nothing() {
    // A list of 2^60 delays, in a payload that has three bytes for them.
    let mut payload = vec![0x20, 0, 0x04, 2];
    put_varint(1 << 60, &mut payload);
    payload.extend_from_slice(&[1, 2, 3]);
    assert_eq!(decode_payload(JobId(1), &payload), None);
}

fn plain_job() -> Job {
    Job {
        id: JobId(3_000_000_000),
        content: Content {
            body: Bytes::from(vec![7; 100]),
            ttr_ms: 60_000,
            attempts_max: 16,
            put_at: 1_790_000_000_000,
            ..Content::default()
        },
        progress: Progress { priority: 1_024, bytes: 100, ..Progress::default() },
    }
}

#[test]
fn common_records_are_small() {
    let mut job = plain_job();
    let payload = encoded_job(&job);
    assert_eq!(payload.len(), 107);
    let at = Place {
        topic: TopicNo(300),
        class: Class::waiting(1_024, Clock::Steady),
        due_at: 1_790_000_060_000,
        id: job.id,
    };
    let put = Fact::Put { job: job.clone(), at, left: None, left_bytes: 0, key_loser: None };
    assert_eq!(encoded_fact(&put).len() - payload.len(), 18);

    job.progress = Progress { fence: 77 << 32 | 5, attempts: 1, reserves: 1, ..job.progress };
    let moved = |left, to, cause| {
        let (progress, topic) = (job.progress.clone(), at.topic);
        encoded_fact(&Fact::Move { id: job.id, topic, left, to, progress, key: None, cause })
    };
    let leased = Destination::Leased { ttr_ms: 60_000, session: false };
    assert_eq!(moved(Some(at), leased, Cause::Reserve).len(), 31);
    assert_eq!(moved(None, Destination::Gone, Cause::Ack).len(), 20);
}
