//! Takes the expected variant out of a reply.

use dormouse_core::command::Reply;
use dormouse_core::error::Error;
use dormouse_core::op::*;

/// Per item, as batches answer.
pub type Items<T> = Vec<Result<T, Error>>;

macro_rules! readers {
    ($($name:ident: $variant:ident => $type:ty;)*) => {$(
        pub(crate) fn $name(reply: Reply) -> Result<$type, Error> {
            match reply {
                Reply::$variant(value) => Ok(value),
                _ => Err(stray()),
            }
        }
    )*};
}

readers! {
    puts: Put => Items<PutReply>;
    jobs: Jobs => Vec<LeasedJob>;
    ends: Ended => Items<Ended>;
    extensions: Extended => Items<Extended>;
    changes: Changed => Items<Changed>;
    count: Count => u64;
    views: Views => Items<JobView>;
    peeked: View => Option<JobView>;
    page: Page => Page;
    topics: Topics => TopicsPage;
    stats: Stats => TopicStats;
    forecast: Forecast => Vec<u64>;
    session: Session => SessionId;
    lock: Lock => LockReply;
    unlocked: Unlocked => bool;
}

macro_rules! singles {
    ($($name:ident: $batch:ident => $type:ty;)*) => {$(
        pub(crate) fn $name(reply: Reply) -> Result<$type, Error> {
            $batch(reply)?.pop().unwrap_or_else(|| Err(stray()))
        }
    )*};
}

// A batch of one answers with one.
singles! {
    put: puts => PutReply;
    end: ends => Ended;
    extension: extensions => Extended;
    change: changes => Changed;
    view: views => JobView;
}

pub(crate) fn done(reply: Reply) -> Result<(), Error> {
    match reply {
        Reply::Done => Ok(()),
        _ => Err(stray()),
    }
}

/// The backend broke its promise; better said than guessed.
pub(crate) fn stray() -> Error {
    Error::unavailable("the backend answered something else than was asked; it has a fault")
}
