//! A socket in the file system.

use std::path::Path;
use std::sync::Arc;

use dormouse_disk::engine::{Engine, Options as EngineOptions};
use dormouse_server::{BeanstalkAddr, BeanstalkOptions, Options, Server, StartError};
use tokio::net::UnixStream;

use crate::client::Client;

async fn serve(path: &Path) -> Result<Server, StartError> {
    let beanstalk = Some(BeanstalkOptions::new(BeanstalkAddr::Unix(path.to_owned())));
    let engine = Arc::new(Engine::memory(EngineOptions::default()));
    Server::start(engine, Options { beanstalk, ..Options::default() }).await
}

#[tokio::test]
async fn a_stale_socket_is_replaced_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("socket");
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    assert!(path.exists(), "it is stale");
    let server = serve(&path).await.unwrap();
    assert_eq!(server.beanstalk_addr(), None);
    let mut client = Client::over(UnixStream::connect(&path).await.unwrap());
    client.ask("put 0 0 9 1\nx\nreserve", "INSERTED 1\nRESERVED 1 1\nx").await;
    assert!(serve(&path).await.is_err(), "somebody listens");
    client.ask("delete 1", "DELETED").await;
    let other = dir.path().join("other");
    let _kept = std::os::unix::net::UnixDatagram::bind(&other).unwrap();
    assert!(serve(&other).await.is_err(), "somebody listens, though to no connections");
    assert!(other.exists());
    let link = dir.path().join("link");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    assert!(serve(&link).await.is_err(), "a link, even to a socket");
    assert!(link.is_symlink());
    let file = dir.path().join("file");
    std::fs::write(&file, "precious").unwrap();
    let error = serve(&file).await.err().unwrap().to_string();
    assert!(error.contains("not a socket"), "{error}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "precious");
}
