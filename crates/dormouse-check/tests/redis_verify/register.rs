//! Damage to the register of topics.

use crate::installation::{Installation, TOPIC, check, is_clean};

const T: &[u8] = b"dormouse:{-topics}:t";
const I: &[u8] = b"dormouse:{-topics}:i";
const N: &[u8] = b"dormouse:{-topics}:n";
const SHARD: &[u8] = &[0, 0, 0, 1];

fn suffers(kind: &str, place: &str, damage: impl FnOnce(&Installation)) -> Installation {
    let installation = Installation::new();
    damage(&installation);
    let found = check(&installation.server.url(), false);
    let named: Vec<_> =
        found.problems.iter().map(|problem| (problem.kind.name, &*problem.place)).collect();
    assert!(named.contains(&(kind, place)), "{named:?}");
    let mended = check(&installation.server.url(), true);
    assert!(mended.is_sound() && mended.found > 0, "{:#?}", mended.problems);
    is_clean(&check(&installation.server.url(), false));
    installation
}

#[test]
fn a_topic_without_a_place_gets_it_back_from_its_shards() {
    let installation = suffers("shard_orphan", TOPIC, |installation| {
        installation.raw(&[b"HDEL", T, TOPIC.as_bytes()]);
    });
    installation.delivers_all_but(&[]);
}

#[test]
fn a_place_that_nobody_can_read_comes_back() {
    let installation = suffers("place_unreadable", TOPIC, |installation| {
        installation.raw(&[b"HSET", T, TOPIC.as_bytes(), b"what"]);
    });
    installation.delivers_all_but(&[]);
}

#[test]
fn a_register_that_is_lost_comes_back_from_the_ids_of_jobs() {
    let installation = suffers("partition_unregistered", "t/0", |installation| {
        installation.raw(&[b"DEL", T, I, N]);
    });
    assert_eq!(installation.raw(&[b"HGET", T, TOPIC.as_bytes()]).bytes(), [0, 0, 0, 1, 0, 1]);
    installation.delivers_all_but(&[]);
}

/// Somebody put to the topic after its place was lost: it has other shards now.
#[test]
fn jobs_of_a_topic_that_has_other_shards_get_new_ids() {
    let installation = suffers("id_foreign", "t/0", |installation| {
        installation.raw(&[b"HSET", T, TOPIC.as_bytes(), &[0, 0, 0, 9, 0, 1]]);
        installation.raw(&[b"HSET", T, b"", b"9"]);
        installation.raw(&[b"DEL", I]);
        installation.raw(&[b"HSET", I, &[0, 0, 0, 9], TOPIC.as_bytes()]);
    });
    installation.delivers_all_but(&[]);
}

#[test]
fn a_shard_that_does_not_lead_to_its_topic() {
    suffers("shard_missing", TOPIC, |installation| {
        installation.raw(&[b"HDEL", I, SHARD]);
    });
    suffers("shard_missing", TOPIC, |installation| {
        installation.raw(&[b"HSET", I, SHARD, b"ghost"]);
    });
}

#[test]
fn a_shard_that_the_topic_has_not() {
    suffers("shard_orphan", TOPIC, |installation| {
        installation.raw(&[b"HSET", I, &[0, 0, 0, 7], TOPIC.as_bytes()]);
    });
}

#[test]
fn shards_that_would_be_given_again() {
    suffers("last_shard_low", TOPIC, |installation| {
        installation.raw(&[b"HSET", T, b"", b"0"]);
    });
}

#[test]
fn names() {
    suffers("name_missing", TOPIC, |installation| {
        installation.raw(&[b"ZREM", N, TOPIC.as_bytes()]);
    });
    suffers("name_orphan", "ghost", |installation| {
        installation.raw(&[b"ZADD", N, b"0", b"ghost"]);
    });
}

/// Which of the two has the ids nobody can tell.
#[test]
fn two_topics_of_one_shard_are_left_to_people() {
    let installation = Installation::new();
    installation.raw(&[b"HSET", T, b"other", &[0, 0, 0, 1, 0, 1]]);
    installation.raw(&[b"ZADD", N, b"0", b"other"]);
    let found = check(&installation.server.url(), true);
    assert_eq!((found.found, found.mended), (1, 0), "{:#?}", found.problems);
    assert_eq!(found.problems[0].kind.name, "shards_shared");
}

#[test]
fn a_partition_beyond_those_of_its_topic_is_left_to_people() {
    let installation = Installation::new();
    installation.raw(&[b"HSET", b"dormouse:{t/5}:s", b"n", b"1"]);
    let found = check(&installation.server.url(), true);
    assert_eq!((found.found, found.mended), (1, 0), "{:#?}", found.problems);
    assert_eq!(
        (found.problems[0].kind.name, &*found.problems[0].place),
        ("partition_unregistered", "t/5")
    );
}
