//! The records of a batch: one byte of kind, then the fields. Facts have kinds up to 31.

use dormouse_core::fact::Fact;
use dormouse_core::image::{LeaseImage, LockImage, TopicImage};

use super::boot::Boot;
use super::checkpoint::{
    CheckpointHead, FrontierImage, RunUse, TopicForm, decode_lease, decode_lock, decode_topic,
    encode_lease, encode_lock, encode_topic,
};
use crate::codec::{FACT_KIND_MAX, Reader, decode_fact, encode_fact};

pub(super) const BOOT: u8 = 32;
pub(super) const CHECKPOINT: u8 = 33;
const TOPIC: u8 = 34;
const LEASE: u8 = 35;
const LOCK: u8 = 36;
const FRONTIER: u8 = 37;
const CHECKPOINT_END: u8 = 38;
const SEAL: u8 = 39;
const RUN_USE: u8 = 40;
const CLOCK_STEP: u8 = 41;
const SCHEDULED_TOPIC: u8 = 42;
const WHOLE_TOPIC: u8 = 43;

/// One entry of the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// A change.
    Fact(Fact),
    /// A start; only as the first record of a segment.
    Boot(Boot),
    /// A checkpoint begins; only as the first record of a segment. Its pieces follow.
    Checkpoint(CheckpointHead),
    /// A topic that lives.
    Topic(TopicImage),
    /// A job that is leased.
    Lease(LeaseImage),
    /// A lock that is held.
    Lock(LockImage),
    /// Cursors that moved.
    Frontier(FrontierImage),
    /// How much of a run is consumed.
    RunUse(RunUse),
    /// The checkpoint is complete.
    CheckpointEnd,
    /// A clean stop; nothing follows.
    Seal,
    /// Somebody set the wall clock; the batch's header has both clocks since.
    ClockStep,
}

impl Record {
    /// Appends the record.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        if let Record::Fact(fact) = self {
            return encode_fact(fact, out);
        }
        out.push(self.kind());
        match self {
            Record::Boot(boot) => boot.encode(out),
            Record::Checkpoint(head) => head.encode(out),
            Record::Topic(image) => encode_topic(image, out),
            Record::Lease(image) => encode_lease(image, out),
            Record::Lock(image) => encode_lock(image, out),
            Record::Frontier(image) => image.encode(out),
            Record::RunUse(image) => image.encode(out),
            Record::Fact(_) | Record::CheckpointEnd | Record::Seal | Record::ClockStep => {}
        }
    }

    /// Reads one record; `None` if it is malformed or of a kind this version does not know.
    pub(crate) fn decode(reader: &mut Reader<'_>) -> Option<Record> {
        if reader.peek()? <= FACT_KIND_MAX {
            return decode_fact(reader).map(Record::Fact);
        }
        Some(match reader.byte()? {
            BOOT => Record::Boot(Boot::decode(reader)?),
            CHECKPOINT => Record::Checkpoint(CheckpointHead::decode(reader)?),
            TOPIC => Record::Topic(decode_topic(reader, TopicForm::Plain)?),
            SCHEDULED_TOPIC => Record::Topic(decode_topic(reader, TopicForm::Scheduled)?),
            WHOLE_TOPIC => Record::Topic(decode_topic(reader, TopicForm::Whole)?),
            LEASE => Record::Lease(decode_lease(reader)?),
            LOCK => Record::Lock(decode_lock(reader)?),
            FRONTIER => Record::Frontier(FrontierImage::decode(reader)?),
            RUN_USE => Record::RunUse(RunUse::decode(reader)?),
            CHECKPOINT_END => Record::CheckpointEnd,
            SEAL => Record::Seal,
            CLOCK_STEP => Record::ClockStep,
            _ => return None,
        })
    }

    fn kind(&self) -> u8 {
        match self {
            // A fact writes its own kind.
            Record::Fact(_) => 0,
            Record::Boot(_) => BOOT,
            Record::Checkpoint(_) => CHECKPOINT,
            Record::Topic(image) => match TopicForm::of(image) {
                TopicForm::Plain => TOPIC,
                TopicForm::Scheduled => SCHEDULED_TOPIC,
                TopicForm::Whole => WHOLE_TOPIC,
            },
            Record::Lease(_) => LEASE,
            Record::Lock(_) => LOCK,
            Record::Frontier(_) => FRONTIER,
            Record::RunUse(_) => RUN_USE,
            Record::CheckpointEnd => CHECKPOINT_END,
            Record::Seal => SEAL,
            Record::ClockStep => CLOCK_STEP,
        }
    }
}
