//! Installs the Debian packages that tests need, so that one command tests a fresh clone.

use std::path::Path;
use std::process::Stdio;

use crate::step::{Invocation, is_root};

/// A program that tests start, and the Debian package that contains it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Package {
    pub(crate) program: &'static str,
    pub(crate) package: &'static str,
}

/// The programs that the tests need besides Rust.
pub(crate) const NEEDED: &[Package] = &[
    // The examples of the README.
    Package { program: "curl", package: "curl" },
    // schemathesis and foreign clients, from PyPI.
    Package { program: "pip3", package: "python3-pip" },
    // Foreign clients, from npm; the client in TypeScript.
    Package { program: "npm", package: "npm" },
    // Certificates for the tests of clients.
    Package { program: "openssl", package: "openssl" },
    // The examples in Java and Go.
    Package { program: "javac", package: "default-jdk-headless" },
    Package { program: "go", package: "golang-go" },
    // Redis. This program is also the server: it behaves by the name it is called by. The package
    // redis-server adds only a link of that name, and a service that Debian starts at once and at
    // each boot, on the usual port.
    Package { program: "redis-check-rdb", package: "redis-tools" },
    // Lints the scripts of the Redis backend.
    Package { program: "luacheck", package: "lua-check" },
    // The console, looked at in a real browser.
    Package { program: "chromium", package: "chromium" },
    Package { program: "chromedriver", package: "chromium-driver" },
    // Checks the alerts and the dashboard in packaging/.
    Package { program: "promtool", package: "prometheus" },
    // Networks of a Redis Cluster that a test can cut.
    Package { program: "ip", package: "iproute2" },
];

/// How this process may install packages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Privilege {
    Root,
    /// sudo without a password: a step may not wait for input.
    Sudo,
    None,
}

/// Installs the packages of missing programs; with `dry_run` only prints the commands.
pub(crate) fn ensure(needed: &[Package], dry_run: bool) -> Result<(), String> {
    let missing = missing(needed, is_on_path);
    if missing.is_empty() {
        println!("install: nothing is missing");
        return Ok(());
    }
    for invocation in plan(&missing, is_on_path("apt-get"), privilege())? {
        println!("install: {invocation}");
        if !dry_run {
            invocation.run(Path::new(".")).map_err(|reason| {
                format!("`{invocation}` failed ({reason}); {}", by_hand(&missing))
            })?;
        }
    }
    Ok(())
}

/// The packages whose program is absent, each once.
fn missing(needed: &[Package], is_there: impl Fn(&str) -> bool) -> Vec<&'static str> {
    let mut packages: Vec<&'static str> = Vec::new();
    for Package { program, package } in needed {
        if !is_there(program) && !packages.contains(package) {
            packages.push(package);
        }
    }
    packages
}

/// The commands that install these packages.
fn plan(
    packages: &[&str],
    has_apt_get: bool,
    privilege: Privilege,
) -> Result<Vec<Invocation>, String> {
    if !has_apt_get {
        return Err(format!("this system has no apt-get; {}", by_hand(packages)));
    }
    let prefix: &[&str] = match privilege {
        Privilege::Root => &["env"],
        Privilege::Sudo => &["sudo", "-n", "env"],
        Privilege::None => {
            let reason = "this needs root, or sudo without a password";
            return Err(format!("{reason}; {}", by_hand(packages)));
        }
    };
    // sudo drops the environment, so it is set behind it.
    let apt_get = |words: &[&str]| {
        let prefix = prefix.iter().chain(&["DEBIAN_FRONTEND=noninteractive", "apt-get", "-q"]);
        Invocation::new(prefix.chain(words).copied())
    };
    let install: Vec<&str> =
        ["install", "-y", "--no-install-recommends"].iter().chain(packages).copied().collect();
    Ok(vec![apt_get(&["update"]), apt_get(&install)])
}

fn by_hand(packages: &[&str]) -> String {
    let packages = packages.join(" ");
    format!("the tests need programs of these Debian packages, please install them: {packages}")
}

fn privilege() -> Privilege {
    if is_root() {
        return Privilege::Root;
    }
    let mut sudo = Invocation::new(["sudo", "-n", "true"]).command(Path::new("."));
    sudo.stdout(Stdio::null()).stderr(Stdio::null());
    match sudo.status() {
        Ok(status) if status.success() => Privilege::Sudo,
        _ => Privilege::None,
    }
}

fn is_on_path(program: &str) -> bool {
    // Servers lie in sbin, which is not always on the path of a user.
    let path = std::env::var_os("PATH").unwrap_or_default();
    let system = ["/usr/local/sbin", "/usr/sbin", "/sbin"].map(std::path::PathBuf::from);
    std::env::split_paths(&path).chain(system).any(|directory| directory.join(program).is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    const CURL: Package = Package { program: "curl", package: "curl" };
    const REDIS: Package = Package { program: "redis-check-rdb", package: "redis-tools" };
    const REDIS_CLI: Package = Package { program: "redis-cli", package: "redis-tools" };

    fn shown(privilege: Privilege) -> Vec<String> {
        let plan = plan(&["curl", "redis-tools"], true, privilege).unwrap();
        plan.iter().map(Invocation::to_string).collect()
    }

    #[test]
    fn only_absent_packages_are_wanted_and_each_once() {
        let needed = [CURL, REDIS, REDIS_CLI];
        assert_eq!(missing(&needed, |_| false), ["curl", "redis-tools"]);
        assert_eq!(missing(&needed, |program| program == "curl"), ["redis-tools"]);
        assert!(missing(&needed, |_| true).is_empty());
    }

    #[test]
    fn redis_comes_without_its_service() {
        assert!(NEEDED.contains(&REDIS));
        assert!(NEEDED.iter().all(|needed| needed.package != "redis-server"));
    }

    #[test]
    fn root_and_sudo_install_without_questions() {
        assert_eq!(
            shown(Privilege::Root),
            [
                "env DEBIAN_FRONTEND=noninteractive apt-get -q update",
                "env DEBIAN_FRONTEND=noninteractive apt-get -q install -y \
                 --no-install-recommends curl redis-tools",
            ]
        );
        assert!(shown(Privilege::Sudo).iter().all(|line| line.starts_with("sudo -n env ")));
    }

    #[test]
    fn without_a_way_to_install_the_packages_are_named() {
        for outcome in [
            plan(&["redis-server"], true, Privilege::None),
            plan(&["redis-server"], false, Privilege::Root),
        ] {
            let message = outcome.unwrap_err();
            assert!(message.contains("redis-server"), "{message}");
        }
    }

    #[test]
    fn present_programs_need_nothing() {
        let shell = Package { program: "sh", package: "dash" };
        assert_eq!(ensure(&[shell], false), Ok(()));
        assert_eq!(ensure(&[], true), Ok(()));
    }

    #[test]
    fn a_dry_run_changes_nothing() {
        let absent = Package { program: "dormouse-no-such-program", package: "dormouse-nothing" };
        match ensure(&[absent], true) {
            Ok(()) => {}
            Err(message) => assert!(message.contains("dormouse-nothing"), "{message}"),
        }
    }
}
