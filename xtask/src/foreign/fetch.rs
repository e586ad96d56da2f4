//! Fetches suites and clients from PyPI, npm and crates.io, and the original beanstalkd from
//! Debian, once for each version.

use std::fs;
use std::path::{Path, PathBuf};

use crate::step::Invocation;

pub(super) const PYSTALKD: &str = "pystalkd-1.3.0";
pub(super) const FIVEBEANS: &str = "fivebeans-1.5.0";
pub(super) const BEANSTALKD_RS: &str = "beanstalkd-rs-0.3.0";
pub(super) const BEANSTALKC: &str = "beanstalkc-1.0.0";

/// For pystalkd, and for our own scripts.
const PYTHON: &[&str] = &["pyyaml==6.0.2", "redis==8.1.0"];
/// For fivebeans and its tests, and for our own scripts.
const NODE: &[&str] = &[
    "js-yaml@~3.6.1",
    "lodash@~4.15.0",
    "semver@~5.3.0",
    "yargs@~5.0.0",
    "mocha@9",
    "must@0.13",
    "ioredis@6",
];

/// The original, in its package.
const PROGRAM: &str = "usr/bin/beanstalkd";

/// The flags of a foreign crate, the same where it is built and where it is tested: else it would
/// be built again.
pub(super) const CAP_LINTS: &str = "--cap-lints allow";

/// Fetches everything that is not there yet.
pub(super) fn all(root: &Path, place: &Path) -> Result<(), String> {
    fs::create_dir_all(place).map_err(|error| format!("{}: {error}", place.display()))?;
    once(place, "python", |to| python(root, to))?;
    once(place, PYSTALKD, |to| pystalkd(root, place, to))?;
    once(place, "node", |to| node(root, to))?;
    once(place, FIVEBEANS, |to| fivebeans(place, to))?;
    for name in [BEANSTALKD_RS, BEANSTALKC] {
        once(place, name, |to| crate_source(place, name, to))?;
        let build = ["cargo", "test", "--quiet", "--lib", "--no-run"];
        let build = Invocation::new(build)
            .with_env("CARGO_TARGET_DIR", place.join("build").display().to_string())
            // Warnings in foreign code are not ours to fix.
            .with_env("RUSTFLAGS", CAP_LINTS);
        run(&build, &place.join(name))?;
    }
    Ok(())
}

/// Fetches the original as Debian builds it and returns the path of its program. The package is
/// unpacked, not installed: that needs no root and starts no service.
pub(super) fn beanstalkd(place: &Path) -> Result<PathBuf, String> {
    fs::create_dir_all(place).map_err(|error| format!("{}: {error}", place.display()))?;
    once(place, "beanstalkd", |to| {
        const SCRIPT: &str = "apt-get -q download beanstalkd && dpkg -x beanstalkd_*.deb .";
        let unpack = Invocation::new(["sh", "-c", SCRIPT]);
        unpack.run(to).map_err(|reason| {
            format!(
                "`{SCRIPT}` failed ({reason}): the original beanstalkd comes from Debian, by \
                 apt-get and dpkg; on another system put it at {}/beanstalkd/{PROGRAM}",
                place.display()
            )
        })
    })?;
    let program = place.join("beanstalkd").join(PROGRAM);
    let missing = || format!("there is no {}; remove the directory to fetch it", program.display());
    if program.is_file() { Ok(program) } else { Err(missing()) }
}

/// Makes a directory under a temporary name and renames it, so that an existing one is complete.
fn once(
    place: &Path,
    name: &str,
    make: impl FnOnce(&Path) -> Result<(), String>,
) -> Result<(), String> {
    let to = place.join(name);
    if to.exists() {
        return Ok(());
    }
    println!("foreign: fetching {name}");
    let part = place.join(format!("{name}.part"));
    let _ = fs::remove_dir_all(&part);
    fs::create_dir_all(&part).map_err(|error| format!("{}: {error}", part.display()))?;
    make(&part)?;
    fs::rename(&part, &to).map_err(|error| format!("{}: {error}", to.display()))
}

