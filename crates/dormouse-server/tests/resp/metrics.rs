//! What is counted.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::rig::Rig;

#[tokio::test]
async fn commands_are_counted_by_verb_and_result() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    client.put("t x").await;
    client.put("t x").await;
    client.ask("PUT t").await;
    client.ask("ACK 9.9").await;
    client.ask("CANCEL 99").await;
    client.ask("KICK t ALL").await;
    client.ask("nonsense").await;
    let mut socket = TcpStream::connect(rig.server.http_addr().unwrap()).await.unwrap();
    let request = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    socket.write_all(request).await.unwrap();
    let mut page = String::new();
    socket.read_to_string(&mut page).await.unwrap();
    for (verb, code, count) in [
        ("PUT", "ok", 2),
        ("PUT", "invalid", 1),
        ("ACK", "ok", 1),
        ("CANCEL", "not_found", 1),
        ("KICK", "ok", 1),
        ("unknown", "invalid", 1),
    ] {
        let line =
            format!("dormouse_resp_commands_total{{verb=\"{verb}\",code=\"{code}\"}} {count}\n");
        assert!(page.contains(&line), "{line}{page}");
    }
}
