//! Clients that wait for a job that does not come.

use std::net::SocketAddr;

use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::connection::post;

pub(crate) async fn start(addr: SocketAddr, count: usize) -> Vec<TcpStream> {
    let request = post("/v1/topics/never/reserve", r#"{"wait": "60s"}"#);
    let mut streams = Vec::with_capacity(count);
    for _ in 0..count {
        let mut stream = TcpStream::connect(addr).await.unwrap();
        stream.write_all(&request).await.unwrap();
        streams.push(stream);
    }
    streams
}
