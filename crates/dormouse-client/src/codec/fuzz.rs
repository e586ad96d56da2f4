//! Random replies: what a server of another version, or something else at its address, may send.

use bytes::Bytes;
use dormouse_core::backend::Answer;
use dormouse_core::command::Command;
use dormouse_core::error::Error;
use dormouse_core::job::{JobId, State, Token};
use dormouse_core::op::{
    Cancel, Chain, Extend, Forecast, GetSchedule, List, ListRange, Lock, Locks, Nack, Peek, Put,
    Reserve, Schedules, Stats, Target, Topics,
};
use dormouse_core::schedule::ScheduleName;
use dormouse_core::topic::TopicName;
use dormouse_fuzz::{Input, Target as FuzzTarget, fuzz};

use super::{ReplyReader, Scanner, encode};

const TARGET: FuzzTarget<'_> = FuzzTarget {
    name: "replies",
    home: env!("CARGO_MANIFEST_DIR"),
    seeds: &[
        b"*4\r\n$1\r\n7\r\n+created\r\n+ready\r\n:1700000000000\r\n+OK\r\n",
        b"+OK\r\n+GONE\r\n-LEASELOST it went on\r\n*3\r\n+OK\r\n+GONE\r\n-LEASELOST x\r\n",
        b"-CONFLICT job 7 is leased\r\n-UNAVAILABLE it stops\r\n-NOAUTH give a token\r\n",
        b"*1\r\n%11\r\n$5\r\ntopic\r\n$1\r\nt\r\n$2\r\nid\r\n$1\r\n7\r\n$3\r\nkey\r\n_\r\n\
          $5\r\ntoken\r\n$3\r\n7.9\r\n$7\r\nattempt\r\n:1\r\n$6\r\ndue_at\r\n:1\r\n\
          $6\r\nput_at\r\n:1\r\n$6\r\nttr_ms\r\n:60000\r\n$8\r\npriority\r\n:1024\r\n\
          $7\r\nheaders\r\n%1\r\n$1\r\na\r\n$1\r\nb\r\n$4\r\nbody\r\n$2\r\n{}\r\n",
        b"*22\r\n$5\r\ntopic\r\n$1\r\nt\r\n$2\r\nid\r\n$1\r\n7\r\n$5\r\nstate\r\n$4\r\ndead\r\n\
          $4\r\nkind\r\n$4\r\njson\r\n$7\r\nbackoff\r\n$9\r\nfixed:100\r\n\
          $6\r\njitter\r\n$1\r\n0\r\n\
          $8\r\nattempts\r\n:1\r\n$5\r\nerror\r\n$-1\r\n$4\r\nbody\r\n$0\r\n\r\n\
          $3\r\nkey\r\n$1\r\nk\r\n$4\r\ntick\r\n:1\r\n",
        b"*2\r\n$5\r\n1.2.3\r\n*2\r\n*0\r\n*-1\r\n*3\r\n:1\r\n:2\r\n:3\r\n#t\r\n_\r\n:42\r\n",
        b"*2\r\n:9\r\n:1700000000000\r\n*4\r\n$4\r\nname\r\n$1\r\nl\r\n$5\r\nfence\r\n:9\r\n",
    ],
    words: &[
        b"\r\n",
        b"*1\r\n",
        b"%1\r\n",
        b"$-1\r\n",
        b"_\r\n",
        b":-1\r\n",
        b":9223372036854775807\r\n",
        b":99999999999999999999\r\n",
        b"*1000000000\r\n",
        b"%4611686018427387904\r\n",
        b"$2000000000\r\n",
        b"+OK\r\n",
        b"+GONE\r\n",
        b"+QUEUED\r\n",
        b"-ERR \xff\r\n",
        b"$5\r\ntopic\r\n",
        b"$5\r\nstate\r\n",
        b"$6\r\ncursor\r\n",
        b"HTTP/1.1 400 Bad Request\r\n",
        b"\0",
        b"\xff",
    ],
    // The frames, a value of 32 bytes for each four bytes of the shortest ones, and one answer.
    held_bytes_max: |bytes| (16 << 10) + 64 * bytes as u64,
};

