//! Random input for RESP.

use std::sync::Arc;

use bytes::BytesMut;
use dormouse_core::command::Command;
use dormouse_fuzz::{Input, Target, fuzz};

use super::Resp;
use crate::access::{Access, TokenEntry, hash_token};
use crate::limits::TURN_BYTES_MAX;
use crate::metrics::{Metrics, ProtocolKind};
use crate::pipeline::read_all;
use crate::visitor::{Address, Visitor};

const TARGET: Target<'_> = Target {
    name: "resp",
    home: env!("CARGO_MANIFEST_DIR"),
    seeds: &[
        b"*5\r\n$3\r\nPUT\r\n$1\r\nt\r\n$4\r\nbody\r\n$5\r\nDELAY\r\n$3\r\n10m\r\n",
        b"*10\r\n$3\r\nPUT\r\n$1\r\nt\r\n$0\r\n\r\n$3\r\nKEY\r\n$1\r\nk\r\n$11\r\nON_CONFLICT\r\n\
          $6\r\nlatest\r\n$6\r\nHEADER\r\n$1\r\na\r\n$1\r\nb\r\n",
        b"RESERVE t u MAX 10 WAIT 5s TTR 1m FULL\r\nACK 1.2 3.4\r\nPING\r\n",
        b"*3\r\n$5\r\nHELLO\r\n$1\r\n3\r\n$4\r\nAUTH\r\n*1\r\n$4\r\nQUIT\r\n",
        b"AUTH default token\r\nGET 7\r\nCANCEL t KEY \"a b\\x00\"\r\n\
          NACK 1.2 DELAY 5s ERROR 'x y'\r\n",
        b"RESCHEDULE t KEY k AT 2030-01-01T00:00:00Z\r\nLIST t dead CURSOR 1.2.3 LIMIT 5\r\n",
        b"FORECAST t FROM 1 TO 2 STEP 1\r\nLOCK l o TTL 5s WAIT 1s\r\nUNLOCK l o\r\n\
          KICK t ALL\r\n",
        b"MULTI\r\nEXEC\r\nCLIENT SETNAME x\r\nCOMMAND DOCS put\r\nINFO\r\nRESET\r\n*0\r\n*-1\r\n",
        b"PEEK t ready\r\nSTATS\r\nTOPICS AFTER t LIMIT 2\r\n\
          PAUSE t 5s\r\nREVIVE 5\r\nKILL 1.2\r\n",
    ],
    words: &[
        b"\r\n",
        b"*1\r\n",
        b"$1\r\n",
        b"$-1\r\n",
        b"*1000000000\r\n",
        b"$2000000000\r\n",
        b"PUT ",
        b"RESERVE ",
        b"ACK ",
        b"AUTH token\r\n",
        b"KEY ",
        b"MAX ",
        b"WAIT ",
        b"PT1H",
        b"100y",
        b"\"",
        b"\\x",
        b"1.1",
        b"\0",
        b"\xff",
        b"GET / HTTP/1.1\r\n",
        b"LIMIT ",
        b"list:1s",
    ],
    // The replies of a turn, in a buffer that doubles; and a request for each of the shortest
    // commands, in a list that does.
    held_bytes_max: |bytes| 2 * TURN_BYTES_MAX as u64 + 128 * bytes as u64,
};

fn read(access: &Access, input: &Input) -> Vec<Command> {
    let visitor = Arc::new(Visitor::new(Address::Local, ProtocolKind::Resp, None));
    let mut resp = Resp::new(access.clone(), Arc::<Metrics>::default(), visitor);
    let mut commands = read_all(&mut resp, input.pieces(), BytesMut::new());
    for command in &mut commands {
        // Without FROM it begins now, which may be a ms later the second time.
        if let Command::Forecast(forecast) = command {
            (forecast.from_ms, forecast.to_ms) = (0, 0);
        }
    }
    commands
}

/// However the bytes arrive, they are the same commands.
#[test]
fn fuzz_resp() {
    let entry = TokenEntry {
        name: "default".to_owned(),
        hash: hash_token("token"),
        scopes: vec!["*:t*".parse().unwrap()],
    };
    let tables = [Access::open(), Access::new(vec![entry]).unwrap()];
    fuzz(&TARGET, |input| {
        for access in &tables {
            let commands = read(access, input);
            assert_eq!(commands, read(access, &Input::whole(&input.bytes)));
        }
    });
}
