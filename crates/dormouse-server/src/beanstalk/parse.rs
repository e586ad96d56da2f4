//! Parses a line: the command is found by its prefix, then its arguments are checked.

use dormouse_core::job::{JobId, State};
use dormouse_core::topic::TopicName;

use super::number::{loose_u64, only_u64, take_u32, take_u64};

/// A command as its line gives it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum LineCommand {
    Put(PutLine),
    Peek(JobId),
    PeekNext(State),
    /// With the seconds to wait; `None` if for ever.
    Reserve(Option<u32>),
    ReserveJob(JobId),
    Delete(JobId),
    Release {
        id: JobId,
        priority: u32,
        delay_s: u32,
    },
    Bury {
        id: JobId,
        priority: u32,
    },
    Kick(u64),
    KickJob(JobId),
    Touch(JobId),
    StatsJob(JobId),
    StatsTube(TopicName),
    Stats,
    Use(TopicName),
    Watch(TopicName),
    Ignore(TopicName),
    ListTubesWatched,
    ListTubeUsed,
    ListTubes,
    Quit,
    /// `tube` is `None` if the name is invalid.
    PauseTube {
        tube: Option<TopicName>,
        pause_s: u32,
    },
}

/// The line of a put; its body follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PutLine {
    pub(super) priority: u32,
    pub(super) delay_s: u32,
    pub(super) ttr_s: u32,
    pub(super) bytes: u32,
    /// Something follows the last number.
    pub(super) has_more: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ParseError {
    Format,
    Unknown,
}

/// Parses a line, without its end.
pub(super) fn parse(line: &[u8]) -> Result<LineCommand, ParseError> {
    // Puts are tried first because most lines are puts.
    if let Some(rest) = line.strip_prefix(b"put ") {
        return if rest.contains(&0) { Err(ParseError::Format) } else { put(rest) };
    }
    if line.contains(&0) {
        return Err(ParseError::Format);
    }
    let (word, rest) = WORDS
        .iter()
        .find_map(|(begin, word)| Some((word, line.strip_prefix(begin.as_bytes())?)))
        .ok_or(ParseError::Unknown)?;
    arguments(*word, rest).ok_or(ParseError::Format)
}

#[derive(Clone, Copy)]
enum Word {
    Peek,
    PeekReady,
    PeekDelayed,
    PeekBuried,
    ReserveWithTimeout,
    ReserveJob,
    Reserve,
    Delete,
    Release,
    Bury,
    Kick,
    KickJob,
    Touch,
    StatsJob,
    StatsTube,
    Stats,
    Use,
    Watch,
    Ignore,
    ListTubesWatched,
    ListTubeUsed,
    ListTubes,
    Quit,
    PauseTube,
}

/// The prefixes of lines. Where one is a prefix of another, the longer one comes first; a space at
/// the end means that the word alone is no command.
const WORDS: [(&str, Word); 24] = [
    ("peek ", Word::Peek),
    ("peek-ready", Word::PeekReady),
    ("peek-delayed", Word::PeekDelayed),
    ("peek-buried", Word::PeekBuried),
    ("reserve-with-timeout ", Word::ReserveWithTimeout),
    ("reserve-job ", Word::ReserveJob),
    ("reserve", Word::Reserve),
    ("delete ", Word::Delete),
    ("release ", Word::Release),
    ("bury ", Word::Bury),
    ("kick ", Word::Kick),
    ("kick-job ", Word::KickJob),
    ("touch ", Word::Touch),
    ("stats-job ", Word::StatsJob),
    ("stats-tube ", Word::StatsTube),
    ("stats", Word::Stats),
    ("use ", Word::Use),
    ("watch ", Word::Watch),
    ("ignore ", Word::Ignore),
    ("list-tubes-watched", Word::ListTubesWatched),
    ("list-tube-used", Word::ListTubeUsed),
    ("list-tubes", Word::ListTubes),
    ("quit", Word::Quit),
    ("pause-tube", Word::PauseTube),
];