/// A command of each kind of reply.
fn commands() -> Vec<Command> {
    let topic = || TopicName::new("t").unwrap();
    let token = Token { id: JobId(7), fence: 9 };
    let put = || Put::new(topic(), "x");
    let by_key = || Target::Key { topic: topic(), key: "k".into() };
    let (name, owner) = (Bytes::from("l"), Bytes::from("o"));
    vec![
        Command::Put(vec![put(), put()]),
        Command::Ack(vec![token]),
        Command::Ack(vec![token, token]),
        Command::Chain(Chain { token, puts: vec![put(), put()] }),
        Command::Nack(vec![Nack { token, delay_ms: None, priority: None, error: None }]),
        Command::Extend(vec![Extend { token, ttr_ms: None }]),
        Command::Cancel(vec![Cancel { target: by_key(), unless_leased: false }]),
        Command::Get(vec![by_key(), Target::Id(JobId(7))]),
        Command::Reserve(Reserve {
            topics: vec![topic()],
            max: 10,
            wait_ms: 0,
            ttr_ms: None,
            session: None,
        }),
        Command::Peek(Peek { topic: topic(), state: State::Ready }),
        Command::List(List {
            topic: topic(),
            state: State::Dead,
            cursor: None,
            limit: 10,
            range: ListRange::default(),
        }),
        Command::Topics(Topics { after: None, limit: 10 }),
        Command::Stats(Stats { topic: None }),
        Command::Stats(Stats { topic: Some(topic()) }),
        Command::Forecast(Forecast { topic: topic(), from_ms: 0, to_ms: 10, step_ms: 1 }),
        Command::Lock(Lock { name: name.clone(), owner, ttl_ms: 1, wait_ms: 0 }),
        Command::Locks(Locks { prefix: name, cursor: None, limit: 10 }),
        Command::GetSchedule(GetSchedule { topic: topic(), name: ScheduleName::new("s").unwrap() }),
        Command::Schedules(Schedules { topic: topic(), state: None, cursor: None, limit: 10 }),
    ]
}

/// The replies of an input, and whether something comes after them that is none.
fn scan(input: &Input) -> (Vec<Bytes>, bool) {
    let (mut scanner, mut frames, mut unread) = (Scanner::default(), Vec::new(), Vec::new());
    for piece in input.pieces() {
        unread.extend_from_slice(piece);
        loop {
            match scanner.next(&unread) {
                Ok(Some(length)) => {
                    frames.push(Bytes::copy_from_slice(&unread[..length]));
                    unread.drain(..length);
                }
                Ok(None) => break,
                Err(_) => return (frames, true),
            }
        }
    }
    (frames, false)
}

/// The answer that a command gets if these replies come and no others.
fn answer(command: &Command, replies: usize, frames: &[Bytes]) -> Answer {
    let mut reader = ReplyReader::new(command, replies);
    for frame in frames.iter().take(replies) {
        reader.add(command, frame);
    }
    if reader.missing() == 0 {
        return reader.finish();
    }
    reader.finish_with(&Error::unavailable("the connection broke"))
}

/// However the bytes arrive, they are the same replies; and each of them may be the reply to every
/// command.
#[test]
fn fuzz_replies() {
    let mut commands: Vec<_> = commands().into_iter().map(|command| (command, 0)).collect();
    for (command, replies) in &mut commands {
        *replies = encode(command, &mut Vec::new()).unwrap();
    }
    fuzz(&TARGET, |input| {
        let (frames, is_garbage) = scan(input);
        let whole = Input::whole(&input.bytes);
        assert_eq!((&frames, is_garbage), (&scan(&whole).0, scan(&whole).1));
        for start in 0..frames.len().min(16) {
            for (command, replies) in &commands {
                drop(answer(command, *replies, &frames[start..]));
            }
        }
    });
}
