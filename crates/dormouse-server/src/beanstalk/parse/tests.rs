use super::*;

#[track_caller]
fn is(line: &str, ask: Ask) {
    assert_eq!(parse(line.as_bytes()), Ok(ask), "{line:?}");
}

fn name(name: &str) -> TopicName {
    TopicName::new(name).unwrap()
}

#[test]
fn every_command_is_read() {
    let line = PutLine { priority: 1, delay_s: 2, ttr_s: 3, bytes: 4, has_more: false };
    is("put 1 2 3 4", Ask::Put(line));
    is("put 1  2 3 4 ", Ask::Put(PutLine { has_more: true, ..line }));
    is("peek 7", Ask::Peek(JobId(7)));
    is("peek-ready", Ask::PeekNext(State::Ready));
    is("peek-delayed", Ask::PeekNext(State::Delayed));
    is("peek-buried", Ask::PeekNext(State::Dead));
    is("reserve", Ask::Reserve(None));
    is("reserve-with-timeout 5", Ask::Reserve(Some(5)));
    is("reserve-with-timeout  2147483647 x", Ask::Reserve(Some(2_147_483_647)));
    is("reserve-job 7", Ask::ReserveJob(JobId(7)));
    is("delete 7", Ask::Delete(JobId(7)));
    is("release 7 8 9", Ask::Release { id: JobId(7), priority: 8, delay_s: 9 });
    is("bury 7 8", Ask::Bury { id: JobId(7), priority: 8 });
    is("kick -1", Ask::Kick(u64::MAX));
    is("kick-job 7", Ask::KickJob(JobId(7)));
    is("touch 7", Ask::Touch(JobId(7)));
    is("stats-job 7", Ask::StatsJob(JobId(7)));
    is("stats-tube a", Ask::StatsTube(name("a")));
    is("stats", Ask::Stats);
    is("use a", Ask::Use(name("a")));
    is("watch a", Ask::Watch(name("a")));
    is("ignore a", Ask::Ignore(name("a")));
    is("list-tubes", Ask::ListTubes);
    is("list-tube-used", Ask::ListTubeUsed);
    is("list-tubes-watched", Ask::ListTubesWatched);
    is("quit", Ask::Quit);
    is("quitfoo", Ask::Quit);
    is("pause-tube a 9", Ask::PauseTube { tube: Some(name("a")), pause_s: 9 });
    is("pause-tubea 9", Ask::PauseTube { tube: Some(name("a")), pause_s: 9 });
    is("pause-tube -a 9", Ask::PauseTube { tube: None, pause_s: 9 });
}

#[test]
fn unknown_is_what_begins_like_nothing() {
    for line in [
        "",
        " ",
        "PUT 0 0 0 1",
        "put",
        "use",
        "watch",
        "ignore",
        "peek",
        "delete",
        "kick",
        "touch",
        "kick-job",
        "kick-job1",
        "release",
        "bury",
        "peek\t1",
        "list-tube",
        "foo",
    ] {
        assert_eq!(parse(line.as_bytes()), Err(Wrong::Unknown), "{line:?}");
    }
}

#[test]
fn everything_else_is_badly_formed() {
    for line in [
        "statsx",
        "stats ",
        "reservex",
        "reserve ",
        "list-tubesx",
        "list-tube-usedx",
        "stats-job",
        "stats-jobx 1",
        "stats-tube",
        "stats-tube  a",
        "reserve-with-timeout",
        "reserve-with-timeout5",
        "reserve-with-timeout -1",
        "reserve-with-timeout x",
        "reserve-with-timeout 2147483648",
        "reserve-job",
        "reserve-job1",
        "pause-tube",
        "pause-tube a",
        "pause-tube a 1x",
        "pause-tube a:b 1",
        "use ",
        "use a b",
        "use a:b",
        "use -a",
        "watch ",
        "ignore ",
        "delete ",
        "delete -1",
        "delete 1 ",
        "peek 1 2",
        "peek 18446744073709551616",
        "peek-readyx",
        "touch 1 2",
        "bury 1",
        "bury 1 1 1",
        "bury 1 4294967296",
        "release 1",
        "release 1 1",
        "release 1 1 1 ",
        "release 1 1 -1",
        "kick ",
        "kick a",
        "put ",
        "put 1 2 3",
        "put a 2 3 4",
        "put -1 2 3 4",
        "put 1 2 3 4294967296",
        "foo\0",
        "put 1 2 3 4\0",
        "use é",
    ] {
        assert_eq!(parse(line.as_bytes()), Err(Wrong::Format), "{line:?}");
    }
}

#[test]
fn names_have_1_to_200_bytes() {
    let named = |length: usize| parse(format!("use {}", "a".repeat(length)).as_bytes());
    assert_eq!(named(0), Err(Wrong::Format));
    assert_eq!(named(200), Ok(Ask::Use(name(&"a".repeat(200)))));
    assert_eq!(named(201), Err(Wrong::Format));
}
