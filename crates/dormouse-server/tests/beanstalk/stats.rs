//! stats, stats-job, stats-tube: key by key.

use crate::rig::Rig;

#[tokio::test]
async fn a_job_is_described() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    client.ask("use t\nput 7 0 60 3\nabc", "USING t\nINSERTED 1").await;
    let described = |state: &str, more: &str| {
        format!(
            "---\nid: 1\ntube: \"t\"\nstate: {state}\npri: 7\nage: 0\ndelay: 0\nttr: 60\n{more}"
        )
    };
    let fresh =
        "time-left: 0\nfile: 0\nreserves: 0\ntimeouts: 0\nreleases: 0\nburies: 0\nkicks: 0\n";
    assert_eq!(client.yaml("stats-job 1").await, described("ready", fresh));
    client.ask("watch t\nreserve", "WATCHING 2\nRESERVED 1 3\nabc").await;
    let held =
        "time-left: 59\nfile: 0\nreserves: 1\ntimeouts: 0\nreleases: 0\nburies: 0\nkicks: 0\n";
    assert_eq!(client.yaml("stats-job 1").await, described("reserved", held));
    client.ask("bury 1 7", "BURIED").await;
    let dead =
        "time-left: 0\nfile: 0\nreserves: 1\ntimeouts: 0\nreleases: 0\nburies: 1\nkicks: 0\n";
    assert_eq!(client.yaml("stats-job 1").await, described("buried", dead));
    client.ask("kick 1\nstats-job 2", "KICKED 1\nNOT_FOUND").await;
    assert_eq!(client.stat("stats-job 1", "kicks").await, "1");
    client.ask("put 7 100 60 0\n", "INSERTED 2").await;
    for (key, value) in [("state", "delayed"), ("delay", "100"), ("time-left", "99")] {
        assert_eq!(client.stat("stats-job 2", key).await, value, "{key}");
    }
}

#[tokio::test]
async fn a_tube_is_described() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    client
        .ask("use t\nput 1023 0 60 0\n\nput 1024 0 60 0\n", "USING t\nINSERTED 1\nINSERTED 2")
        .await;
    client.ask("put 0 99 60 0\n\nput 1 0 60 0\n", "INSERTED 3\nINSERTED 4").await;
    client
        .ask(
            "watch t\nreserve\ndelete 4\nreserve\nbury 1 0",
            "WATCHING 2\nRESERVED 4 0\n\nDELETED\nRESERVED 1 0\n\nBURIED",
        )
        .await;
    client.ask("put 5 0 60 0\n", "INSERTED 5").await;
    client.ask("reserve\npause-tube t 0", "RESERVED 5 0\n\nPAUSED").await;
    client.ask("put 5 0 60 0\n", "INSERTED 6").await;
    let expected = "---\nname: \"t\"\ncurrent-jobs-urgent: 1\ncurrent-jobs-ready: 2\n\
        current-jobs-reserved: 1\ncurrent-jobs-delayed: 1\ncurrent-jobs-buried: 1\n\
        total-jobs: 6\ncurrent-using: 1\ncurrent-watching: 1\ncurrent-waiting: 0\n\
        cmd-delete: 1\ncmd-pause-tube: 1\npause: 0\npause-time-left: 0\n";
    assert_eq!(client.yaml("stats-tube t").await, expected);
    let untouched = client.yaml("stats-tube default").await;
    assert!(
        untouched.contains("total-jobs: 0\ncurrent-using: 0\ncurrent-watching: 1\n"),
        "{untouched}"
    );
}

#[tokio::test]
async fn counts_stay_while_a_tube_has_clients() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    client.ask("use t\nput 0 0 60 0\n\ndelete 1", "USING t\nINSERTED 1\nDELETED").await;
    let stats = client.yaml("stats-tube t").await;
    assert!(stats.contains("total-jobs: 1\n") && stats.contains("cmd-delete: 1\n"), "{stats}");
}

