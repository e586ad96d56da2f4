//! reserve, reserve-with-timeout, reserve-job, and waiting clients.

use std::time::{Duration, Instant};

use crate::rig::{Rig, play};

/// Checks that something took this number of seconds: not less, and not much more.
fn took(since: Instant, seconds: u64) {
    let (passed, least) = (since.elapsed(), Duration::from_secs(seconds));
    let most = least + Duration::from_millis(900);
    assert!((least..most).contains(&passed), "{passed:?} instead of {seconds} s");
}

#[tokio::test]
async fn the_lowest_priority_of_all_tubes_comes_first() {
    play(&[
        ("put 5 0 9 1\na", "INSERTED 1"),
        ("use t\nput 3 0 9 1\nb", "USING t\nINSERTED 2"),
        ("put 5 0 9 1\nc", "INSERTED 3"),
        ("reserve-with-timeout 0", "RESERVED 1 1\na"),
        ("watch t\nreserve", "WATCHING 2\nRESERVED 2 1\nb"),
        ("reserve", "RESERVED 3 1\nc"),
        ("reserve-with-timeout 0", "TIMED_OUT"),
        ("reserve-with-timeout -1", "BAD_FORMAT"),
        ("reserve-with-timeout 2147483648", "BAD_FORMAT"),
    ])
    .await;
}

#[tokio::test]
async fn a_reserve_sees_the_puts_before_it() {
    let dir = tempfile::tempdir().unwrap();
    let rig = Rig::on_disk(dir.path()).await;
    let mut client = rig.client().await;
    client.ask("put 9 0 9 1\na\nput 8 0 9 1\nb", "INSERTED 1\nINSERTED 2").await;
    // They are sent at once, so that only the server waits for the syncs.
    let said = "put 5 0 9 1\nc\nreserve-with-timeout 0\nput 4 0 9 1\nd\nreserve";
    client.ask(said, "INSERTED 3\nRESERVED 3 1\nc\nINSERTED 4\nRESERVED 4 1\nd").await;
    client.ask("reserve-with-timeout 0", "RESERVED 2 1\nb").await;
}

#[tokio::test]
async fn a_wait_ends_with_its_time() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    let since = Instant::now();
    client.ask("reserve-with-timeout 1", "TIMED_OUT").await;
    took(since, 1);
    let since = Instant::now();
    client.ask("put 0 1 9 1\nx", "INSERTED 1").await;
    client.ask("reserve-with-timeout 9", "RESERVED 1 1\nx").await;
    took(since, 1);
}

#[tokio::test]
async fn a_put_wakes_the_longest_waiting_client() {
    let rig = Rig::new().await;
    let (mut first, mut second, mut other) =
        (rig.client().await, rig.client().await, rig.client().await);
    first.say(b"reserve\r\nlist-tube-used\r\n").await;
    rig.await_waiting(1).await;
    second.say(b"reserve\r\n").await;
    rig.await_waiting(2).await;
    assert_eq!(other.stat("stats-tube default", "current-waiting").await, "2");
    assert_eq!(other.stat("stats", "current-workers").await, "2");
    other.ask("put 0 0 9 1\na", "INSERTED 1").await;
    first.hear("RESERVED 1 1\na\nUSING default").await;
    other.ask("put 0 0 9 1\nb", "INSERTED 2").await;
    second.hear("RESERVED 2 1\nb").await;
    rig.await_waiting(0).await;
}

#[tokio::test]
async fn a_client_that_disconnects_no_longer_waits() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    client.say(b"reserve\r\nreserve\r\nlist-tube-used\r\n").await;
    rig.await_waiting(1).await;
    client.fall_silent().await;
    client.hear("TIMED_OUT\nTIMED_OUT\nUSING default").await;
    client.ends().await;
    rig.await_waiting(0).await;
    rig.client().await.ask("put 0 0 9 1\na\nreserve", "INSERTED 1\nRESERVED 1 1\na").await;
}

#[tokio::test]
async fn a_stop_answers_waiting_clients() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    client.say(b"reserve\r\n").await;
    rig.await_waiting(1).await;
    rig.server.stop(Duration::from_secs(10)).await;
    client.hear("TIMED_OUT").await;
    client.ends().await;
}

#[tokio::test]
async fn deadline_soon_is_sent_at_the_margin() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    // The margin is counted from the reserve, which comes before its reply.
    let since = Instant::now();
    client.ask("put 0 0 2 1\na\nreserve", "INSERTED 1\nRESERVED 1 1\na").await;
    client.ask("reserve", "DEADLINE_SOON").await;
    took(since, 1);
    let since = Instant::now();
    client.ask("touch 1", "TOUCHED").await;
    client.ask("reserve-with-timeout 9", "DEADLINE_SOON").await;
    took(since, 1);
    client.ask("reserve-with-timeout 0", "DEADLINE_SOON").await;
    let mut other = rig.client().await;
    other.ask("put 0 0 9 1\nb", "INSERTED 2").await;
    client.ask("reserve", "RESERVED 2 1\nb").await;
    client.ask("reserve-job 7", "NOT_FOUND").await;
    client.ask("delete 1\nreserve-with-timeout 0", "DELETED\nTIMED_OUT").await;
}

#[tokio::test]
async fn a_time_to_run_of_a_second_is_all_margin() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    client
        .ask("put 0 0 0 1\na\nreserve\nreserve", "INSERTED 1\nRESERVED 1 1\na\nDEADLINE_SOON")
        .await;
    let mut other = rig.client().await;
    let since = Instant::now();
    other.ask("reserve-with-timeout 5", "RESERVED 1 1\na").await;
    assert!(since.elapsed() < Duration::from_secs(2));
    assert_eq!(other.stat("stats-job 1", "timeouts").await, "1");
    assert_eq!(other.stat("stats", "job-timeouts").await, "1");
    client
        .ask(
            "delete 1\nrelease 1 0 0\ntouch 1\nbury 1 0",
            "NOT_FOUND\nNOT_FOUND\nNOT_FOUND\nNOT_FOUND",
        )
        .await;
    client.ask("reserve-with-timeout 0", "TIMED_OUT").await;
}

#[tokio::test]
async fn a_given_job_is_reserved_in_any_state() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    client.ask("use t\nput 7 100 9 1\na\nput 0 0 9 1\nb", "USING t\nINSERTED 1\nINSERTED 2").await;
    client.ask("pause-tube t 60\nreserve-job 1", "PAUSED\nRESERVED 1 1\na").await;
    client.ask("reserve-job 1", "NOT_FOUND").await;
    rig.client().await.ask("reserve-job 1", "NOT_FOUND").await;
    client.ask("release 1 7 0\npeek-ready", "RELEASED\nFOUND 2 1\nb").await;
    assert_eq!(client.stat("stats-job 1", "state").await, "ready");
    client
        .ask("reserve-job 2\nbury 2 1\nreserve-job 2", "RESERVED 2 1\nb\nBURIED\nRESERVED 2 1\nb")
        .await;
    client.ask("release 2 1 0", "RELEASED").await;
    assert_eq!(client.stat("stats-job 2", "state").await, "ready");
}
