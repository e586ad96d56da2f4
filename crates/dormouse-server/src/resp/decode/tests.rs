//! The decoder against whole, torn, random and hostile input.

use super::*;

/// SplitMix64, from a seed that a failure prints.
struct Rng(u64);

impl Rng {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut value = self.0;
        value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((value ^ (value >> 31)) % bound as u64) as usize
    }
}

/// What some input was decoded to: commands, then an error or nothing.
#[derive(Debug, PartialEq)]
struct Read {
    commands: Vec<Option<Vec<Vec<u8>>>>,
    breach: Option<ProtocolError>,
    /// The number of bytes left.
    left: Vec<u8>,
}

/// Feeds pieces, as a socket would, and decodes all complete commands after each.
fn read(pieces: &[&[u8]], bounds: Bounds) -> Read {
    let (mut decoder, mut input) = (Decoder::default(), BytesMut::new());
    let mut commands = Vec::new();
    for piece in pieces {
        input.extend_from_slice(piece);
        loop {
            let found = match decoder.next(&mut input, bounds) {
                Ok(None) => break,
                Ok(Some(found)) => found,
                Err(breach) => return Read { commands, breach: Some(breach), left: Vec::new() },
            };
            let args = |bytes: &[u8]| -> Vec<Vec<u8>> {
                let arg =
                    |place: &ByteRange| bytes[place.start as usize..place.end as usize].to_vec();
                decoder.ranges.iter().map(arg).collect()
            };
            commands.push(match found {
                Frame::List(end) => {
                    let args = args(&input[..end]);
                    input.advance(end);
                    Some(args)
                }
                Frame::Line(end) => {
                    let args = args(&decoder.words);
                    input.advance(end);
                    Some(args)
                }
                Frame::TooLarge => None,
            });
            decoder.clear();
        }
    }
    Read { commands, breach: None, left: input.to_vec() }
}

fn encoded(args: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", args.len()).into_bytes();
    for arg in args {
        bytes.extend_from_slice(format!("${}\r\n", arg.len()).as_bytes());
        bytes.extend_from_slice(arg);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

fn cut<'a>(bytes: &'a [u8], rng: &mut Rng) -> Vec<&'a [u8]> {
    let mut pieces = Vec::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        let most = [1, 3, 20, 200][rng.below(4)];
        let (piece, behind) = rest.split_at(rest.len().min(1 + rng.below(most)));
        pieces.push(piece);
        rest = behind;
    }
    pieces
}

#[test]
fn commands_are_decoded_from_any_pieces() {
    for seed in 0..2_000 {
        let mut rng = Rng(seed);
        let mut bytes = Vec::new();
        let mut expected = Vec::new();
        for _ in 0..1 + rng.below(5) {
            let command: Vec<Vec<u8>> = (0..1 + rng.below(6))
                .map(|_| (0..rng.below(40)).map(|_| rng.below(256) as u8).collect())
                .collect();
            bytes.extend(encoded(&command));
            if rng.below(4) == 0 {
                bytes.extend_from_slice(b"*0\r\n*-1\r\n");
            }
            expected.push(Some(command));
        }
        let got = read(&cut(&bytes, &mut rng), Bounds::KNOWN);
        let expected = Read { commands: expected, breach: None, left: Vec::new() };
        assert_eq!(got, expected, "seed {seed}");
    }
}

#[test]
fn random_bytes_are_decoded_the_same_in_any_pieces() {
    // The protocol's own bytes are frequent enough to get far into it.
    const PARTS: [&[u8]; 16] = [
        b"*",
        b"$",
        b"\r\n",
        b"1",
        b"2",
        b"-1",
        b"0",
        b"12",
        b"a",
        b"PING\r\n",
        b"*1\r\n$4\r\n",
        b"*2\r\n",
        b"$1\r\na\r\n",
        b"\"",
        b" ",
        b"\n",
    ];
    for seed in 0..20_000 {
        let mut rng = Rng(seed);
        let mut bytes = Vec::new();
        for _ in 0..rng.below(24) {
            match rng.below(8) {
                0 => bytes.push(rng.below(256) as u8),
                _ => bytes.extend_from_slice(PARTS[rng.below(PARTS.len())]),
            }
        }
        let whole = read(&[&bytes], Bounds::KNOWN);
        let torn = read(&cut(&bytes, &mut rng), Bounds::KNOWN);
        assert_eq!(whole, torn, "seed {seed}: {:?}", String::from_utf8_lossy(&bytes));
    }
}