fn run(invocation: &Invocation, directory: &Path) -> Result<(), String> {
    let failed = |reason| format!("`{invocation}` failed ({reason}); it needs the registry");
    invocation.run(directory).map_err(failed)
}

fn python(root: &Path, to: &Path) -> Result<(), String> {
    let place = to.display().to_string();
    let words = ["python3", "-m", "pip", "install", "--quiet", "--target", &place];
    run(&Invocation::new(words.into_iter().chain(PYTHON.iter().copied())), root)
}

/// The source distribution: the wheel has no tests.
fn pystalkd(root: &Path, place: &Path, to: &Path) -> Result<(), String> {
    let download = place.display().to_string();
    let words = "python3 -m pip download --quiet --no-deps --no-binary :all: --dest";
    let words = words.split(' ').chain([&*download, "pystalkd==1.3.0"]);
    run(&Invocation::new(words), root)?;
    unpack(&place.join(format!("{PYSTALKD}.tar.gz")), to)
}

fn node(root: &Path, to: &Path) -> Result<(), String> {
    let prefix = to.display().to_string();
    let words = "npm install --silent --no-audit --no-fund --ignore-scripts --prefix";
    let words = words.split(' ').chain([&*prefix]).chain(NODE.iter().copied());
    run(&Invocation::new(words), root)
}

fn fivebeans(place: &Path, to: &Path) -> Result<(), String> {
    run(&Invocation::new(["npm", "pack", "--silent", "fivebeans@1.5.0"]), place)?;
    unpack(&place.join(format!("{FIVEBEANS}.tgz")), to)
}

fn unpack(archive: &Path, to: &Path) -> Result<(), String> {
    let archive = archive.display().to_string();
    run(&Invocation::new(["tar", "xf", &archive, "--strip-components=1"]), to)
}

/// Copies a crate from where cargo unpacks dependencies, to test it by itself.
fn crate_source(place: &Path, full_name: &str, to: &Path) -> Result<(), String> {
    let (name, version) = full_name.rsplit_once('-').unwrap_or((full_name, ""));
    let wish = place.join("wish");
    let write = |file: &str, text: &str| {
        fs::create_dir_all(&wish).and_then(|()| fs::write(wish.join(file), text))
    };
    let manifest = format!(
        "[package]\nname = \"wish\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\
         [lib]\npath = \"lib.rs\"\n[dependencies]\n{name} = \"={version}\"\n[workspace]\n"
    );
    let written = write("Cargo.toml", &manifest).and_then(|()| write("lib.rs", ""));
    written.map_err(|error| format!("{}: {error}", wish.display()))?;
    run(&Invocation::new(["cargo", "fetch", "--quiet"]), &wish)?;
    let source = registry_source(full_name)?;
    let source = source.join(".").display().to_string();
    run(&Invocation::new(["cp", "-r", &source, &to.display().to_string()]), place)?;
    // A workspace of its own: it must not be taken for a member of ours.
    let manifest = to.join("Cargo.toml");
    let text = fs::read_to_string(&manifest).map_err(|error| error.to_string())?;
    let text = format!("{text}\n[workspace]\n");
    fs::write(&manifest, text).map_err(|error| format!("{}: {error}", manifest.display()))
}

fn registry_source(full_name: &str) -> Result<PathBuf, String> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let user = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cargo"));
    let sources = home.or_else(user).unwrap_or_default().join("registry/src");
    let registries = fs::read_dir(&sources).map_err(|error| error.to_string())?;
    let mut places = registries.flatten().map(|entry| entry.path().join(full_name));
    let missing = || format!("{full_name} is not in {}", sources.display());
    places.find(|place| place.is_dir()).ok_or_else(missing)
}
