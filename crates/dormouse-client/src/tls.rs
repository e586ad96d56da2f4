//! TLS: checks the server's certificate against those of a file or of the system.

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dormouse_core::error::Error;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{CertificateError, ClientConfig, ClientConnection, RootCertStore};

use crate::deadline::Deadline;

/// Where operating systems keep the certificates they trust.
const SYSTEM_FILES: [&str; 5] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
    "/usr/local/share/certs/ca-root-nss.crt",
];

/// The authorities that are trusted.
pub(crate) struct Trust(Arc<ClientConfig>);

impl Trust {
    /// Reads the certificates of a file, or else those that the system trusts.
    pub(crate) fn new(ca_file: Option<&Path>) -> Result<Trust, Error> {
        let file = match ca_file {
            Some(file) => file.to_owned(),
            None => system_file()?,
        };
        let wrong = |why: String| Error::invalid(format!("ca_file {}: {why}", file.display()));
        let certificates =
            CertificateDer::pem_file_iter(&file).map_err(|error| wrong(error.to_string()))?;
        let mut roots = RootCertStore::empty();
        for certificate in certificates {
            let added = roots.add(certificate.map_err(|error| wrong(error.to_string()))?);
            // A system's bundle may hold certificates that rustls does not support; a file that was
            // named must be right.
            if let (Err(error), true) = (added, ca_file.is_some()) {
                return Err(wrong(error.to_string()));
            }
        }
        if roots.is_empty() {
            return Err(wrong("there is no certificate in it".to_owned()));
        }
        let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| Error::unavailable(format!("cannot use TLS: {error}")))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Trust(Arc::new(config)))
    }

    /// Shakes hands over a socket that blocks.
    pub(crate) fn handshake(&self, host: &str, mut socket: Deadline<'_>) -> io::Result<TlsSession> {
        let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
        let mut session =
            ClientConnection::new(Arc::clone(&self.0), name).map_err(io::Error::other)?;
        while session.is_handshaking() {
            session.complete_io(&mut socket)?;
        }
        Ok(TlsSession(Mutex::new(session)))
    }
}

fn system_file() -> Result<PathBuf, Error> {
    if let Some(file) = std::env::var_os("SSL_CERT_FILE") {
        return Ok(file.into());
    }
    let found = SYSTEM_FILES.iter().map(Path::new).find(|file| file.exists());
    found.map(Path::to_owned).ok_or_else(|| {
        Error::invalid("this system has no list of trusted certificates; give ca_file")
    })
}

/// Why a handshake failed, and the way out.
pub(crate) fn refused(error: &io::Error) -> String {
    let cause = error.get_ref().and_then(|cause| cause.downcast_ref::<rustls::Error>());
    match cause {
        // A bad signature is that of another authority of the same name, a renewed one for example.
        Some(rustls::Error::InvalidCertificate(
            CertificateError::UnknownIssuer | CertificateError::BadSignature,
        )) => format!(
            "its certificate is not trusted: {error}; give the certificate of its authority as \
             ca_file"
        ),
        Some(rustls::Error::InvalidCertificate(_)) => {
            format!("its certificate is not accepted: {error}")
        }
        _ => format!("the TLS handshake failed: {error}; does it serve TLS?"),
    }
}

/// The state of an encrypted connection. The reader and the writer share it.
#[derive(Debug)]
pub(crate) struct TlsSession(Mutex<ClientConnection>);

impl TlsSession {
    fn lock(&self) -> MutexGuard<'_, ClientConnection> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn read(&self, mut socket: impl Read, into: &mut [u8]) -> io::Result<usize> {
        let mut session = self.lock();
        loop {
            match session.reader().read(into) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // An end without a notice is an end all the same: answers have their own lengths.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(0),
                read => return read,
            }
            if session.read_tls(&mut socket)? == 0 {
                return Ok(0);
            }
            session.process_new_packets().map_err(io::Error::other)?;
        }
    }

    pub(crate) fn write(&self, socket: impl Write, bytes: &[u8]) -> io::Result<usize> {
        let mut session = self.lock();
        let taken = session.writer().write(bytes)?;
        let is_sent = send(&mut session, socket)?;
        match taken {
            // Its buffer is full, and so is the socket's.
            0 if !is_sent => Err(io::ErrorKind::WouldBlock.into()),
            0 => session.writer().write(bytes),
            taken => Ok(taken),
        }
    }

    /// Tells the server that nothing more comes.
    pub(crate) fn finish(&self, socket: impl Write) {
        let mut session = self.lock();
        session.send_close_notify();
        // A socket that is full or closed ends without it.
        let _ = send(&mut session, socket);
    }

    /// Sends what is encrypted; false if the socket takes no more now.
    pub(crate) fn flush(&self, socket: impl Write) -> io::Result<bool> {
        send(&mut self.lock(), socket)
    }
}

fn send(session: &mut ClientConnection, mut socket: impl Write) -> io::Result<bool> {
    while session.wants_write() {
        match session.write_tls(&mut socket) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}

/// A session over a socket that still blocks, for the greeting.
pub(crate) struct Blocking<'s> {
    pub(crate) session: &'s TlsSession,
    pub(crate) socket: Deadline<'s>,
}

impl Read for Blocking<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.session.read(self.socket, into)
    }
}

impl Write for Blocking<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.session.write(self.socket, bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.session.flush(self.socket).map(drop)
    }
}
