//! Builds the script of a partition from its files. It comes in two forms: one that may run when
//! Redis is out of memory, and one for puts, which checks for itself.
//!
//! Redis runs a script from its first line at every call, so functions and tables that a call does
//! not need cost time. Two measures keep the common calls short: the verbs that most batches
//! consist of come first and do without the rest of the script, and constants are inlined.

use std::collections::HashMap;
use std::sync::Arc;

use dormouse_core::backoff::Backoff;
use dormouse_core::limits::JITTER_PERMILLE_MAX;

use crate::cluster::Script;
use crate::wire::codes::{NEVER, SHARED};
use crate::wire::progress;
use crate::wire::record::encode_backoff;

/// In this order: a file uses what those before it define.
///
/// The fast paths run first. Only if they leave something to do, because a verb has no fast path or
/// met a case that it does not handle, the slow paths are defined and the remaining verbs executed:
/// see execute.lua.
const FILES: &[&str] = &[
    include_str!("../lua/lib.lua"),
    include_str!("../lua/prologue.lua"),
    "if ARGV[7] ~= '' then\n",
    include_str!("../lua/drop.lua"),
    "end\n",
    include_str!("../lua/flow.lua"),
    "if wanted.put_plain then\n",
    include_str!("../lua/put_fast.lua"),
    "end\nif wanted.ack or wanted.chain then\n",
    include_str!("../lua/ack.lua"),
    "end\nlocal lease_terms\nif wanted.reserve or wanted.reserve_id then\n",
    include_str!("../lua/reserve.lua"),
    "end\n",
    include_str!("../lua/execute.lua"),
    "if ARGV[at] or ARGV[9] ~= '' or ARGV[10] ~= '' then\n",
    include_str!("../lua/groups.lua"),
    include_str!("../lua/job.lua"),
    include_str!("../lua/cold.lua"),
    include_str!("../lua/settle.lua"),
    include_str!("../lua/meet_deadlines.lua"),
    "if wanted.ack or wanted.chain then\n",
    include_str!("../lua/ack_slow.lua"),
    "end\nif wanted.reserve then\n",
    include_str!("../lua/reserve_slow.lua"),
    "end\n",
    "if wanted.put or wanted.schedule_set or wanted.chain then\n",
    include_str!("../lua/put.lua"),
    "if wanted.chain then\n",
    include_str!("../lua/chain.lua"),
    "end\nend\nif wanted.nack or wanted.release then\n",
    include_str!("../lua/backoff.lua"),
    include_str!("../lua/nack.lua"),
    "end\nif wanted.extend then\n",
    include_str!("../lua/extend.lua"),
    "end\nif cold then\n",
    include_str!("../lua/target.lua"),
    include_str!("../lua/lanes.lua"),
    include_str!("../lua/cancel.lua"),
    include_str!("../lua/reschedule.lua"),
    include_str!("../lua/kill.lua"),
    include_str!("../lua/revive.lua"),
    include_str!("../lua/kick.lua"),
    include_str!("../lua/release_topic.lua"),
    include_str!("../lua/reserve_id.lua"),
    include_str!("../lua/get.lua"),
    include_str!("../lua/peek.lua"),
    include_str!("../lua/list.lua"),
    include_str!("../lua/stats.lua"),
    include_str!("../lua/forecast.lua"),
    include_str!("../lua/purge.lua"),
    include_str!("../lua/pause.lua"),
    include_str!("../lua/schedule.lua"),
    include_str!("../lua/schedule_get.lua"),
    include_str!("../lua/schedule_set.lua"),
    include_str!("../lua/schedule_page.lua"),
    include_str!("../lua/ticks.lua"),
    include_str!("../lua/letters.lua"),
    include_str!("../lua/lock.lua"),
    "end\n",
    include_str!("../lua/execute.lua"),
    include_str!("../lua/expire_dead.lua"),
    "end\n",
    include_str!("../lua/epilogue.lua"),
];

/// Inlines constants and strips comments. To Lua a constant is a variable: every function that
/// uses it captures it as an upvalue, which is paid for at every call. Constants are those of
/// `codes.rs`, and what a line declares that starts with `local` and has only names in capitals on
/// the left and numbers or strings on the right. Line numbers stay the same.
pub(crate) fn with_constants(source: &str) -> String {
    let shared = shared_constants();
    let mut constants: HashMap<&str, &str> =
        shared.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let mut out = String::with_capacity(source.len());
    for line in source.lines() {
        let pieces = pieces(line);
        if let Some(declared) = declared(&pieces) {
            constants.extend(declared);
        } else {
            out.extend(pieces.iter().map(|piece| *constants.get(piece).unwrap_or(piece)));
        }
        out.push('\n');
    }
    out
}

