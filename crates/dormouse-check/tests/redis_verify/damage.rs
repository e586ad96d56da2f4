//! Damage to a partition: found, named, mended; and no job is lost by it.

use dormouse_core::command::Command;
use dormouse_core::op::{Put, SetTopic};
use dormouse_core::topic::Settings;

use crate::installation::{HOUR_MS, Installation, TOPIC, ZONE, check, is_clean, topic};

/// An id of the partition that no job has, with a number that was given long ago.
const NOBODY: [u8; 8] = [0, 0, 1, 0, 0, 0, 0, 1];
const NEVER: &[u8] = b"35184372088831";

/// Does the damage; `subject` is a body, or what is named as it is.
fn suffers(kind: &str, subject: &str, damage: impl FnOnce(&Installation)) -> Installation {
    let installation = Installation::new();
    is_clean(&check(&installation.server.url(), false));
    let lock_place = installation.lock_place();
    damage(&installation);
    let found = check(&installation.server.url(), false);
    let subject =
        installation.ids.get(subject).map_or_else(|| subject.to_owned(), ToString::to_string);
    let place = if kind.starts_with("lock_") { lock_place } else { format!("{TOPIC}/0") };
    let is_it = |problem: &&dormouse_redis::Problem| {
        problem.kind.name == kind && problem.place == place && problem.subject == subject
    };
    assert!(found.problems.iter().any(|problem| is_it(&problem)), "{:#?}", found.problems);
    assert!(!found.is_sound() && found.mended == 0);
    let mended = check(&installation.server.url(), true);
    assert!(mended.is_sound() && mended.found > 0, "{:#?}", mended.problems);
    is_clean(&check(&installation.server.url(), false));
    installation
}

fn leased_until_later() -> Vec<u8> {
    (ZONE + 4_000_000_000_000).to_string().into_bytes()
}

fn nobody() -> String {
    u64::from_be_bytes(NOBODY).to_string()
}

macro_rules! damages {
    ($($name:ident, $kind:literal, $subject:expr, $damage:expr;)+) => {
        $(#[test]
        fn $name() {
            suffers($kind, $subject, $damage).delivers_all_but(&[]);
        })+
    };
}

