//! Jobs over two protocols at once.

use crate::rig::Rig;

#[tokio::test]
async fn jobs_put_over_http_can_be_reserved() {
    let rig = Rig::new().await;
    let answer = rig.put_by_http("mail", "hello").await;
    assert!(answer.contains("\"id\":\"1\""), "{answer}");
    let mut client = rig.client().await;
    client.ask("peek 1", "FOUND 1 5\nhello").await;
    assert_eq!(client.yaml("list-tubes").await, "---\n- default\n- mail\n");
    assert_eq!(client.stat("stats", "current-tubes").await, "2");
    assert_eq!(client.stat("stats-tube mail", "current-jobs-ready").await, "1");
    client.ask("pause-tube mail 0", "PAUSED").await;
    client.ask("watch mail\nreserve\ndelete 1", "WATCHING 2\nRESERVED 1 5\nhello\nDELETED").await;
    rig.put_by_http("a:b", "not a tube").await;
    assert_eq!(client.yaml("list-tubes").await, "---\n- default\n- mail\n");
    client.ask("peek 2", "FOUND 2 10\nnot a tube").await;
}
