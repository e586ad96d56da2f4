//! Damage to a partition: found, named, mended; and no job is lost by it.

use crate::site::{Site, TOPIC, ZONE, check, is_clean};

/// An id of the partition that no job has, with a number that was given long ago.
const NOBODY: [u8; 8] = [0, 0, 1, 0, 0, 0, 0, 1];
const NEVER: &[u8] = b"35184372088831";

/// Does the damage; `subject` is a body, or what is named as it is.
fn suffers(kind: &str, subject: &str, damage: impl FnOnce(&Site)) -> Site {
    let site = Site::new();
    is_clean(&check(&site.server.url(), false));
    let lock_place = site.lock_place();
    damage(&site);
    let found = check(&site.server.url(), false);
    let subject = site.ids.get(subject).map_or_else(|| subject.to_owned(), ToString::to_string);
    let place = if kind.starts_with("lock_") { lock_place } else { format!("{TOPIC}/0") };
    let is_it = |problem: &&dormouse_redis::Problem| {
        problem.kind.name == kind && problem.place == place && problem.subject == subject
    };
    assert!(found.problems.iter().any(|problem| is_it(&problem)), "{:#?}", found.problems);
    assert!(!found.is_sound() && found.mended == 0);
    let mended = check(&site.server.url(), true);
    assert!(mended.is_sound() && mended.found > 0, "{:#?}", mended.problems);
    is_clean(&check(&site.server.url(), false));
    site
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
    an_id_in_a_zset_without_a_record, "orphan_place", &nobody(), |site| {
        site.on("ZADD", "z1024", &[b"5", &NOBODY]);
    };
    an_id_among_the_dead_without_a_record, "orphan_place", &nobody(), |site| {
        site.on("ZADD", "d", &[b"5", &NOBODY]);
    };
    a_job_that_is_nowhere, "job_nowhere", "plain0", |site| {
        site.on("ZREM", "z1024", &[&site.id("plain0")]);
    };
    a_leased_job_that_is_nowhere, "job_nowhere", "leased", |site| {
        site.on("ZREM", "z2", &[&site.id("leased")]);
    };
    a_dead_job_that_is_nowhere, "job_nowhere", "dead", |site| {
        site.on("ZREM", "d", &[&site.id("dead")]);
    };
    a_job_in_two_zsets, "job_twice", "plain0", |site| {
        site.on("ZADD", "z7", &[b"5", &site.id("plain0")]);
    };
    a_job_that_waits_and_is_dead, "job_twice", "plain0", |site| {
        site.on("ZADD", "d", &[b"5", &site.id("plain0")]);
    };
    a_job_in_a_strange_zset, "priority_wrong", "plain0", |site| {
        site.on("ZREM", "z1024", &[&site.id("plain0")]);
        site.on("ZADD", "z7", &[b"5", &site.id("plain0")]);
    };
    a_leased_job_in_a_strange_zset, "priority_wrong", "leased", |site| {
        site.on("ZREM", "z2", &[&site.id("leased")]);
        site.on("ZADD", "z7", &[&leased_until_later(), &site.id("leased")]);
    };
    a_zset_that_no_server_knows, "priority_unlisted", "55", |site| {
        site.on("ZREM", "z1024", &[&site.id("plain0")]);
        site.on("ZADD", "z55", &[b"5", &site.id("plain0")]);
    };
    a_job_whose_priority_is_not_listed, "job_nowhere", "early", |site| {
        site.on("DEL", "z7", &[]);
        let text = site.on("HGET", "s", &[b"g"]).bytes().to_vec();
        let at = text.windows(4).position(|bytes| bytes == [0, 0, 0, 7]).unwrap();
        let mut without = vec![text[0], text[1] - 1];
        without.extend(&text[2..at]);
        without.extend(&text[at + 4..]);
        site.on("HSET", "s", &[b"g", &without]);
        site.on("HINCRBY", "s", &[b"v", b"1"]);
    };
    a_job_before_all_time, "score_strange", "plain0", |site| {
        site.on("ZADD", "z1024", &[b"-5", &site.id("plain0")]);
    };
    a_job_after_all_time, "score_strange", "plain0", |site| {
        site.on("ZADD", "z1024", &[b"inf", &site.id("plain0")]);
    };
    a_lease_without_progress, "lease_unheld", "leased", |site| {
        site.on("HDEL", "f", &[&site.id("leased")]);
    };
    a_last_lease_without_progress, "lease_unheld", "last", |site| {
        site.on("HDEL", "f", &[&site.id("last")]);
    };
    a_lease_that_nobody_took, "lease_unheld", "plain0", |site| {
        site.on("ZADD", "z1024", &[&leased_until_later(), &site.id("plain0")]);
    };
    a_dead_job_without_progress, "dead_without_progress", "dead", |site| {
        site.on("HDEL", "f", &[&site.id("dead")]);
    };
    progress_of_nobody, "orphan_progress", &nobody(), |site| {
        site.on("HSET", "f", &[&NOBODY, &[0; 47]]);
    };
    progress_that_is_cut_short, "progress_unreadable", "leased", |site| {
        site.on("HSET", "f", &[&site.id("leased"), b"short"]);
    };
    progress_of_a_dead_job_that_is_cut_short, "progress_unreadable", "dead", |site| {
        site.on("HSET", "f", &[&site.id("dead"), b""]);
    };
    a_token_that_is_good_though_nobody_has_the_job, "progress_misfit", "leased", |site| {
        site.on("ZADD", "z2", &[b"5", &site.id("leased")]);
    };
    a_last_lease_that_is_not_the_last, "progress_misfit", "leased", |site| {
        let later = (2 * ZONE + 4_000_000_000_000).to_string();
        site.on("ZADD", "z2", &[later.as_bytes(), &site.id("leased")]);
    };
    a_key_that_is_lost, "key_missing", "keyed", |site| {
        site.on("HDEL", "k", &[b"k1"]);
    };
    a_key_that_leads_to_another_job, "key_missing", "keyed", |site| {
        site.on("HSET", "k", &[b"k1", &site.id("plain0")]);
    };
    two_jobs_of_one_key, "key_taken", &nobody(), |site| {
        let record = site.on("HGET", "j", &[&site.id("keyed")]).bytes().to_vec();
        site.on("HSET", "j", &[&NOBODY, &record]);
        site.on("ZADD", "z1024", &[b"5", &NOBODY]);
    };
    a_key_of_nobody, "orphan_key", "nobody", |site| {
        site.on("HSET", "k", &[b"nobody", &NOBODY]);
    };
    a_hold_of_nobody, "orphan_hold", "nobody", |site| {
        site.on("ZADD", "h", &[NEVER, b"nobody"]);
    };
    a_hold_that_is_lost, "orphan_key", "k2", |site| {
        site.on("ZREM", "h", &[b"k2"]);
    };
    bytes_that_are_counted_wrong, "bytes_wrong", "", |site| {
        site.write_book(13, 12_345.0);
    };
    books_that_are_cut_short, "books_unreadable", "", |site| {
        site.on("HSET", "s", &[b"b", b"short"]);
    };
    a_number_that_is_too_low, "number_low", "dead", |site| {
        site.write_book(0, 2.0);
    };
    a_number_that_is_lower_than_that_of_a_held_key, "key_number_low", "k3", |site| {
        site.on("HSET", "k", &[b"k3", &[0, 0, 1, 0, 0, 0, 1, 0]]);
        site.on("ZADD", "h", &[NEVER, b"k3"]);
    };
    a_fence_that_is_too_low, "fence_low", "dead", |site| {
        site.write_book(4, 2.0);
    };
    an_end_of_a_lease_that_nobody_looks_for, "lease_end_late", "", |site| {
        site.write_book(3, 35_184_372_088_831.0);
    };
    a_number_that_is_none, "books_unreadable", "", |site| {
        site.write_book(0, f64::NAN);
    };
    settings_that_nobody_can_read, "config_unreadable", "", |site| {
        site.on("HSET", "s", &[b"g", b"\x00\x09what"]);
    };
    a_version_that_is_no_number, "config_unreadable", "", |site| {
        site.on("HSET", "s", &[b"v", b"what"]);
    };
    an_id_of_another_partition, "id_foreign", "6597069766657", |site| {
        let (id, foreign) = (site.id("plain0"), 6_597_069_766_657_u64.to_be_bytes());
        let record = site.on("HGET", "j", &[&id]).bytes().to_vec();
        site.on("HDEL", "j", &[&id]);
        site.on("HSET", "j", &[&foreign, &record]);
        site.on("ZREM", "z1024", &[&id]);
        site.on("ZADD", "z1024", &[b"5", &foreign]);
    };
    a_lock_without_an_end, "lock_without_end", "lock", |site| {
        site.on_lock("ZREM", "d", &[b"lock"]);
    };
    a_lock_that_nobody_can_read, "lock_unreadable", "lock", |site| {
        site.on_lock("HSET", "j", &[b"lock", b"short"]);
    };
}