/// Constants that the scripts use without declaring them.
fn shared_constants() -> Vec<(&'static str, String)> {
    let quoted = |text: &str| format!("'{text}'");
    let escaped =
        |bytes: &[u8]| bytes.iter().map(|byte| format!("\\{byte:03}")).collect::<String>();
    let fields = progress::FIELDS;
    let texts = [
        // Where Redis expects a text: it would format a number with 17 digits.
        ("NEVER_TEXT", quoted(&NEVER.to_string())),
        ("PROGRESS", quoted(&progress::format(fields, |_| true))),
        ("PROGRESS_BYTES", progress::bytes(fields).to_string()),
        ("PROGRESS_TO_LEASE", quoted(&progress::format(fields, progress::is_for_lease))),
        // The fence is compared before the others are read.
        ("PROGRESS_TO_ACK", quoted(&progress::format(&fields[1..], progress::is_for_ack))),
        // First shard, partitions.
        ("REGISTRATION", quoted(">I4I2")),
        // Fence, depth, ttl; the owner follows.
        ("LOCK", quoted(">I8I4I6")),
        ("JITTER_PERMILLE_MAX", JITTER_PERMILLE_MAX.to_string()),
        ("EXPONENTIAL_JITTER_PERMILLE", Backoff::DEFAULT.jitter_permille.to_string()),
        ("DEFAULT_BACKOFF", quoted(&escaped(&encode_backoff(&Backoff::DEFAULT)))),
    ];
    SHARED.iter().map(|&(name, value)| (name, value.to_string())).chain(texts).collect()
}

/// A line without its comment, split into words, strings and single characters.
fn pieces(line: &str) -> Vec<&str> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let (mut pieces, mut rest) = (Vec::new(), line);
    while let Some(first) = rest.chars().next() {
        let length = if rest.starts_with("--") {
            break;
        } else if first == '\'' {
            rest[1..].find('\'').map_or(rest.len(), |end| end + 2)
        } else if is_word(first) {
            rest.find(|c| !is_word(c)).unwrap_or(rest.len())
        } else {
            first.len_utf8()
        };
        let (piece, after) = rest.split_at(length);
        pieces.push(piece);
        rest = after;
    }
    pieces
}

