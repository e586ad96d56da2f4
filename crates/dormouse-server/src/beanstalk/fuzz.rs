//! Random input for beanstalkd's protocol.

use std::sync::Arc;

use bytes::BytesMut;
use dormouse_core::command::Command;
use dormouse_fuzz::{Input, Target, fuzz};

use super::{Beanstalk, Drain, Shared};
use crate::access::Access;
use crate::pipeline::read_all;

const TARGET: Target<'_> = Target {
    name: "beanstalk",
    home: env!("CARGO_MANIFEST_DIR"),
    seeds: &[
        b"put 1024 10 60 5\r\nhello\r\nuse t\r\nput 0 0 1 0\r\n\r\n",
        b"watch a\r\nignore default\r\nreserve-with-timeout 5\r\nreserve\r\nreserve-job 7\r\n",
        b"delete 1\r\nrelease 2 1024 5\r\nbury 3 1024\r\ntouch 4\r\nkick 10\r\nkick-job 5\r\n",
        b"peek 1\r\npeek-ready\r\npeek-delayed\r\npeek-buried\r\nstats\r\nstats-job 1\r\n",
        b"stats-tube t\r\nlist-tubes\r\nlist-tube-used\r\nlist-tubes-watched\r\n\
          pause-tube t 5\r\nquit\r\n",
        b"put 1024 10 60 70000\r\n",
    ],
    words: &[
        b"\r\n",
        b"\n",
        b"\r",
        b" ",
        b"put ",
        b"put 0 0 0 4294967296\r\n",
        b"put 0 0 0 65535\r\n",
        b"watch ",
        b"use -\r\n",
        b"kick ",
        b"reserve",
        b"\0",
        b"\xff",
        b"POST / HTTP/1.1\r\n",
    ],
    // A connection, and a request for each of the shortest commands, in a list that doubles.
    held_bytes_max: |bytes| (64 << 10) + 128 * bytes as u64,
};

fn read(shared: &Arc<Shared>, input: &Input) -> Vec<Command> {
    let mut beanstalk = Beanstalk::new(Arc::clone(shared));
    read_all(&mut beanstalk, input.pieces(), BytesMut::new())
}

/// However the bytes arrive, they are the same commands.
#[test]
fn fuzz_beanstalk() {
    let shared = Arc::new(Shared::new(65_535, Drain::default(), &Access::open()));
    fuzz(&TARGET, |input| {
        let commands = read(&shared, input);
        assert_eq!(commands, read(&shared, &Input::whole(&input.bytes)));
    });
}
