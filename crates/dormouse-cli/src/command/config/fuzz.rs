//! Random configuration files, and the tokens in them.

use std::path::Path;

use dormouse_fuzz::{Input, Target, fuzz};
use dormouse_server::access::Access;

use super::file::parse;
use super::keys::KEYS;
use super::settings::Settings;

const CONFIG: Target<'_> = Target {
    name: "config",
    home: env!("CARGO_MANIFEST_DIR"),
    seeds: &[
        b"# comment\nhttp = \"127.0.0.1:7788\"\nresp = \"off\"\nbeanstalk = \"unix:/run/x\"\n\
          connections_max = 10_000\ndata = './data'\n",
        b"backend = \"redis\"\ndurability = \"relaxed=50\"\nhosts = [\"a.example\", \"b\"]\n\
          drain = \"10s\"\n[redis]\nurl = \"redis://u:p@h:1/0\"\nlevel = \"replicated=2\"\n",
        b"strict = true\ninsecure = false\nmetrics_topics = [\"a\"]\nlog = \"debug\"\n[tls]\n\
          cert = \"\"\"c\"\"\"\nkey = \"k\"\n[store]\nmemtable = \"64MiB\"\n",
    ],
    words: &[
        b"=",
        b"\n",
        b"[",
        b"]",
        b"[[tokens]]\n",
        b"[redis]\n",
        b"\"",
        b"'''",
        b"\"\"\"",
        b"\\u00",
        b"true",
        b"0x",
        b"1e9",
        b"1979-05-27T07:32:00Z",
        b"{a=1}",
        b"http = ",
        b"data = ",
        b".",
        b"connections_max = ",
        b"#",
        b"\xff",
        b"\0",
        b"64MiB",
        b"10s",
        b"unix:",
    ],
    // The TOML parser makes a table for each part of a dotted key, which may have one byte.
    held_bytes_max: |bytes| (32 << 10) + 1_024 * bytes as u64,
};

const TOKENS: Target<'_> = Target {
    name: "tokens",
    seeds: &[
        b"[[tokens]]\nname = \"shop\"\n\
          token_sha256 = \"00000000000000000000000000000000000000000000000000000000000000ff\"\n\
          scopes = [\"producer:orders.*\", \"stats:*\", \"put, get:t\"]\n",
        b"[[tokens]]\nname = \"a\"\ntoken_file = \"no-such-file\"\nscopes = [\"*:*\"]\n\
          [[tokens]]\nname = \"b\"\n\
          token_sha256 = \"a1b2c3d4e5f60718293a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6d7e8f90\"\n\
          scopes = [\"operator:a/b*\"]\n",
    ],
    words: &[
        b"[[tokens]]\n",
        b"name = ",
        b"token_sha256 = ",
        b"scopes = ",
        b"\"*:*\"",
        b":",
        b"*",
        b",",
        b"consumer",
        b"lock:",
        b"[]",
        b"\"",
        b"\n",
        b"ff",
        b"\xc3\xa9",
    ],
    ..CONFIG
};

/// Reads a file as a start does, without the environment.
fn read(input: &Input) {
    let Ok(contents) = parse(Path::new("x.toml"), &input.text()) else { return };
    let mut settings = Settings::default();
    for (name, raw, _) in contents.values {
        if let Some(key) = KEYS.iter().find(|key| key.name == name) {
            drop((key.set)(&mut settings, &raw));
        }
    }
    drop(settings.verify());
    let tokens: Vec<_> = contents.tokens.into_iter().map(|(token, _)| token).collect();
    drop(Access::new(tokens));
}

#[test]
fn fuzz_config() {
    fuzz(&CONFIG, read);
}

#[test]
fn fuzz_tokens() {
    fuzz(&TOKENS, read);
}
