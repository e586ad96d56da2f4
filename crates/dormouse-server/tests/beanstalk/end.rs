//! delete, release, bury, touch: the commands that end or prolong a reservation.

use crate::rig::{Rig, play};

#[tokio::test]
async fn delete_removes_any_job_that_no_other_client_has_reserved() {
    let rig = Rig::new().await;
    let (mut one, mut two) = (rig.client().await, rig.client().await);
    one.ask(
        "put 0 0 9 1\na\nput 0 100 9 1\nb\nput 0 0 9 1\nc",
        "INSERTED 1\nINSERTED 2\nINSERTED 3",
    )
    .await;
    one.ask("reserve", "RESERVED 1 1\na").await;
    two.ask("delete 1", "NOT_FOUND").await;
    one.ask("delete 1\ndelete 1", "DELETED\nNOT_FOUND").await;
    one.ask("delete 2\ndelete 2", "DELETED\nNOT_FOUND").await;
    one.ask("reserve\nbury 3 0", "RESERVED 3 1\nc\nBURIED").await;
    two.ask("peek 3\ndelete 3\ndelete 9", "FOUND 3 1\nc\nDELETED\nNOT_FOUND").await;
    assert_eq!(two.stat("stats-tube default", "cmd-delete").await, "3");
    assert_eq!(two.stat("stats", "cmd-delete").await, "7");
}

#[tokio::test]
async fn only_its_client_ends_a_reservation() {
    let rig = Rig::new().await;
    let (mut one, mut two) = (rig.client().await, rig.client().await);
    one.ask("put 0 0 9 1\na\nreserve", "INSERTED 1\nRESERVED 1 1\na").await;
    let none = "NOT_FOUND\nNOT_FOUND\nNOT_FOUND";
    two.ask("release 1 0 0\nbury 1 0\ntouch 1", none).await;
    one.ask("touch 1\nrelease 1 7 0", "TOUCHED\nRELEASED").await;
    one.ask("release 1 0 0\nbury 1 0\ntouch 1", none).await;
}

#[tokio::test]
async fn a_release_sets_priority_and_delay() {
    let rig = Rig::frozen().await;
    let mut client = rig.client().await;
    client.ask("put 5 0 100 1\na\nreserve", "INSERTED 1\nRESERVED 1 1\na").await;
    client.ask("release 1 7 100\nreserve-with-timeout 0", "RELEASED\nTIMED_OUT").await;
    client.ask("peek-delayed", "FOUND 1 1\na").await;
    rig.advance(99);
    client.ask("peek-ready", "NOT_FOUND").await;
    rig.advance(1);
    client.ask("peek-ready\nreserve", "FOUND 1 1\na\nRESERVED 1 1\na").await;
    for (key, value) in [("pri", "7"), ("releases", "1"), ("reserves", "2"), ("timeouts", "0")] {
        assert_eq!(client.stat("stats-job 1", key).await, value, "{key}");
    }
}

#[tokio::test]
async fn the_jobs_of_a_leaving_client_are_released_without_a_count() {
    for bye in [&b"quit\r\n"[..], b""] {
        let rig = Rig::new().await;
        let mut client = rig.client().await;
        client.ask("put 5 0 100 1\na\nreserve", "INSERTED 1\nRESERVED 1 1\na").await;
        client.say(bye).await;
        drop(client);
        let mut other = rig.client().await;
        other.ask("reserve", "RESERVED 1 1\na").await;
        for (key, value) in
            [("pri", "5"), ("releases", "0"), ("reserves", "2"), ("timeouts", "0"), ("kicks", "0")]
        {
            assert_eq!(other.stat("stats-job 1", key).await, value, "{key}");
        }
    }
}

#[tokio::test]
async fn a_buried_job_waits_to_be_kicked() {
    play(&[
        ("put 5 0 100 1\na\nput 5 0 100 1\nb", "INSERTED 1\nINSERTED 2"),
        ("peek-buried", "NOT_FOUND"),
        ("reserve\nbury 1 8", "RESERVED 1 1\na\nBURIED"),
        ("peek-buried", "FOUND 1 1\na"),
        ("reserve\nbury 2 0", "RESERVED 2 1\nb\nBURIED"),
        ("reserve-with-timeout 0", "TIMED_OUT"),
        ("kick 1\nreserve", "KICKED 1\nRESERVED 1 1\na"),
    ])
    .await;
}
