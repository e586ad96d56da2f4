use super::*;

#[track_caller]
fn is(line: &str, ask: LineCommand) {
    assert_eq!(parse(line.as_bytes()), Ok(ask), "{line:?}");
}

fn name(name: &str) -> TopicName {
    TopicName::new(name).unwrap()
}

#[test]
fn every_command_is_read() {
    let line = PutLine { priority: 1, delay_s: 2, ttr_s: 3, bytes: 4, has_more: false };
    is("put 1 2 3 4", LineCommand::Put(line));
    is("put 1  2 3 4 ", LineCommand::Put(PutLine { has_more: true, ..line }));
    is("peek 7", LineCommand::Peek(JobId(7)));
    is("peek-ready", LineCommand::PeekNext(State::Ready));
    is("peek-delayed", LineCommand::PeekNext(State::Delayed));
    is("peek-buried", LineCommand::PeekNext(State::Dead));
    is("reserve", LineCommand::Reserve(None));
    is("reserve-with-timeout 5", LineCommand::Reserve(Some(5)));
    is("reserve-with-timeout  2147483647 x", LineCommand::Reserve(Some(2_147_483_647)));
    is("reserve-job 7", LineCommand::ReserveJob(JobId(7)));
    is("delete 7", LineCommand::Delete(JobId(7)));
    is("release 7 8 9", LineCommand::Release { id: JobId(7), priority: 8, delay_s: 9 });
    is("bury 7 8", LineCommand::Bury { id: JobId(7), priority: 8 });
    is("kick -1", LineCommand::Kick(u64::MAX));
    is("kick-job 7", LineCommand::KickJob(JobId(7)));
    is("touch 7", LineCommand::Touch(JobId(7)));
    is("stats-job 7", LineCommand::StatsJob(JobId(7)));
    is("stats-tube a", LineCommand::StatsTube(name("a")));
    is("stats", LineCommand::Stats);
    is("use a", LineCommand::Use(name("a")));
    is("watch a", LineCommand::Watch(name("a")));
    is("ignore a", LineCommand::Ignore(name("a")));
    is("list-tubes", LineCommand::ListTubes);
    is("list-tube-used", LineCommand::ListTubeUsed);
    is("list-tubes-watched", LineCommand::ListTubesWatched);
    is("quit", LineCommand::Quit);
    is("quitfoo", LineCommand::Quit);
    is("pause-tube a 9", LineCommand::PauseTube { tube: Some(name("a")), pause_s: 9 });
    is("pause-tubea 9", LineCommand::PauseTube { tube: Some(name("a")), pause_s: 9 });
    is("pause-tube -a 9", LineCommand::PauseTube { tube: None, pause_s: 9 });
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
        assert_eq!(parse(line.as_bytes()), Err(ParseError::Unknown), "{line:?}");
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
        assert_eq!(parse(line.as_bytes()), Err(ParseError::Format), "{line:?}");
    }
}

#[test]
fn names_have_1_to_200_bytes() {
    let named = |length: usize| parse(format!("use {}", "a".repeat(length)).as_bytes());
    assert_eq!(named(0), Err(ParseError::Format));
    assert_eq!(named(200), Ok(LineCommand::Use(name(&"a".repeat(200)))));
    assert_eq!(named(201), Err(ParseError::Format));
}
