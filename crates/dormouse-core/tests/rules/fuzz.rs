//! Random cursors of lists, tokens and names.

use dormouse_core::command::Command;
use dormouse_core::job::{JobId, State, Token};
use dormouse_core::op::{List, ListRange, Put};
use dormouse_core::topic::TopicName;
use dormouse_fuzz::{Target, fuzz};

use crate::support::{Rig, topic};

const TARGET: Target<'_> = Target {
    name: "cursors",
    home: env!("CARGO_MANIFEST_DIR"),
    seeds: &[b"801.4c4b40.1", b"1", b"200000000.1.2", b"0.0.0", b"1.2", b"ffffffffffffffff"],
    words: &[b".", b"-", b"+", b"0x", b"ffffffffffffffff", b"200000001", b"..", b"\xc3\xa9"],
    // A page of three jobs, and the text of a refusal.
    held_bytes_max: |bytes| (16 << 10) + 24 * bytes as u64,
};

/// A cursor that somebody made up leads to jobs of the topic, or to a refusal.
#[test]
fn fuzz_cursors() {
    let mut rig = Rig::new();
    for delay_ms in [0, 5, 50] {
        rig.put(Put { delay_ms: Some(delay_ms), ..Put::new(topic("t"), "body") });
    }
    let states = [State::Delayed, State::Ready, State::Leased, State::Dead];
    fuzz(&TARGET, |input| {
        let text = input.text();
        for state in states {
            let cursor = Some(text.clone());
            let list =
                List { topic: topic("t"), state, cursor, limit: 2, range: ListRange::default() };
            drop(rig.run(Command::List(list)));
        }
        drop((text.parse::<Token>(), text.parse::<JobId>(), TopicName::new(&text)));
    });
}
