//! peek, kick, kick-job, pause-tube.

use crate::rig::Rig;

#[tokio::test]
async fn peeks_show_the_used_tube() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    client.ask("put 5 0 9 1\na\nput 3 0 9 1\nb", "INSERTED 1\nINSERTED 2").await;
    client.ask("put 0 100 9 1\nc\nput 9 50 9 1\nd", "INSERTED 3\nINSERTED 4").await;
    client
        .ask("peek-ready\npeek-delayed\npeek-buried", "FOUND 2 1\nb\nFOUND 4 1\nd\nNOT_FOUND")
        .await;
    client.ask("pause-tube default 9\npeek-ready", "PAUSED\nFOUND 2 1\nb").await;
    client
        .ask(
            "use t\npeek-ready\npeek-delayed\npeek 3",
            "USING t\nNOT_FOUND\nNOT_FOUND\nFOUND 3 1\nc",
        )
        .await;
}

#[tokio::test]
async fn kick_moves_buried_jobs_or_else_delayed_ones() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    client.ask("kick 5\nkick 0", "KICKED 0\nKICKED 0").await;
    client.ask("put 0 0 9 1\na\nput 0 0 9 1\nb", "INSERTED 1\nINSERTED 2").await;
    client.ask("put 0 90 9 1\nc\nput 0 80 9 1\nd", "INSERTED 3\nINSERTED 4").await;
    client.ask("reserve\nreserve", "RESERVED 1 1\na\nRESERVED 2 1\nb").await;
    client.ask("bury 2 0", "BURIED").await;
    // One ms apart, so that their order is known.
    tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    client.ask("bury 1 0\nkick 1\npeek-ready", "BURIED\nKICKED 1\nFOUND 2 1\nb").await;
    client.ask("kick 9\nkick 1", "KICKED 1\nKICKED 1").await;
    assert_eq!(client.stat("stats-job 4", "state").await, "ready");
    assert_eq!(client.stat("stats-job 4", "kicks").await, "1");
    client.ask("kick -1\nkick 1", "KICKED 1\nKICKED 0").await;
}

#[tokio::test]
async fn kick_moves_more_jobs_than_one_command_does() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    let said: String = (0..5_000).map(|_| "put 0 90 9 0\r\n\r\n").collect();
    client.say(said.as_bytes()).await;
    for _ in 0..5_000 {
        client.line().await;
    }
    client.ask("kick 4999\nkick 9999", "KICKED 4999\nKICKED 1").await;
}

#[tokio::test]
async fn a_given_job_is_kicked_if_it_is_buried_or_delayed() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    client.ask("use t\nput 0 0 9 1\na\nput 0 90 9 1\nb", "USING t\nINSERTED 1\nINSERTED 2").await;
    client.ask("kick-job 1\nkick-job 9", "NOT_FOUND\nNOT_FOUND").await;
    client.ask("reserve-job 1\nkick-job 1", "RESERVED 1 1\na\nNOT_FOUND").await;
    client.ask("bury 1 0\nuse x\nkick-job 1\nkick-job 2", "BURIED\nUSING x\nKICKED\nKICKED").await;
    client.ask("kick-job 2", "NOT_FOUND").await;
    assert_eq!(client.stat("stats-tube t", "current-jobs-ready").await, "2");
}

#[tokio::test]
async fn a_paused_tube_grants_no_job() {
    let rig = Rig::frozen().await;
    let mut client = rig.client().await;
    client.ask("pause-tube t 9\npause-tube -t 9", "NOT_FOUND\nBAD_FORMAT").await;
    client.ask("put 0 0 99 1\na\npause-tube default 9", "INSERTED 1\nPAUSED").await;
    client.ask("reserve-with-timeout 0", "TIMED_OUT").await;
    let stats = client.yaml("stats-tube default").await;
    assert!(stats.ends_with("cmd-pause-tube: 1\npause: 9\npause-time-left: 8\n"), "{stats}");
    rig.advance(9);
    let stats = client.yaml("stats-tube default").await;
    assert!(stats.ends_with("pause: 0\npause-time-left: 0\n"), "{stats}");
    client.ask("reserve\nrelease 1 0 0", "RESERVED 1 1\na\nRELEASED").await;
    client.ask("pause-tube default 99", "PAUSED").await;
    let mut waiting = rig.client().await;
    waiting.say(b"reserve\r\n").await;
    rig.await_waiting(1).await;
    client.ask("pause-tube default 0", "PAUSED").await;
    waiting.hear("RESERVED 1 1\na").await;
}