damages! {
    an_id_in_a_zset_without_a_record, "orphan_place", &nobody(), |installation| {
        installation.on("ZADD", "z1024", &[b"5", &NOBODY]);
    };
    an_id_among_the_dead_without_a_record, "orphan_place", &nobody(), |installation| {
        installation.on("ZADD", "d", &[b"5", &NOBODY]);
    };
    a_deadline_without_a_record, "orphan_place", &nobody(), |installation| {
        installation.on("ZADD", "e", &[b"4000000000000", &NOBODY]);
    };
    a_done_job_without_a_record, "orphan_place", &nobody(), |installation| {
        installation.on("ZADD", "o", &[b"4000000000000", &NOBODY]);
    };
    a_letter_without_a_record, "orphan_place", &nobody(), |installation| {
        installation.on("ZADD", "l", &[b"5", &NOBODY]);
    };
    a_tick_without_a_schedule, "orphan_tick", "nightly", |installation| {
        installation.on("ZADD", "t", &[b"4000000000000", b"nightly"]);
    };
    a_job_that_is_nowhere, "job_nowhere", "plain0", |installation| {
        installation.on("ZREM", "z1024", &[&installation.id("plain0")]);
    };
    a_leased_job_that_is_nowhere, "job_nowhere", "leased", |installation| {
        installation.on("ZREM", "z2", &[&installation.id("leased")]);
    };
    a_dead_job_that_is_nowhere, "job_nowhere", "dead", |installation| {
        installation.on("ZREM", "d", &[&installation.id("dead")]);
    };
    a_job_in_two_zsets, "job_twice", "plain0", |installation| {
        installation.on("ZADD", "z7", &[b"5", &installation.id("plain0")]);
    };
    a_job_that_waits_and_is_dead, "job_twice", "plain0", |installation| {
        installation.on("ZADD", "d", &[b"5", &installation.id("plain0")]);
    };
    a_job_in_a_strange_zset, "priority_wrong", "plain0", |installation| {
        installation.on("ZREM", "z1024", &[&installation.id("plain0")]);
        installation.on("ZADD", "z7", &[b"5", &installation.id("plain0")]);
    };
    a_leased_job_in_a_strange_zset, "priority_wrong", "leased", |installation| {
        installation.on("ZREM", "z2", &[&installation.id("leased")]);
        installation.on("ZADD", "z7", &[&leased_until_later(), &installation.id("leased")]);
    };
    a_zset_that_no_server_knows, "priority_unlisted", "55", |installation| {
        installation.on("ZREM", "z1024", &[&installation.id("plain0")]);
        installation.on("ZADD", "z55", &[b"5", &installation.id("plain0")]);
    };
    a_job_whose_priority_is_not_listed, "job_nowhere", "early", |installation| {
        installation.on("DEL", "z7", &[]);
        let text = installation.on("HGET", "s", &[b"g"]).bytes().to_vec();
        let at = text.windows(4).position(|bytes| bytes == [0, 0, 0, 7]).unwrap();
        let mut without = vec![text[0], text[1] - 1];
        without.extend(&text[2..at]);
        without.extend(&text[at + 4..]);
        installation.on("HSET", "s", &[b"g", &without]);
        installation.on("HINCRBY", "s", &[b"v", b"1"]);
    };
    a_job_before_all_time, "score_strange", "plain0", |installation| {
        installation.on("ZADD", "z1024", &[b"-5", &installation.id("plain0")]);
    };
    a_job_after_all_time, "score_strange", "plain0", |installation| {
        installation.on("ZADD", "z1024", &[b"inf", &installation.id("plain0")]);
    };
    a_lease_without_progress, "lease_unheld", "leased", |installation| {
        installation.on("HDEL", "f", &[&installation.id("leased")]);
    };
    a_last_lease_without_progress, "lease_unheld", "last", |installation| {
        installation.on("HDEL", "f", &[&installation.id("last")]);
    };
    a_lease_that_nobody_took, "lease_unheld", "plain0", |installation| {
        installation.on("ZADD", "z1024", &[&leased_until_later(), &installation.id("plain0")]);
    };
    a_dead_job_without_progress, "dead_without_progress", "dead", |installation| {
        installation.on("HDEL", "f", &[&installation.id("dead")]);
    };
    progress_of_nobody, "orphan_progress", &nobody(), |installation| {
        installation.on("HSET", "f", &[&NOBODY, &[0; 47]]);
    };
    progress_that_is_cut_short, "progress_unreadable", "leased", |installation| {
        installation.on("HSET", "f", &[&installation.id("leased"), b"short"]);
    };
    progress_of_a_dead_job_that_is_cut_short, "progress_unreadable", "dead", |installation| {
        installation.on("HSET", "f", &[&installation.id("dead"), b""]);
    };
    a_token_that_is_good_though_nobody_has_the_job, "progress_misfit", "leased", |installation| {
        installation.on("ZADD", "z2", &[b"5", &installation.id("leased")]);
    };
    a_last_lease_that_is_not_the_last, "progress_misfit", "leased", |installation| {
        let later = (2 * ZONE + 4_000_000_000_000).to_string();
        installation.on("ZADD", "z2", &[later.as_bytes(), &installation.id("leased")]);
    };
    a_key_that_is_lost, "key_missing", "keyed", |installation| {
        installation.on("HDEL", "k", &[b"k1"]);
    };
    a_key_that_leads_to_another_job, "key_missing", "keyed", |installation| {
        installation.on("HSET", "k", &[b"k1", &installation.id("plain0")]);
    };
    two_jobs_of_one_key, "key_taken", &nobody(), |installation| {
        let record = installation.on("HGET", "j", &[&installation.id("keyed")]).bytes().to_vec();
        installation.on("HSET", "j", &[&NOBODY, &record]);
        installation.on("ZADD", "z1024", &[b"5", &NOBODY]);
    };
    a_key_of_nobody, "orphan_key", "nobody", |installation| {
        installation.on("HSET", "k", &[b"nobody", &NOBODY]);
    };
    a_hold_of_nobody, "orphan_hold", "nobody", |installation| {
        installation.on("ZADD", "h", &[NEVER, b"nobody"]);
    };
    a_hold_that_is_lost, "orphan_key", "k2", |installation| {
        installation.on("ZREM", "h", &[b"k2"]);
    };
    bytes_that_are_counted_wrong, "bytes_wrong", "", |installation| {
        installation.write_header_number(13, 12_345.0);
    };
    a_header_that_is_cut_short, "books_unreadable", "", |installation| {
        installation.on("HSET", "s", &[b"b", b"short"]);
    };
    a_number_that_is_too_low, "number_low", "dead", |installation| {
        installation.write_header_number(0, 2.0);
    };
    a_number_that_is_lower_than_that_of_a_held_key, "key_number_low", "k3", |installation| {
        installation.on("HSET", "k", &[b"k3", &[0, 0, 1, 255, 0, 0, 0, 0]]);
        installation.on("ZADD", "h", &[NEVER, b"k3"]);
    };
    a_fence_that_is_too_low, "fence_low", "dead", |installation| {
        installation.write_header_number(4, 2.0);
    };
    an_end_of_a_lease_that_nobody_looks_for, "lease_end_late", "", |installation| {
        installation.write_header_number(3, 35_184_372_088_831.0);
    };
    a_number_that_is_none, "books_unreadable", "", |installation| {
        installation.write_header_number(0, f64::NAN);
    };
    settings_that_nobody_can_read, "config_unreadable", "", |installation| {
        installation.on("HSET", "s", &[b"g", b"\x00\x09what"]);
    };
    a_version_that_is_no_number, "config_unreadable", "", |installation| {
        installation.on("HSET", "s", &[b"v", b"what"]);
    };
    an_id_of_another_partition, "id_foreign", "6597069766657", |installation| {
        let (id, foreign) = (installation.id("plain0"), 6_597_069_766_657_u64.to_be_bytes());
        let record = installation.on("HGET", "j", &[&id]).bytes().to_vec();
        installation.on("HDEL", "j", &[&id]);
        installation.on("HSET", "j", &[&foreign, &record]);
        installation.on("ZREM", "z1024", &[&id]);
        installation.on("ZADD", "z1024", &[b"5", &foreign]);
    };
    a_lock_without_an_end, "lock_without_end", "lock", |installation| {
        installation.on_lock("ZREM", "d", &[b"lock"]);
    };
    a_lock_that_nobody_can_read, "lock_unreadable", "lock", |installation| {
        installation.on_lock("HSET", "j", &[b"lock", b"short"]);
    };
}

