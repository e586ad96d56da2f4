//! Notifies a service manager by the protocol of systemd's sd_notify.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// Sends a state to the service manager, if there is one.
pub(super) fn notify(state: &str) {
    let Some(name) = std::env::var_os("NOTIFY_SOCKET").filter(|name| !name.is_empty()) else {
        return;
    };
    if let Err(error) = send(&name, state) {
        tracing::warn!("cannot notify the service manager of {state}: {error}");
    }
}

fn send(name: &OsStr, state: &str) -> io::Result<()> {
    let socket = UnixDatagram::unbound()?;
    socket.send_to_addr(state.as_bytes(), &address(name)?)?;
    Ok(())
}

/// A path, or `@` and a name in Linux' abstract namespace.
fn address(name: &OsStr) -> io::Result<SocketAddr> {
    #[cfg(target_os = "linux")]
    if let Some(name) = name.as_bytes().strip_prefix(b"@") {
        use std::os::linux::net::SocketAddrExt as _;
        return SocketAddr::from_abstract_name(name);
    }
    SocketAddr::from_pathname(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_kinds_of_socket_are_notified() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("notify").into_os_string();
        let mut names = vec![path];
        if cfg!(target_os = "linux") {
            names.push(format!("@dormouse-test-{}", std::process::id()).into());
        }
        for name in names {
            let socket = UnixDatagram::bind_addr(&address(&name).unwrap()).unwrap();
            send(&name, "READY=1").unwrap();
            let mut buffer = [0; 16];
            let length = socket.recv(&mut buffer).unwrap();
            assert_eq!(&buffer[..length], b"READY=1");
        }
        assert!(send(OsStr::new("/nowhere/notify"), "READY=1").is_err());
    }
}
