//! A server with TLS on HTTP and RESP.

use std::net::SocketAddr;

use tempfile::TempDir;
use tokio_rustls::rustls::pki_types::CertificateDer;

use crate::authority::Authority;
use crate::process::{Process, command};

pub(crate) struct Server {
    pub(crate) process: Process,
    pub(crate) http: SocketAddr,
    pub(crate) resp: SocketAddr,
    pub(crate) authority: Authority,
    /// The certificate it started with.
    pub(crate) certificate: CertificateDer<'static>,
    /// Where its certificate and key are.
    pub(crate) dir: TempDir,
}

impl Server {
    pub(crate) fn start() -> Server {
        Server::start_with(&[])
    }

    pub(crate) fn start_with(args: &[&str]) -> Server {
        let dir = tempfile::tempdir().unwrap();
        let authority = Authority::new();
        let certificate = authority.issue(dir.path());
        let mut command = command(&["serve", "--backend=memory"]);
        command.args(["--http=127.0.0.1:0", "--resp=127.0.0.1:0"]);
        command.arg("--tls-cert").arg(dir.path().join("cert.pem"));
        command.arg("--tls-key").arg(dir.path().join("key.pem")).args(args);
        let process = Process::start(command);
        let addr = |prefix: &str| {
            let line = process.line().expect("the server did not start");
            line.strip_prefix(prefix).unwrap_or_else(|| panic!("{line}")).parse().unwrap()
        };
        let http = addr("http listening on https://");
        let resp = addr("resp listening on ");
        Server { process, http, resp, authority, certificate, dir }
    }

    pub(crate) fn url(&self) -> String {
        format!("https://localhost:{}", self.http.port())
    }
}