/// Such a record would stop every script that meets it. It is kept where none does.
#[test]
fn a_record_that_nobody_can_read() {
    let installation = suffers("record_unreadable", "plain0", |installation| {
        installation.on("HSET", "j", &[&installation.id("plain0"), b"what"]);
    });
    assert_eq!(installation.on("HGET", "x", &[&installation.id("plain0")]).text(), "what");
    installation.delivers_all_but(&["plain0"]);
}

/// Its id is in use all the same, and must not be given again.
#[test]
fn a_number_that_is_lower_than_that_of_a_record_that_nobody_can_read() {
    let installation = suffers("number_low", "plain4", |installation| {
        installation.on("HSET", "j", &[&installation.id("plain4"), b"what"]);
        installation.write_header_number(0, installation.header()[0] - 1.0);
    });
    installation.delivers_all_but(&["plain4"]);
}

#[test]
fn the_end_of_no_lock() {
    let installation = Installation::new();
    let place = installation.lock_place();
    installation.on_lock("HDEL", "j", &[b"lock"]);
    let found = check(&installation.server.url(), true);
    assert_eq!(found.problems[0].kind.name, "orphan_place");
    assert_eq!((&*found.problems[0].place, &*found.problems[0].subject), (&*place, "lock"));
    is_clean(&check(&installation.server.url(), false));
}

/// A script that cannot run here is a problem here, and the rest is still checked.
#[test]
fn a_key_of_another_type() {
    let installation = Installation::new();
    installation.on("DEL", "h", &[]);
    installation.on("SET", "h", &[b"what"]);
    let found = check(&installation.server.url(), true);
    assert_eq!(found.problems[0].kind.name, "script_failed");
    assert!(found.problems[0].detail.contains("WRONGTYPE"), "{:?}", found.problems);
    assert_eq!((found.found, found.locks), (1, 1));
}

/// All at once, many of each: every one is found and mended.
#[test]
fn a_mess() {
    let installation = Installation::new();
    for body in ["plain0", "plain1", "early", "keyed", "leased", "dead"] {
        for key in ["z1024", "z7", "z2", "d"] {
            installation.on("ZREM", key, &[&installation.id(body)]);
        }
        installation.on("ZADD", "z99", &[b"-1", &installation.id(body)]);
    }
    for field in ["b", "g"] {
        installation.on("HDEL", "s", &[field.as_bytes()]);
    }
    for key in ["f", "k"] {
        installation.on("DEL", key, &[]);
    }
    for number in 0..300_u64 {
        let id = (u64::from_be_bytes(NOBODY) + 1_000 + number).to_be_bytes();
        installation.on("ZADD", "z1024", &[b"5", &id]);
        installation.on("HSET", "f", &[&id, &[0; 47]]);
        installation.on("HSET", "k", &[format!("key{number}").as_bytes(), &id]);
    }
    let found = check(&installation.server.url(), true);
    assert!(found.is_sound() && found.found > 600, "{:#?}", found.problems);
    is_clean(&check(&installation.server.url(), false));
    installation.delivers_all_but(&[]);
}

#[test]
fn a_job_without_its_deadline() {
    let mut installation = Installation::new();
    let put = Put::new(topic(TOPIC), "expiring");
    installation.put(Put { expires_after_ms: Some(HOUR_MS), ..put });
    is_clean(&check(&installation.server.url(), false));
    let deadline = *installation.header().last().unwrap();
    let is_mended = |kind: &str| {
        let found = check(&installation.server.url(), false);
        let names: Vec<_> = found.problems.iter().map(|problem| problem.kind.name).collect();
        assert_eq!(names, [kind]);
        assert!(check(&installation.server.url(), true).is_sound());
        is_clean(&check(&installation.server.url(), false));
        assert_eq!(installation.on("ZCARD", "e", &[]).int(), 1);
        assert_eq!(installation.header().last(), Some(&deadline));
    };
    installation.on("DEL", "e", &[]);
    is_mended("deadline_missing");
    installation.write_header_number(14, deadline + 1.0);
    is_mended("deadline_late");
}

/// Verify leaves alone what is done, and what waits for its letter.
#[test]
fn done_jobs_and_letters_are_no_damage() {
    let installation = Installation::new();
    let settings = Settings { keep_done_ms: Some(HOUR_MS as u64), ..Settings::default() };
    let set = SetTopic { topic: topic(TOPIC), settings };
    installation.client.ask(Command::from(set)).unwrap();
    installation.delivers_all_but(&[]);
    assert!(installation.on("ZCARD", "o", &[]).int() > 0);
    is_clean(&check(&installation.server.url(), true));
}
