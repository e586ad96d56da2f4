//! The files of the web console as they are shipped: vendored ones unchanged, all together small.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use sha2::{Digest as _, Sha256};

/// All files as they lie here, with their comments. The aim was 200 KiB; the screens of dead jobs
/// by cause and of pushes, and the watch over silent servers, took it beyond.
const BYTES_MAX: usize = 230 * 1024;
/// All of it in one stream, as an archive or a proxy that keeps its dictionary sends it.
const GZIP_BYTES_MAX: usize = 75 * 1024;

fn ui() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("ui")
}

/// Every file below a directory that a browser may ask for.
fn files(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().is_none_or(|extension| extension != "md") {
            found.push(path);
        }
    }
}

fn gzip_length(bytes: &[u8]) -> usize {
    let mut child = Command::new("gzip")
        .args(["-9", "-c"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let bytes = bytes.to_vec();
    let writer = std::thread::spawn(move || input.write_all(&bytes).unwrap());
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    output.stdout.len()
}

#[test]
fn vendored_files_are_those_of_the_list() {
    let directory = ui().join("vendor");
    let list = fs::read_to_string(directory.join("VENDOR.md")).unwrap();
    let mut listed = Vec::new();
    for row in list.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = row.split('|').map(|cell| cell.trim().trim_matches('`')).collect();
        let bytes = fs::read(directory.join(cells[1])).unwrap();
        let hash: String = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hash, cells[6], "{}: VENDOR.md tells another hash", cells[1]);
        listed.push(directory.join(cells[1]));
    }
    let mut found = Vec::new();
    files(&directory, &mut found);
    found.sort();
    listed.sort();
    assert_eq!(found, listed, "the files beside VENDOR.md, and those it lists");
}

#[test]
fn all_files_together_are_small() {
    let mut found = Vec::new();
    files(&ui(), &mut found);
    found.sort();
    let all: Vec<u8> = found.iter().flat_map(|path| fs::read(path).unwrap()).collect();
    let (bytes, gzip_bytes) = (all.len(), gzip_length(&all));
    println!("{} files, {bytes} bytes, {gzip_bytes} gzipped", found.len());
    assert!(bytes <= BYTES_MAX, "{bytes} bytes");
    assert!(gzip_bytes <= GZIP_BYTES_MAX, "{gzip_bytes} bytes gzipped");
}