#[test]
fn a_command_that_is_too_large_is_discarded_as_it_arrives() {
    let bounds = Bounds { arguments: 10, bytes: 100, skipped: 10_000 };
    let (small, large) = (vec![b"PING".to_vec()], vec![b"PUT".to_vec(), vec![b'x'; 5_000]]);
    for seed in 0..200 {
        let mut rng = Rng(seed);
        let mut bytes = encoded(&small);
        bytes.extend(encoded(&large));
        bytes.extend(encoded(&small));
        let got = read(&cut(&bytes, &mut rng), bounds);
        let commands = vec![Some(small.clone()), None, Some(small.clone())];
        assert_eq!(got, Read { commands, breach: None, left: Vec::new() }, "seed {seed}");
    }
    let (mut decoder, mut input) = (Decoder::default(), BytesMut::new());
    input.extend_from_slice(b"*2\r\n$9000\r\n");
    for _ in 0..80 {
        input.extend_from_slice(&[b'x'; 100]);
        assert_eq!(decoder.next(&mut input, bounds), Ok(None));
        assert!(input.is_empty());
    }
}

#[track_caller]
fn check_error(input: &str, bounds: Bounds, part: &str) {
    match read(&[input.as_bytes()], bounds).breach {
        Some(ProtocolError::Malformed(text)) => assert!(text.contains(part), "{input:?}: {text}"),
        other => panic!("{input:?}: {other:?}"),
    }
}

#[test]
fn malformed_input_ends_the_connection_at_once() {
    let known = |input: &str, part: &str| check_error(input, Bounds::KNOWN, part);
    known("*1\r\n$1073741824\r\n", "invalid bulk length");
    known("*1\r\n$9223372036854775807\r\n", "invalid bulk length");
    known("*1\r\n$99999999999999999999\r\n", "invalid bulk length");
    known("*1\r\n$-1\r\n", "invalid bulk length");
    known("*1\r\n$\r\n", "invalid bulk length");
    known("*1\r\n$+1\r\n", "invalid bulk length");
    known("*1\r\n$1\n", "invalid bulk length");
    known("*1000000000\r\n", "arguments; send at most 8192");
    known("*9223372036854775808\r\n", "invalid multibulk length");
    known("*x\r\n", "invalid multibulk length");
    known("*1\r\n*1\r\n$4\r\nPING\r\n", "expected '$', got '*'");
    known("*1\r\n:1\r\n", "expected '$', got ':'");
    known("*1\r\n$1\r\nabc", "longer than its length says");
    known("*00000000000000000000000000000000000000", "invalid multibulk length");
    known("\u{16}\u{3}\u{1}", "no command");
    known("PUT \"a\r\n", "unbalanced quotes");
    let guest = |input: &str, part: &str| check_error(input, Bounds::GUEST, part);
    guest("*11\r\n", "arguments; send at most 10");
    guest("*2\r\n$4\r\nAUTH\r\n$16384\r\n", "at most 16384 bytes");
}

#[test]
fn a_line_is_bounded_whether_it_ends_or_not() {
    let line = "x".repeat(RESP_LINE_BYTES_MAX + 1);
    check_error(&line, Bounds::KNOWN, "too big inline request");
    check_error(&format!("{line}\r\n"), Bounds::KNOWN, "too big inline request");
    let line = "x".repeat(RESP_LINE_BYTES_MAX - 1);
    assert_eq!(read(&[line.as_bytes()], Bounds::KNOWN).breach, None);
    let read = read(&[line.as_bytes(), b"\r\n"], Bounds::KNOWN);
    assert_eq!(read.commands, [Some(vec![line.into_bytes()])]);
}

#[test]
fn a_line_is_bounded_by_the_bounds_of_its_sender() {
    let (guest, known) = (Bounds::GUEST, Bounds::KNOWN);
    let words = |count: usize| "a ".repeat(count) + "\r\n";
    check_error(&words(11), guest, "11 arguments; send at most 10");
    assert_eq!(read(&[words(10).as_bytes()], guest).commands.len(), 1);
    check_error(&words(8_193), known, "8193 arguments; send at most 8192");
    assert_eq!(read(&[words(8_192).as_bytes()], known).commands.len(), 1);
    let line = |bytes: usize| "x".repeat(bytes);
    check_error(&line(RESP_GUEST_BYTES_MAX + 1), guest, "too big inline request");
    check_error(&(line(RESP_GUEST_BYTES_MAX) + "\r\n"), guest, "too big inline request");
    let most = line(RESP_GUEST_BYTES_MAX - 1) + "\r\n";
    assert_eq!(read(&[most.as_bytes()], guest).commands.len(), 1);
}

#[test]
fn http_is_recognized() {
    let read = read(&[b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"], Bounds::KNOWN);
    assert_eq!((read.commands.len(), read.breach), (0, Some(ProtocolError::Http)));
}