/// Names and values, if the line declares constants.
fn declared<'a>(pieces: &[&'a str]) -> Option<Vec<(&'a str, &'a str)>> {
    let words: Vec<&str> = pieces.iter().copied().filter(|piece| piece.trim() != "").collect();
    let [first, rest @ ..] = &words[..] else { return None };
    let equals = rest.iter().position(|&word| word == "=")?;
    let (names, values) = (rest.get(..equals)?, rest.get(equals + 1..)?);
    let is_name = |name: &&str| name.chars().all(|c| c.is_ascii_uppercase() || c == '_');
    let is_value = |value: &&str| value.starts_with(|c: char| c == '\'' || c.is_ascii_digit());
    let given = |list: &[&'a str]| -> Vec<&'a str> {
        list.iter().copied().filter(|&word| word != ",").collect()
    };
    let (names, values) = (given(names), given(values));
    let fits = pieces.first() == Some(&"local")
        && *first == "local"
        && names.len() == values.len()
        && names.iter().all(is_name)
        && values.iter().all(is_value);
    fits.then(|| names.into_iter().zip(values).collect())
}

/// The register of topics.
const REGISTER: &str = include_str!("../lua/register.lua");
/// The list of pushes.
const PUSHES: &str = include_str!("../lua/pushes.lua");
/// Checks and mends the register of topics.
pub(crate) const REGISTER_MEND: &str = include_str!("../lua/verify_register.lua");

/// Runs at maxmemory as well: what it does removes jobs, or needs little memory.
const RELIEF: &str = "#!lua flags=allow-oom\n";

/// The scripts of a server.
#[derive(Debug)]
pub(crate) struct Scripts {
    /// For batches of puts.
    pub(crate) put: Arc<Script>,
    /// For all other batches; runs at maxmemory.
    pub(crate) relief: Arc<Script>,
    /// The register of topics.
    pub(crate) register: Arc<Script>,
    /// The list of pushes.
    pub(crate) pushes: Arc<Script>,
    /// Restores lost entries of the register.
    pub(crate) register_mend: Arc<Script>,
}

impl Scripts {
    pub(crate) fn new() -> Scripts {
        let source = with_constants(&FILES.concat());
        Scripts {
            relief: Arc::new(Script::new(format!("{RELIEF}{source}"))),
            put: Arc::new(Script::new(source)),
            register: Arc::new(Script::new(with_constants(REGISTER))),
            pushes: Arc::new(Script::new(with_constants(PUSHES))),
            register_mend: Arc::new(Script::new(with_constants(REGISTER_MEND))),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn constants_are_inlined() {
        let source = "local ONE, TEXT = 1, '>I4' -- ONE of all\n\
                      local S, ONES = KEYS[1], ONE + 1 -- ONE\n\
                      local function f(TWO)\n    local NINE = 9\n\
                      return pack(TEXT, ONE, 'ONE -- ONE', TWO, ONES, NINE, S)\nend\n";
        let expected = "\nlocal S, ONES = KEYS[1], 1 + 1 \n\
                        local function f(TWO)\n    local NINE = 9\n\
                        return pack('>I4', 1, 'ONE -- ONE', TWO, ONES, NINE, S)\nend\n";
        assert_eq!(with_constants(source), expected);
    }

    /// A declaration holds from its line to the end of all files.
    #[test]
    fn a_constant_has_one_value_in_all_files() {
        let mut values = HashMap::new();
        let shared = shared_constants();
        values.extend(shared.iter().map(|(name, value)| (*name, value.as_str())));
        for line in FILES.iter().flat_map(|file| file.lines()) {
            for (name, value) in declared(&pieces(line)).into_iter().flatten() {
                assert_eq!(*values.entry(name).or_insert(value), value, "{name}");
            }
        }
        assert!(values.len() > 50, "{values:?}");
    }

    fn is_constant(piece: &&str) -> bool {
        piece.len() > 1 && piece.chars().all(|c| c.is_ascii_uppercase() || c == '_')
    }

    /// What a number means is in a name: in codes.rs if Rust has it, too. Small ones are counts and
    /// sizes of fields.
    #[test]
    fn numbers_have_names() {
        for file in std::fs::read_dir("lua").unwrap() {
            let path = file.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            // The arithmetic of a hash, compared with Rust's in a test of its own.
            if !name.ends_with(".lua") || name == "backoff.lua" {
                continue;
            }
            for (number, line) in std::fs::read_to_string(&path).unwrap().lines().enumerate() {
                if declared(&pieces(line.trim_start())).is_some() {
                    continue;
                }
                let is_unnamed = |piece: &&str| match piece.parse::<u64>() {
                    Ok(value) => value > 16 && value != 1_000, // microseconds in a ms
                    Err(_) => piece.starts_with("0x"),
                };
                let unnamed = pieces(line).into_iter().find(is_unnamed);
                assert_eq!(unnamed, None, "{name}:{}: {line}", number + 1);
            }
        }
    }

    /// What this luacheck does not like of a script as a whole.
    fn luacheck(name: &str, source: &str, ignored: &[&str]) -> String {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(name);
        std::fs::write(&path, with_constants(source)).unwrap();
        let mut command = std::process::Command::new("luacheck");
        command.args(["--no-config", "--no-cache", "--no-color", "--codes", "--std", "lua51"]);
        command.args(["--read-globals", "redis", "struct", "bit", "KEYS", "ARGV"]);
        // Trailing blanks are left of comments, and copies of functions are quicker than upvalues.
        command.args(["--ignore", "61", "431"]).args(ignored).arg("--").arg(path);
        let output = command.output().expect("no luacheck: `cargo xtask install` brings it");
        if output.status.success() {
            return String::new();
        }
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    #[test]
    fn scripts_pass_luacheck_as_a_whole() {
        // Verify uses a part of what all scripts have.
        let unused = ["211", "231", "241"];
        for (name, source, ignored) in [
            ("partition.lua", &FILES.concat()[..], &[][..]),
            ("verify.lua", crate::verify::PARTITION, &unused[..]),
            ("register.lua", REGISTER, &[]),
            ("pushes.lua", PUSHES, &[]),
            ("verify_register.lua", REGISTER_MEND, &[]),
        ] {
            assert_eq!(luacheck(name, source, ignored), "");
        }
        let typo = FILES.concat().replace("trim_dead(2)", "trim_daed(2)");
        assert!(luacheck("typo.lua", &typo, &[]).contains("trim_daed"));
    }

    /// A name in capitals that is left over would be nil in the script.
    #[test]
    fn shared_constants_are_all_inlined_and_all_used() {
        let partition = FILES.concat();
        let mut unused: HashSet<_> = shared_constants().into_iter().map(|(name, _)| name).collect();
        for source in [&partition, crate::verify::PARTITION, REGISTER, REGISTER_MEND] {
            for piece in source.lines().flat_map(pieces) {
                unused.remove(piece);
            }
            let inlined = with_constants(source);
            let mut known = HashSet::from(["KEYS", "ARGV"]);
            for line in inlined.lines() {
                let is_local = line.trim_start().starts_with("local ");
                let (declared, used) =
                    if is_local { line.split_once('=').unwrap_or((line, "")) } else { ("", line) };
                known.extend(pieces(declared).into_iter().filter(is_constant));
                for name in pieces(used).into_iter().filter(is_constant) {
                    assert!(known.contains(name), "{name} in {line}");
                }
            }
        }
        assert!(unused.is_empty(), "{unused:?}");
    }
}
