//! Becoming another user, as a service does that root has started.

use std::fs;

use rustix::process::{Gid, Uid, getuid};
use rustix::thread::{set_thread_gid, set_thread_groups, set_thread_uid};

use crate::exit::Failure;

/// Gives up the rights of the present user for those of this one. Threads have rights of their
/// own and inherit them, so there must be no second one yet.
pub(super) fn become_user(name: &str) -> Result<(), Failure> {
    let users = fs::read_to_string("/etc/passwd")
        .map_err(|error| Failure::new(format!("cannot read /etc/passwd: {error}")))?;
    let Some((uid, gid)) = find(&users, name) else {
        return Err(Failure::usage(format!("-u {name}: there is no such user")));
    };
    if uid == getuid() {
        return Ok(());
    }
    set_thread_groups(&[gid])
        .and_then(|()| set_thread_gid(gid))
        .and_then(|()| set_thread_uid(uid))
        .map_err(|error| Failure::new(format!("cannot become {name}: {error}")))
}

/// Name, password, user id and group id begin a line of passwd(5).
fn find(users: &str, name: &str) -> Option<(Uid, Gid)> {
    let fields = |line: &str| -> Option<(Uid, Gid)> {
        let mut fields = line.strip_prefix(name)?.strip_prefix(':')?.split(':').skip(1);
        let mut id = || fields.next()?.parse::<u32>().ok().filter(|&id| id != u32::MAX);
        Some((Uid::from_raw(id()?), Gid::from_raw(id()?)))
    };
    users.lines().find_map(fields)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_found_by_their_whole_name() {
        let users = "root:x:0:0:root:/root:/bin/sh\nbean:x:7:8::/:/bin/false\nbad:x:a:1::/:\n";
        assert_eq!(find(users, "bean"), Some((Uid::from_raw(7), Gid::from_raw(8))));
        for name in ["bea", "beans", "bad", ""] {
            assert_eq!(find(users, name), None, "{name}");
        }
    }
}