fn arguments(word: Word, rest: &[u8]) -> Option<LineCommand> {
    let alone = |ask: LineCommand| rest.is_empty().then_some(ask);
    let id = || only_u64(rest).map(JobId);
    match word {
        Word::Peek => id().map(LineCommand::Peek),
        Word::PeekReady => alone(LineCommand::PeekNext(State::Ready)),
        Word::PeekDelayed => alone(LineCommand::PeekNext(State::Delayed)),
        Word::PeekBuried => alone(LineCommand::PeekNext(State::Dead)),
        Word::ReserveWithTimeout => wait(rest),
        Word::ReserveJob => id().map(LineCommand::ReserveJob),
        Word::Reserve => alone(LineCommand::Reserve(None)),
        Word::Delete => id().map(LineCommand::Delete),
        Word::Release => release(rest),
        Word::Bury => bury(rest),
        Word::Kick => loose_u64(rest).map(LineCommand::Kick),
        Word::KickJob => id().map(LineCommand::KickJob),
        Word::Touch => id().map(LineCommand::Touch),
        Word::StatsJob => id().map(LineCommand::StatsJob),
        Word::StatsTube => tube(rest).map(LineCommand::StatsTube),
        Word::Stats => alone(LineCommand::Stats),
        Word::Use => tube(rest).map(LineCommand::Use),
        Word::Watch => tube(rest).map(LineCommand::Watch),
        Word::Ignore => tube(rest).map(LineCommand::Ignore),
        Word::ListTubesWatched => alone(LineCommand::ListTubesWatched),
        Word::ListTubeUsed => alone(LineCommand::ListTubeUsed),
        Word::ListTubes => alone(LineCommand::ListTubes),
        // The original ignores what follows.
        Word::Quit => Some(LineCommand::Quit),
        Word::PauseTube => pause_tube(rest),
    }
}

fn put(mut rest: &[u8]) -> Result<LineCommand, ParseError> {
    let mut number = || take_u32(&mut rest).ok_or(ParseError::Format);
    let (priority, delay_s, ttr_s, bytes) = (number()?, number()?, number()?, number()?);
    Ok(LineCommand::Put(PutLine { priority, delay_s, ttr_s, bytes, has_more: !rest.is_empty() }))
}

/// The longest wait is that of 31 bits; the rest of the line is ignored.
fn wait(mut rest: &[u8]) -> Option<LineCommand> {
    let seconds = take_u32(&mut rest)?;
    (seconds <= i32::MAX.unsigned_abs()).then_some(LineCommand::Reserve(Some(seconds)))
}

fn release(mut rest: &[u8]) -> Option<LineCommand> {
    let id = JobId(take_u64(&mut rest)?);
    let priority = take_u32(&mut rest)?;
    let delay_s = take_u32(&mut rest)?;
    rest.is_empty().then_some(LineCommand::Release { id, priority, delay_s })
}

fn bury(mut rest: &[u8]) -> Option<LineCommand> {
    let id = JobId(take_u64(&mut rest)?);
    let priority = take_u32(&mut rest)?;
    rest.is_empty().then_some(LineCommand::Bury { id, priority })
}

/// The number is checked before the name, as the original does.
fn pause_tube(rest: &[u8]) -> Option<LineCommand> {
    let blank = rest.iter().take_while(|&&byte| byte == b' ').count();
    let rest = &rest[blank..];
    let length = rest.iter().take_while(|&&byte| is_tube_byte(byte)).count();
    let (name, mut rest) = rest.split_at(length);
    let pause_s = take_u32(&mut rest)?;
    rest.is_empty().then(|| LineCommand::PauseTube { tube: tube(name), pause_s })
}

/// Names of tubes are names of topics without `:`.
pub(super) fn is_tube_name(name: &str) -> bool {
    !name.contains(':')
}

fn is_tube_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-+/;.$_()".contains(&byte)
}

fn tube(name: &[u8]) -> Option<TopicName> {
    let name = std::str::from_utf8(name).ok()?;
    if is_tube_name(name) { TopicName::new(name).ok() } else { None }
}

#[cfg(test)]
mod tests;
