//! Every case of the conformance suite over every subject, one test each:
//! `put::keep_answers_the_existing_job::disk_churned`. On a cluster, one test for each verb:
//! `redis_cluster::put`.

use dormouse_check::conformance::served::{self, NOT_OVER_HTTP, NOT_OVER_RESP, Skips};
use dormouse_check::conformance::{Subject, directory, redis, run, verbs};

/// How many cases cannot work over HTTP, and over RESP.
const SKIPPED_HTTP: usize = 47;
const SKIPPED_RESP: usize = 39;

macro_rules! over_every_subject {
    ($verb:ident: $($case:ident)+) => {
        mod $verb {
            $(mod $case {
                use super::super::{
                    NOT_OVER_HTTP, NOT_OVER_RESP, Subject, on_redis, run, unless,
                };

                #[test]
                fn memory() {
                    run(stringify!($verb), stringify!($case), &mut Subject::memory());
                }

                #[test]
                fn disk() {
                    run(stringify!($verb), stringify!($case), &mut Subject::disk());
                }

                #[test]
                fn disk_reopened() {
                    run(stringify!($verb), stringify!($case), &mut Subject::disk_reopened());
                }

                #[test]
                fn disk_churned() {
                    run(stringify!($verb), stringify!($case), &mut Subject::disk_churned());
                }

                #[test]
                fn redis() {
                    on_redis(stringify!($verb), stringify!($case), Subject::redis);
                }

                #[test]
                fn redis_reopened() {
                    on_redis(stringify!($verb), stringify!($case), Subject::redis_reopened);
                }

                #[test]
                fn http() {
                    unless(NOT_OVER_HTTP, stringify!($verb), stringify!($case), Subject::http);
                }

                #[test]
                fn http_disk() {
                    unless(NOT_OVER_HTTP, stringify!($verb), stringify!($case), Subject::http_disk);
                }

                #[test]
                fn resp() {
                    unless(NOT_OVER_RESP, stringify!($verb), stringify!($case), Subject::resp);
                }

                #[test]
                fn resp_disk() {
                    unless(NOT_OVER_RESP, stringify!($verb), stringify!($case), Subject::resp_disk);
                }

                #[test]
                fn connect() {
                    unless(NOT_OVER_RESP, stringify!($verb), stringify!($case), Subject::connect);
                }

                #[test]
                fn connect_disk() {
                    let subject = Subject::connect_disk;
                    unless(NOT_OVER_RESP, stringify!($verb), stringify!($case), subject);
                }
            })+
        }
    };
}

macro_rules! on_a_cluster {
    ($($verb:ident)+) => {
        mod redis_cluster {
            $(#[test]
            fn $verb() {
                super::redis::run_on_cluster(stringify!($verb));
            })+

            /// A verb that is missing above would never meet a cluster.
            #[test]
            fn has_every_verb() {
                assert_eq!(super::verbs(), [$(stringify!($verb)),+]);
            }
        }
    };
}

dormouse_check::ack!(over_every_subject);
dormouse_check::cancel!(over_every_subject);
dormouse_check::chain!(over_every_subject);
dormouse_check::change_schedule!(over_every_subject);
dormouse_check::check!(over_every_subject);
dormouse_check::dead_letters!(over_every_subject);
dormouse_check::deadlines!(over_every_subject);
dormouse_check::done!(over_every_subject);
dormouse_check::extend!(over_every_subject);
dormouse_check::forecast!(over_every_subject);
dormouse_check::get!(over_every_subject);
dormouse_check::get_schedule!(over_every_subject);
dormouse_check::kick!(over_every_subject);
dormouse_check::kill!(over_every_subject);
dormouse_check::limits!(over_every_subject);
dormouse_check::list!(over_every_subject);
dormouse_check::liveness!(over_every_subject);
dormouse_check::lock!(over_every_subject);
dormouse_check::locks!(over_every_subject);
dormouse_check::nack!(over_every_subject);
dormouse_check::pause!(over_every_subject);
dormouse_check::peek!(over_every_subject);
dormouse_check::purge!(over_every_subject);
dormouse_check::push!(over_every_subject);
dormouse_check::pushes!(over_every_subject);
dormouse_check::put!(over_every_subject);
dormouse_check::put_limits!(over_every_subject);
dormouse_check::put_on_key!(over_every_subject);
dormouse_check::put_schedule!(over_every_subject);
dormouse_check::release!(over_every_subject);
dormouse_check::remove_schedule!(over_every_subject);
dormouse_check::reschedule!(over_every_subject);
dormouse_check::reserve!(over_every_subject);
dormouse_check::reserve_id!(over_every_subject);
dormouse_check::reserve_wait!(over_every_subject);
dormouse_check::revive!(over_every_subject);
dormouse_check::run_schedule!(over_every_subject);
dormouse_check::schedules!(over_every_subject);
dormouse_check::session!(over_every_subject);
dormouse_check::set_topic!(over_every_subject);
dormouse_check::stats!(over_every_subject);
dormouse_check::topics!(over_every_subject);
dormouse_check::topics_of!(over_every_subject);
dormouse_check::withdraw!(over_every_subject);

on_a_cluster! {
    ack
    cancel
    chain
    change_schedule
    check
    dead_letters
    deadlines
    done
    extend
    forecast
    get
    get_schedule
    kick
    kill
    limits
    list
    liveness
    lock
    locks
    nack
    pause
    peek
    purge
    push
    pushes
    put
    put_limits
    put_on_key
    put_schedule
    release
    remove_schedule
    reschedule
    reserve
    reserve_id
    reserve_wait
    revive
    run_schedule
    schedules
    session
    set_topic
    stats
    topics
    topics_of
    withdraw
}

/// Runs a case on Redis, or says why it is not for Redis.
fn on_redis(verb: &str, case: &str, subject: fn() -> Subject) {
    match redis::not_on_redis(verb, case) {
        None => run(verb, case, &mut subject()),
        Some(reason) => eprintln!("{verb}::{case} is not run on Redis: {reason}"),
    }
}

/// Runs a case unless the list names it; then says why.
fn unless(skips: Skips, verb: &str, case: &str, subject: fn() -> Subject) {
    match served::reason(skips, verb, case) {
        None => run(verb, case, &mut subject()),
        Some(reason) => eprintln!("{verb}::{case} is not run: {reason}"),
    }
}

/// A case that was renamed, or works now, would be skipped for nothing.
fn check_skipped(skips: Skips, count: usize, subject: fn() -> Subject) {
    let cases = served::skipped(skips);
    for (verb, case) in &cases {
        let worked = std::panic::catch_unwind(|| run(verb, case, &mut subject())).is_ok();
        assert!(!worked, "{verb}::{case} works");
    }
    assert_eq!(cases.len(), count, "each with its reason: {cases:?}");
}

#[test]
fn no_case_is_skipped_that_works_over_http() {
    check_skipped(NOT_OVER_HTTP, SKIPPED_HTTP, Subject::http);
}

#[test]
fn no_case_is_skipped_that_works_over_resp() {
    check_skipped(NOT_OVER_RESP, SKIPPED_RESP, Subject::resp);
}

macro_rules! in_a_directory {
    ($($case:ident)+) => {
        mod bad_directory {
            $(#[test]
            fn $case() {
                let dir = tempfile::tempdir().expect("a temporary directory");
                super::directory::$case(dir.path());
            })+
        }
    };
}

in_a_directory! {
    in_use_by_another_engine
    closed_is_unavailable
    not_a_directory
    not_writable
    a_newer_format
    a_damaged_manifest
    a_lost_manifest
    strange_files_stay
}
