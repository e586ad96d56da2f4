//! The addresses that the protocol listens on.

use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::limits::BEANSTALK_JOB_BYTES_MAX_DEFAULT;
use dormouse_core::limits::BODY_BYTES_MAX;
use rustix::fs::{Mode, chmod, fchmod};
use tokio::net::{UnixListener, UnixSocket, UnixStream};

use super::{Beanstalk, Drain, Shared, reply};
use crate::acceptor::{Acceptor, StartError, bind};
use crate::access::Access;
use crate::metrics::ProtocolKind;
use crate::pipeline::{PipelineContext, PipelineServer};
use crate::visitor::Visitor;

/// Connections that wait to be accepted.
const BACKLOG: u32 = 1024;

/// How to serve the beanstalkd protocol.
#[derive(Clone, Debug)]
pub struct BeanstalkOptions {
    /// The address to listen on.
    pub addr: BeanstalkAddr,
    /// The most bytes of a body; values above the limit of the rules are lowered to it.
    pub job_bytes_max: usize,
    /// Switches to refusing puts.
    pub drain: Drain,
}

/// An address to listen on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BeanstalkAddr {
    /// A network address.
    Tcp(SocketAddr),
    /// A path. A socket that nobody listens on is replaced, any other file is not.
    Unix(PathBuf),
}

impl BeanstalkOptions {
    /// Defaults for everything but the address.
    pub fn new(addr: BeanstalkAddr) -> BeanstalkOptions {
        let job_bytes_max = BEANSTALK_JOB_BYTES_MAX_DEFAULT;
        BeanstalkOptions { addr, job_bytes_max, drain: Drain::default() }
    }
}

/// Listens and serves; returns the network address, if it is one.
pub(crate) async fn start(
    options: BeanstalkOptions,
    acceptor: Acceptor,
    context: PipelineContext,
    access: &Access,
) -> Result<Option<SocketAddr>, StartError> {
    let job_bytes_max = options.job_bytes_max.min(BODY_BYTES_MAX);
    let shared = Arc::new(Shared::new(job_bytes_max, options.drain, access));
    let begin = move |_: &Arc<Visitor>| Beanstalk::new(Arc::clone(&shared));
    let (kind, crowded) = (ProtocolKind::Beanstalk, reply::OUT_OF_MEMORY);
    let server = PipelineServer { acceptor, context, kind, crowded, begin };
    match options.addr {
        BeanstalkAddr::Tcp(addr) => {
            let listener = bind(addr).await?;
            let bound = listener.local_addr().unwrap_or(addr);
            tokio::spawn(server.run(listener));
            Ok(Some(bound))
        }
        BeanstalkAddr::Unix(path) => {
            let bound = listen_unix(&path).await;
            let listener = bound.map_err(|source| StartError::ListenUnix { path, source })?;
            tokio::spawn(server.run(listener));
            Ok(None)
        }
    }
}

/// Replaces a socket that is left over from a server that was killed.
async fn listen_unix(path: &Path) -> io::Result<UnixListener> {
    match std::fs::symlink_metadata(path) {
        Ok(found) if !found.file_type().is_socket() => {
            return Err(io::Error::other("there is a file that is not a socket"));
        }
        Ok(_) if is_left_over(path).await => std::fs::remove_file(path)?,
        Ok(_) => return Err(io::ErrorKind::AddrInUse.into()),
        Err(_) => {}
    }
    bind_unix(path)
}

/// Binds for this user alone, whatever the umask. A bind follows no link.
fn bind_unix(path: &Path) -> io::Result<UnixListener> {
    let socket = UnixSocket::new_stream()?;
    let mode = Mode::RUSR | Mode::WUSR;
    // On Linux the file gets the mode that the socket has by then. Elsewhere a socket without a
    // file has none: its mode is set later, before anybody is let in.
    let is_set = fchmod(&socket, mode).is_ok() && cfg!(target_os = "linux");
    socket.bind(path)?;
    if !is_set {
        chmod(path, mode)?;
    }
    socket.listen(BACKLOG)
}

/// Whether nobody listens there. Any error but a refused connection proves nothing: the listener
/// may be busy, of another user or of another kind.
async fn is_left_over(path: &Path) -> bool {
    let connected = UnixStream::connect(path).await;
    connected.is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
}
