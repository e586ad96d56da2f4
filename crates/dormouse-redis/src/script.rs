//! The script of a partition, put together from its files. It comes in two forms: one that may
//! run when Redis is out of memory, and one with puts, which finds out for itself.

use std::collections::HashMap;
use std::sync::Arc;

use crate::cluster::Script;

/// In this order: a file uses what those before it define.
///
/// The verbs that most flights consist of come first and do without the rest. Only if something
/// is left to do then, because a verb is another one or met what it cannot judge by itself, the
/// rest is defined, and what is left is done: see execute.lua.
const FILES: &[&str] = &[
    include_str!("../lua/lib.lua"),
    include_str!("../lua/prologue.lua"),
    "if ARGV[7] ~= '' then\n",
    include_str!("../lua/drop.lua"),
    "end\nif wanted.put_plain then\n",
    include_str!("../lua/put_fast.lua"),
    "end\nif wanted.ack then\n",
    include_str!("../lua/ack.lua"),
    "end\nlocal terms\nif wanted.reserve or wanted.reserve_id then\n",
    include_str!("../lua/reserve.lua"),
    "end\n",
    include_str!("../lua/execute.lua"),
    "if ARGV[at] or ARGV[9] ~= '' or ARGV[10] ~= '' then\n",
    include_str!("../lua/job.lua"),
    include_str!("../lua/cold.lua"),
    "if wanted.ack then\n",
    include_str!("../lua/ack_slow.lua"),
    "end\nif wanted.reserve then\n",
    include_str!("../lua/reserve_slow.lua"),
    "end\n",
    "if wanted.put then\n",
    include_str!("../lua/put.lua"),
    "end\nif wanted.nack or wanted.release then\n",
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
    include_str!("../lua/reserve_id.lua"),
    include_str!("../lua/get.lua"),
    include_str!("../lua/peek.lua"),
    include_str!("../lua/list.lua"),
    include_str!("../lua/stats.lua"),
    include_str!("../lua/forecast.lua"),
    include_str!("../lua/purge.lua"),
    include_str!("../lua/pause.lua"),
    include_str!("../lua/lock.lua"),
    "end\n",
    include_str!("../lua/execute.lua"),
    include_str!("../lua/expire_dead.lua"),
    "end\n",
    include_str!("../lua/epilogue.lua"),
];

/// Puts constants in where they are used, and leaves comments out. To a script a constant is a
/// variable like others: functions that use it hold on to it, and that is paid for in every call.
/// Constants are what a line declares that begins with `local` and has names in capitals, and
/// numbers or texts as their values. Lines keep their numbers.
pub(crate) fn with_constants(source: &str) -> String {
    let mut constants = HashMap::new();
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

/// A line without its comment, cut into words, texts, and the single characters between them.
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

/// Checks and mends the register of topics.
pub(crate) const REGISTER_MEND: &str = include_str!("../lua/verify_register.lua");

/// Runs at maxmemory as well: what it does takes jobs away, or needs little.
const RELIEF: &str = "#!lua flags=allow-oom\n";

/// The scripts of a server.
#[derive(Debug)]
pub(crate) struct Scripts {
    /// With puts among the operations.
    pub(crate) put: Arc<Script>,
    /// Without.
    pub(crate) relief: Arc<Script>,
    /// Of the register of topics.
    pub(crate) register: Arc<Script>,
    /// What mends the register.
    pub(crate) register_mend: Arc<Script>,
}

impl Scripts {
    pub(crate) fn new() -> Scripts {
        let source = with_constants(&FILES.concat());
        Scripts {
            relief: Arc::new(Script::new(format!("{RELIEF}{source}"))),
            put: Arc::new(Script::new(source)),
            register: Arc::new(Script::new(include_str!("../lua/register.lua").to_owned())),
            register_mend: Arc::new(Script::new(REGISTER_MEND.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_are_put_in_where_they_are_used() {
        let source = "local ONE, TEXT = 1, '>I4' -- ONE of all\n\
                      local S, ONES = KEYS[1], ONE + 1 -- ONE\n\
                      local function f(TWO)\n    local NINE = 9\n\
                      return pack(TEXT, ONE, 'ONE -- ONE', TWO, ONES, NINE, S)\nend\n";
        let expected = "\nlocal S, ONES = KEYS[1], 1 + 1 \n\
                        local function f(TWO)\n    local NINE = 9\n\
                        return pack('>I4', 1, 'ONE -- ONE', TWO, ONES, NINE, S)\nend\n";
        assert_eq!(with_constants(source), expected);
    }

    /// They hold from their line to the end of all files.
    #[test]
    fn a_constant_has_one_value_in_all_files() {
        let mut values = HashMap::new();
        for line in FILES.iter().flat_map(|file| file.lines()) {
            for (name, value) in declared(&pieces(line)).into_iter().flatten() {
                assert_eq!(*values.entry(name).or_insert(value), value, "{name}");
            }
        }
        assert!(values.len() > 50, "{values:?}");
    }
}
