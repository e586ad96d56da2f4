//! A TLS connection that trusts one authority, and requests over it.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use serde_json::Value;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::authority::Authority;
use crate::process;

pub(crate) struct Client(StreamOwned<ClientConnection, TcpStream>);

impl Client {
    /// Connects and completes the handshake.
    pub(crate) fn connect(addr: SocketAddr, authority: &Authority) -> Client {
        let mut roots = RootCertStore::empty();
        roots.add(authority.certificate().clone()).unwrap();
        let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let name = ServerName::try_from("localhost").unwrap();
        let mut tls = ClientConnection::new(Arc::new(config), name).unwrap();
        let mut socket = process::connect(addr);
        while tls.is_handshaking() {
            tls.complete_io(&mut socket).unwrap();
        }
        Client(StreamOwned::new(tls, socket))
    }

    /// The certificate that the server showed.
    pub(crate) fn certificate(&self) -> &CertificateDer<'static> {
        &self.0.conn.peer_certificates().unwrap()[0]
    }

    /// Sends a request with a JSON body and reads the JSON reply; the connection stays open.
    pub(crate) fn post(&mut self, path: &str, body: &Value) -> (u16, Value) {
        let body = body.to_string();
        let head = format!("POST {path} HTTP/1.1\r\nHost: localhost\r\n");
        let length = format!("Content-Type: application/json\r\nContent-Length: {}", body.len());
        self.send(&format!("{head}{length}\r\n\r\n{body}"));
        let head = self.read_until("\r\n\r\n").to_ascii_lowercase();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let length = head.split("content-length: ").nth(1).unwrap().lines().next().unwrap();
        let mut body = vec![0; length.parse().unwrap()];
        self.0.read_exact(&mut body).unwrap();
        (status, serde_json::from_slice(&body).unwrap())
    }

    pub(crate) fn send(&mut self, text: &str) {
        self.0.write_all(text.as_bytes()).unwrap();
        self.0.flush().unwrap();
    }

    /// Reads up to and including `end`.
    pub(crate) fn read_until(&mut self, end: &str) -> String {
        let mut bytes = Vec::new();
        while !bytes.ends_with(end.as_bytes()) {
            let mut byte = [0];
            self.0.read_exact(&mut byte).unwrap();
            bytes.push(byte[0]);
        }
        String::from_utf8(bytes).unwrap()
    }
}
