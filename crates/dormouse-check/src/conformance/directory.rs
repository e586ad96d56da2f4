//! Directories a store must not be opened in, or not twice: a clear text, and nothing changed.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use dormouse_core::backend::{Answer, Backend, Sink, Ticket};
use dormouse_core::command::Command;
use dormouse_core::error::Code;
use dormouse_core::op::{Put, Reserve};
use dormouse_core::topic::TopicName;
use dormouse_disk::clock::VirtualClock;
use dormouse_disk::engine::{Engine, Options};
use dormouse_disk::manifest::MANIFEST_NAME;

use super::client::Client;

fn open(dir: &Path) -> Result<Engine, String> {
    let options = Options { clock: Arc::new(VirtualClock::new()), ..Options::default() };
    Engine::open(dir, options).map_err(|error| error.to_string())
}

#[track_caller]
fn refused(dir: &Path, words: &[&str]) {
    let text = open(dir).err().expect("a refusal");
    for word in words {
        assert!(text.contains(word), "{word:?} is missing in: {text}");
    }
}

/// A store with one job, closed again.
fn store(dir: &Path) {
    let engine = open(dir).expect("a new store");
    let put = Put::new(TopicName::new("mail").expect("a good name"), "work");
    let client = Client::new(Arc::new(engine.clone()));
    client.ask(Command::Put(vec![put])).expect("a put");
    engine.close().expect("a clean stop");
}

/// All files but the lock, which names the process that tried last.
fn files(dir: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<_> = fs::read_dir(dir)
        .expect("a directory")
        .map(|entry| entry.expect("an entry").path())
        .map(|path| {
            let name = path.file_name().expect("a name").to_string_lossy().into_owned();
            (name, fs::read(&path).expect("a file"))
        })
        .filter(|(name, _)| name != "lock")
        .collect();
    files.sort_unstable();
    files
}

/// One engine at a time, and the directory is free after a close.
pub fn in_use_by_another_engine(dir: &Path) {
    let first = open(dir).expect("a new store");
    let shown = dir.display().to_string();
    refused(dir, &[&shown, "in use", "process", "choose another"]);
    first.close().expect("a clean stop");
    open(dir).expect("a free directory");
}

/// A closed engine says so, also to waiting requests, and never hangs.
pub fn closed_is_unavailable(dir: &Path) {
    let engine = open(dir).expect("a new store");
    let client = Client::new(Arc::new(engine.clone()));
    let topics = vec![TopicName::new("mail").expect("a good name")];
    let reserve = Reserve { topics, max: 1, wait_ms: 60_000, ttr_ms: None, session: None };
    let waiting = client.send(Command::Reserve(reserve));
    engine.close().expect("a clean stop");
    let told = waiting.wait().expect_err("no job");
    let refused = engine.submit(Vec::new(), Arc::new(Nobody)).expect_err("a refusal");
    for error in [told, refused] {
        assert_eq!(error.code, Code::Unavailable);
        assert!(error.text.contains("closed") && error.text.contains("open it again"), "{error}");
    }
    engine.close().expect("closing again changes nothing");
}

/// A sink for answers that must not come.
struct Nobody;

impl Sink for Nobody {
    fn deliver(&self, answers: &mut Vec<(Ticket, Answer)>) {
        panic!("not taken, yet answered: {answers:?}");
    }
}

/// A file is no place for a store.
pub fn not_a_directory(dir: &Path) {
    let path = dir.join("file");
    fs::write(&path, "mine").expect("a file");
    refused(&path, &[&path.display().to_string(), "a file", "directory"]);
    refused(&path.join("below"), &["a file", "directory"]);
    assert_eq!(fs::read(&path).expect("the file"), b"mine");
}

/// A directory of somebody else. The superuser may write everywhere, so this shows nothing there.
pub fn not_writable(dir: &Path) {
    let path = dir.join("theirs");
    fs::create_dir(&path).expect("a directory");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o500)).expect("permissions");
    if fs::write(path.join("probe"), "").is_ok() {
        eprintln!("skipped: this user may write everywhere");
        return;
    }
    refused(&path, &[&path.display().to_string(), "not writable", "choose another"]);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).expect("permissions");
    assert_eq!(files(&path), []);
}

/// Files of a later version are not touched.
pub fn a_newer_format(dir: &Path) {
    store(dir);
    let path = dir.join(MANIFEST_NAME);
    let mut bytes = fs::read(&path).expect("a manifest");
    bytes[4..8].copy_from_slice(&7_u32.to_le_bytes());
    let covered = bytes.len() - 4;
    let crc = crc32c::crc32c(&bytes[..covered]);
    bytes[covered..].copy_from_slice(&crc.to_le_bytes());
    fs::write(&path, &bytes).expect("a manifest");
    let before = files(dir);
    refused(dir, &[MANIFEST_NAME, "format 7", "up to 2", "newer", "nothing was changed"]);
    assert_eq!(files(dir), before);
}

/// A manifest that is not one: named with its offset, and nothing is deleted.
pub fn a_damaged_manifest(dir: &Path) {
    store(dir);
    let path = dir.join(MANIFEST_NAME);
    let mut bytes = fs::read(&path).expect("a manifest");
    bytes[20] ^= 1;
    fs::write(&path, &bytes).expect("a manifest");
    let before = files(dir);
    refused(dir, &[MANIFEST_NAME, "byte", "nothing was changed"]);
    assert_eq!(files(dir), before);
}

/// A store without its manifest is not an empty directory.
pub fn a_lost_manifest(dir: &Path) {
    store(dir);
    fs::remove_file(dir.join(MANIFEST_NAME)).expect("a manifest");
    let before = files(dir);
    refused(dir, &["manifest is missing", "restore"]);
    assert_eq!(files(dir), before);
}

/// Other people's files in the directory stay as they are.
pub fn strange_files_stay(dir: &Path) {
    fs::write(dir.join("notes.txt"), "mine").expect("a file");
    store(dir);
    open(dir).expect("the store").close().expect("a clean stop");
    assert_eq!(fs::read(dir.join("notes.txt")).expect("the file"), b"mine");
}
