//! Random commands with something wrong.
//!
//! Each ends where a line ends, on both sides: what is sent behind it is read as commands again.
//!
//! The number of `reserve-with-timeout` is always a good one. Debian's original is 1.12, which
//! takes anything for a number there, and waits for ever if it is negative; 1.13 and ours do not.

use crate::generate::Generator;
use crate::script::{Piece, Script};

/// Lines that are no commands, or not quite.
const LINES: &[&str] = &[
    "",
    " ",
    "bogus",
    "stats ",
    "statsx",
    "stats-job",
    "stats-job x",
    "stats-job 99999999999999999999",
    "stats-tube",
    "stats-tube nowhere",
    "peek",
    "peek ",
    "peek x",
    "peek -1",
    "peek-readyx",
    "kick",
    "kick ",
    "kick a",
    "kick - 1",
    "kick-job",
    "kick-job1",
    "use",
    "use ",
    "use -x",
    "use a b",
    "use a:b",
    "use \u{e9}",
    "watch ",
    "watch -",
    "ignore ",
    "ignore nothing",
    "delete 0",
    "delete 1 ",
    "delete -1",
    "delete  1000000000",
    "reservex",
    "reserve ",
    "reserve-job x",
    "reserve-job",
    "reserve-with-timeout",
    "reserve-with-timeout 0 x",
    "reserve-with-timeout  00",
    "touch",
    "touch 1 2",
    "bury 1000000000",
    "bury 1000000000 1 1",
    "bury 1000000000 4294967296",
    "bury 1000000000 4294967295",
    "release 1000000000 1",
    "release 1000000000 1 1 ",
    "release 1000000000 1 -1",
    "pause-tube",
    "pause-tube a",
    "pause-tube a 5000x",
    "pause-tube a:b 5000",
    "pause-tube -a 5000",
    "pause-tube nowhere 5000",
    "pause-tubedefault 5000",
    "list-tube",
    "list-tubesx",
    "PEEK-READY",
    "put",
    "put ",
    "put 1 2",
    "put 1 0 1000",
    "put a 0 1000 1",
    "put 1 b 1000 1",
    "put -1 0 1000 1",
    "put 4294967296 0 1000 1",
    "put 1 4294967296 1000 1",
    "put 1 0 1000 4294967296",
    "put 1 0 1000 1 ",
    "put 1 0 1000 1x",
    "put 1 0 1000 1 1",
    "\n",
    "\tstats",
    "use a\n",
    "foo\0bar",
    "peek 1\0",
];

/// What its number follows.
const WAIT: &str = "reserve-with-timeout ";
/// A longer line is too long. One of a byte more is a listed difference.
const LINE_BYTES_MAX: usize = 222;
/// The original's line buffer, line end included.
const LINE_ROOM: usize = 224;

impl Generator {
    pub(crate) fn wrong_line(&mut self) -> Script {
        if self.rng.chance(80) {
            let line = self.rng.pick(LINES).unwrap();
            return Script::text(format!("{line}\r\n"));
        }
        let mut line = match self.rng.below(3) {
            0 => self.long_name(),
            1 => vec![b'x'; LINE_BYTES_MAX - 2 + self.rng.below(600) as usize],
            _ => {
                let count = self.rng.below(700) as usize;
                self.bytes(count, is_harmless)
            }
        };
        // A CR there would be the last byte of a full buffer: the original does not see the LF.
        if line.len() % LINE_ROOM == LINE_ROOM - 1 {
            line.pop();
        }
        line.extend_from_slice(b"\r\n");
        Script::text(line)
    }

    /// About as long as a name may be.
    fn long_name(&mut self) -> Vec<u8> {
        let verbs = ["watch", "ignore", "stats-tube", "use"];
        let verbs = if self.setup.keeps_tubes { &verbs[..3] } else { &verbs };
        let verb = self.rng.pick(verbs).unwrap();
        let length = 197 + self.rng.below(7) as usize;
        format!("{verb} {}", "n".repeat(length)).into_bytes()
    }

    /// A put whose body is not what its line says.
    pub(crate) fn wrong_put(&mut self) -> Script {
        match self.rng.below(3) {
            0 => self.put_too_large(),
            1 => self.put_with_more(),
            _ => self.put_with_less(),
        }
    }

    /// The body is thrown away, whatever is in it, and whatever stands behind the number.
    fn put_too_large(&mut self) -> Script {
        let length = self.setup.body_bytes_max + 1 + self.rng.below(400) as usize;
        let end = *self.rng.pick(&["", "", " ", " x"]).unwrap();
        let mut put = self.put_line(length, end).into_bytes();
        put.extend(self.bytes(length + 2, |_| true));
        Script::text(put)
    }

    /// The excess is read as a line.
    fn put_with_more(&mut self) -> Script {
        let length = self.rng.below(30) as usize;
        let more = 1 + self.rng.below(20) as usize;
        let mut put = self.put_line(length, "").into_bytes();
        put.extend(self.bytes(length + more, is_harmless));
        // If it is only one byte, the LF begins the next line.
        put.extend_from_slice(if more == 1 { b"\r\nx\r\n" } else { b"\r\n" });
        self.ids.refused();
        Script::text(put)
    }

    /// What is missing is taken from what follows, so something does; then comes an empty line.
    fn put_with_less(&mut self) -> Script {
        let length = 1 + self.rng.below(30) as usize;
        let less = 1 + self.rng.below(length as u64) as usize;
        let mut put = self.put_line(length, "").into_bytes();
        put.extend(self.bytes(length - less, |_| true));
        put.extend_from_slice(b"\r\n");
        put.extend(self.bytes(less, is_harmless));
        put.extend_from_slice(b"\r\n");
        self.ids.refused();
        Script::text(put)
    }

    /// A good line with a byte too many, too few, or another one. Digits stay what they are: else
    /// it might wait, or be about another job. If tubes are kept, no jobs come into others.
    pub(crate) fn mutant(&mut self) -> Script {
        let mut script = self.line();
        // A sign would make it a kick of all.
        let is_kick = self.somebody_waits && script.begins_with(b"kick ");
        if is_kick || (self.setup.keeps_tubes && script.begins_with(b"use ")) {
            return script;
        }
        let is_wait = script.begins_with(WAIT.as_bytes());
        let texts = script.pieces.iter_mut().filter_map(|piece| match piece {
            Piece::Text(text) => Some(text),
            Piece::Job(_) => None,
        });
        let mut texts: Vec<_> = texts.collect();
        let which = self.rng.below(texts.len() as u64) as usize;
        let text = &mut *texts[which];
        let room = text.strip_suffix(b"\r\n").unwrap_or(text).len();
        let at = self.rng.below(room as u64 + 1) as usize;
        let at = if is_wait && at == WAIT.len() { 0 } else { at };
        let byte = loop {
            let byte = self.rng.next_u64() as u8;
            let byte = if self.rng.chance(80) { byte & 0x7f } else { byte };
            if is_harmless(byte) {
                break byte;
            }
        };
        let is_fixed = at >= room || text[at].is_ascii_digit();
        match self.rng.below(3) {
            0 if !is_fixed => drop(text.remove(at)),
            1 if !is_fixed => text[at] = byte,
            _ => text.insert(at, byte),
        }
        script
    }
}

/// A digit might change a number, a CR alone in a line is a listed difference.
fn is_harmless(byte: u8) -> bool {
    !byte.is_ascii_digit() && byte != b'\r'
}
