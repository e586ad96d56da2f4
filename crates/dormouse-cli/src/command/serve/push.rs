//! Deliveries to URLs: the master key, and what may be called.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use dormouse_server::Server;
use dormouse_server::push::{AddressRules, Allowed, MasterKey, PushOptions};

use crate::command::config::{BackendKind, Settings, ports};
use crate::exit::Failure;

/// The key of a store on disk, beside its files.
const KEY_FILE: &str = "push.key";

/// Starts deliveries, if they are on.
pub(super) fn start(server: &mut Server, settings: &Settings) -> Result<(), Failure> {
    let push = &settings.push;
    if !push.is_on {
        return Ok(());
    }
    let mut options = PushOptions::new(key(settings)?);
    let allowed = push.allow.iter().map(|text| text.parse::<Allowed>());
    let allowed = allowed
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| Failure::usage(format!("`push.allow`: {error}")))?;
    let opened: Vec<_> = push.ports.iter().filter_map(|text| ports(text)).collect();
    options.rules = match opened.is_empty() {
        true => AddressRules::allowing(allowed),
        false => AddressRules::new(allowed, opened),
    };
    options.allows_http = push.http;
    options.ca_file.clone_from(&push.ca_file);
    options.connections_max = push.connections_max.unwrap_or(options.connections_max);
    let started = server.start_push(options);
    started.map(drop).map_err(|error| Failure::new(format!("`push.ca_file`: {error}")))
}

/// The master key: from its file, beside the store made if there is none.
fn key(settings: &Settings) -> Result<MasterKey, Failure> {
    let path = match (&settings.push.key, settings.backend) {
        (Some(path), _) => path.clone(),
        (None, BackendKind::Disk) => beside_the_store(settings)?,
        // What is pushed is gone with the process, and so may be its key.
        (None, _) => return random().map(MasterKey::new).map_err(no_random),
    };
    let text = fs::read_to_string(&path).map_err(|error| {
        Failure::new(format!("cannot read push.key {}: {error}", path.display()))
    })?;
    MasterKey::parse(&text).ok_or_else(|| {
        let path = path.display();
        let fix = "make one with `openssl rand -hex 32`";
        Failure::new(format!("push.key {path} is not 64 hexadecimal digits; {fix}"))
    })
}

fn beside_the_store(settings: &Settings) -> Result<PathBuf, Failure> {
    let path = settings.data.join(KEY_FILE);
    let failed = |error: io::Error| {
        Failure::new(format!("cannot make push.key {}: {error}", path.display()))
    };
    match make(&path) {
        Ok(()) => {
            tracing::info!("push: made the key {}; keep a copy of it", path.display());
            Ok(path)
        }
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(path),
        Err(error) => Err(failed(error)),
    }
}

/// Writes a new key under another name first: a file that is there is whole.
fn make(path: &Path) -> io::Result<()> {
    if path.exists() {
        return Err(ErrorKind::AlreadyExists.into());
    }
    let temporary = path.with_extension("key.tmp");
    let digits: String = random()?.iter().map(|byte| format!("{byte:02x}")).collect();
    let mut file =
        OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&temporary)?;
    file.write_all(format!("{digits}\n").as_bytes())?;
    file.sync_all()?;
    fs::rename(&temporary, path)?;
    path.parent().map_or(Ok(()), |directory| File::open(directory)?.sync_all())
}

fn random() -> io::Result<[u8; 32]> {
    let mut bytes = [0; 32];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn no_random(error: io::Error) -> Failure {
    Failure::new(format!("cannot read random bytes: {error}"))
}