/// Such a record would stop every script that meets it. It is kept where none does.
#[test]
fn a_record_that_nobody_can_read() {
    let site = suffers("record_unreadable", "plain0", |site| {
        site.on("HSET", "j", &[&site.id("plain0"), b"what"]);
    });
    assert_eq!(site.on("HGET", "x", &[&site.id("plain0")]).text(), "what");
    site.delivers_all_but(&["plain0"]);
}

/// Its id is in use all the same, and must not be given again.
#[test]
fn a_number_that_is_lower_than_that_of_a_record_that_nobody_can_read() {
    let site = suffers("number_low", "plain4", |site| {
        site.on("HSET", "j", &[&site.id("plain4"), b"what"]);
        site.write_book(0, site.books()[0] - 1.0);
    });
    site.delivers_all_but(&["plain4"]);
}

#[test]
fn the_end_of_no_lock() {
    let site = Site::new();
    let place = site.lock_place();
    site.on_lock("HDEL", "j", &[b"lock"]);
    let found = check(&site.server.url(), true);
    assert_eq!(found.problems[0].kind.name, "orphan_place");
    assert_eq!((&*found.problems[0].place, &*found.problems[0].subject), (&*place, "lock"));
    is_clean(&check(&site.server.url(), false));
}

/// A script that cannot run here is a problem here, and the rest is still checked.
#[test]
fn a_key_of_another_type() {
    let site = Site::new();
    site.on("DEL", "h", &[]);
    site.on("SET", "h", &[b"what"]);
    let found = check(&site.server.url(), true);
    assert_eq!(found.problems[0].kind.name, "script_failed");
    assert!(found.problems[0].detail.contains("WRONGTYPE"), "{:?}", found.problems);
    assert_eq!((found.found, found.locks), (1, 1));
}

/// All at once, many of each: every one is found and mended.
#[test]
fn a_mess() {
    let site = Site::new();
    for body in ["plain0", "plain1", "early", "keyed", "leased", "dead"] {
        for key in ["z1024", "z7", "z2", "d"] {
            site.on("ZREM", key, &[&site.id(body)]);
        }
        site.on("ZADD", "z99", &[b"-1", &site.id(body)]);
    }
    for field in ["b", "g"] {
        site.on("HDEL", "s", &[field.as_bytes()]);
    }
    for key in ["f", "k"] {
        site.on("DEL", key, &[]);
    }
    for number in 0..300_u64 {
        let id = (u64::from_be_bytes(NOBODY) + 1_000 + number).to_be_bytes();
        site.on("ZADD", "z1024", &[b"5", &id]);
        site.on("HSET", "f", &[&id, &[0; 47]]);
        site.on("HSET", "k", &[format!("key{number}").as_bytes(), &id]);
    }
    let found = check(&site.server.url(), true);
    assert!(found.is_sound() && found.found > 600, "{:#?}", found.problems);
    is_clean(&check(&site.server.url(), false));
    site.delivers_all_but(&[]);
}
