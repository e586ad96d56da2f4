//! The table as a whole.

use bytes::Bytes;
use dormouse_core::job::{Content, Job, JobId};
use dormouse_core::place::{Class, Place};
use dormouse_core::topic::TopicNo;

use super::{Memtable, PURGE_ONE_BY_ONE_MAX};
use crate::run::key_hash;

fn arrive(table: &mut Memtable, topic: u32, id: u64, key: &'static str) {
    let place = Place { topic: TopicNo(topic), class: Class::FIRST, due_at: id, id: JobId(id) };
    let content = Content { key: Some(Bytes::from_static(key.as_bytes())), ..Content::default() };
    table.arrive(place, &Job { id: JobId(id), content, ..Job::default() }, 0);
}

/// Names of jobs beyond the first with a key are searched one by one, so they must not pile up.
#[test]
fn a_purge_of_a_large_topic_leaves_no_further_names() {
    let mut table = Memtable::new(1 << 20, 1);
    // Two jobs that carry one key: the first one's name is kept apart.
    arrive(&mut table, 2, 1, "other");
    arrive(&mut table, 2, 2, "other");
    for round in 0..3 {
        let first = 10 + round * 10_000;
        arrive(&mut table, 1, first, "twice");
        for id in first + 1..=first + PURGE_ONE_BY_ONE_MAX as u64 {
            arrive(&mut table, 1, id, "twice");
        }
        table.purge(TopicNo(1));
        assert_eq!(table.more_keys.len(), 1, "round {round}");
    }
    let named = table.by_key(key_hash(TopicNo(2), b"other"));
    assert_eq!(named, [(JobId(2), false), (JobId(1), false)]);
}