const KEYS: &str = "current-jobs-urgent current-jobs-ready current-jobs-reserved \
    current-jobs-delayed current-jobs-buried cmd-put cmd-peek cmd-peek-ready cmd-peek-delayed \
    cmd-peek-buried cmd-reserve cmd-reserve-with-timeout cmd-delete cmd-release cmd-use cmd-watch \
    cmd-ignore cmd-bury cmd-kick cmd-touch cmd-stats cmd-stats-job cmd-stats-tube cmd-list-tubes \
    cmd-list-tube-used cmd-list-tubes-watched cmd-pause-tube job-timeouts total-jobs max-job-size \
    current-tubes current-connections current-producers current-workers current-waiting \
    total-connections pid version rusage-utime rusage-stime uptime binlog-oldest-index \
    binlog-current-index binlog-records-migrated binlog-records-written binlog-max-size draining \
    id hostname os platform";

#[tokio::test]
async fn the_server_is_described() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    let text = client.yaml("stats").await;
    let pairs: Vec<_> = text
        .strip_prefix("---\n")
        .unwrap()
        .lines()
        .map(|line| line.split_once(": ").unwrap())
        .collect();
    let keys: Vec<_> = pairs.iter().map(|(key, _)| *key).collect();
    assert_eq!(keys, KEYS.split_whitespace().collect::<Vec<_>>());
    let value = |key: &str| pairs.iter().find(|(k, _)| *k == key).unwrap().1;
    for key in ["version", "hostname", "os", "platform"] {
        assert!(value(key).starts_with('"') && value(key).ends_with('"'), "{key}");
    }
    for (key, expected) in [
        ("cmd-stats", "1"),
        ("total-connections", "1"),
        ("current-connections", "1"),
        ("current-tubes", "1"),
        ("uptime", "0"),
        ("max-job-size", "65535"),
        ("binlog-max-size", "10485760"),
        ("draining", "false"),
    ] {
        assert_eq!(value(key), expected, "{key}");
    }
}

#[tokio::test]
async fn well_formed_commands_are_counted() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    client
        .ask(
            "peek 1\npeek x\npeek-ready\ndelete 1\ndelete",
            "NOT_FOUND\nBAD_FORMAT\nNOT_FOUND\nNOT_FOUND\nUNKNOWN_COMMAND",
        )
        .await;
    client
        .ask("put 0 0 9 1 x\npause-tube -a 1\npause-tube a x", "BAD_FORMAT\nBAD_FORMAT\nBAD_FORMAT")
        .await;
    client.ask("kick-job 1\nkick 1\nreserve-job 1", "NOT_FOUND\nKICKED 0\nNOT_FOUND").await;
    let text = client.yaml("stats").await;
    let counted = text.lines().filter(|line| line.starts_with("cmd-") && !line.ends_with(": 0"));
    let expected = [
        "cmd-put: 1",
        "cmd-peek: 1",
        "cmd-peek-ready: 1",
        "cmd-delete: 1",
        "cmd-kick: 1",
        "cmd-stats: 1",
        "cmd-pause-tube: 1",
    ];
    assert_eq!(counted.collect::<Vec<_>>(), expected);
}

#[tokio::test]
async fn clients_are_counted() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    let mut worker = rig.client().await;
    client.ask("put 0 0 9 0\n", "INSERTED 1").await;
    worker.ask("reserve", "RESERVED 1 0\n").await;
    for (key, value) in [
        ("current-connections", "2"),
        ("current-producers", "1"),
        ("current-workers", "1"),
        ("current-jobs-reserved", "1"),
        ("total-jobs", "1"),
    ] {
        assert_eq!(client.stat("stats", key).await, value, "{key}");
    }
    drop(worker);
    while client.stat("stats", "current-connections").await != "1" {
        tokio::task::yield_now().await;
    }
    assert_eq!(client.stat("stats", "current-workers").await, "0");
    assert_eq!(client.stat("stats", "total-connections").await, "2");
}
