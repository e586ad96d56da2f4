//! The pieces of a checkpoint as bytes.

use bytes::Bytes;
use dormouse_core::image::{Counts, LeaseImage, LockImage, MachineImage, TopicImage};
use dormouse_core::job::JobId;
use dormouse_core::place::Class;
use dormouse_core::topic::{TopicName, TopicNo};

use crate::codec::{
    Reader, decode_pause, decode_payload, decode_settings, encode_pause, encode_payload,
    encode_settings, put_bytes, put_sized, put_varint,
};

/// The head of a checkpoint: the numbers that exist once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CheckpointHead {
    /// The machine's numbers.
    pub machine: MachineImage,
    /// The operating system's boot, by which CLOCK_BOOTTIME is comparable or not.
    pub boot_id: [u8; 16],
    /// CLOCK_BOOTTIME at the checkpoint.
    pub boottime_ms: u64,
    /// The steady clock at the checkpoint.
    pub steady_ms: u64,
    /// The wall clock at the checkpoint.
    pub wall_ms: u64,
    /// The number, and age, of the next run.
    pub next_run: u64,
}

/// How far the sources of one class are consumed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrontierImage {
    /// The topic.
    pub topic: TopicNo,
    /// The class; `None` = every class of the topic, which was purged.
    pub class: Option<Class>,
    /// Sources up to this age have everything before (due_at, id) consumed.
    pub steps: Vec<(u64, u64, JobId)>,
}

impl CheckpointHead {
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        put_varint(self.machine.next_id, out);
        put_varint(u64::from(self.machine.next_topic), out);
        put_varint(u64::from(self.machine.epoch), out);
        encode_counts(&self.machine.gone, out);
        out.extend_from_slice(&self.boot_id);
        put_varint(self.boottime_ms, out);
        put_varint(self.steady_ms, out);
        put_varint(self.wall_ms, out);
        put_varint(self.next_run, out);
    }

    pub(super) fn decode(reader: &mut Reader<'_>) -> Option<CheckpointHead> {
        Some(CheckpointHead {
            machine: MachineImage {
                next_id: reader.varint()?,
                next_topic: reader.varint_u32()?,
                epoch: reader.varint_u32()?,
                gone: decode_counts(reader)?,
            },
            boot_id: reader.array()?,
            boottime_ms: reader.varint()?,
            steady_ms: reader.varint()?,
            wall_ms: reader.varint()?,
            next_run: reader.varint()?,
        })
    }
}

impl FrontierImage {
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        put_varint(u64::from(self.topic.0), out);
        // Zero is free for "every class": a class is written as its number plus one.
        put_varint(self.class.map_or(0, |class| class.to_u64() + 1), out);
        put_varint(self.steps.len() as u64, out);
        for (age, due_at, id) in &self.steps {
            put_varint(*age, out);
            put_varint(*due_at, out);
            put_varint(id.0, out);
        }
    }

    pub(super) fn decode(reader: &mut Reader<'_>) -> Option<FrontierImage> {
        let topic = TopicNo(reader.varint_u32()?);
        let class = match reader.varint()? {
            0 => None,
            number => Some(Class::from_u64(number - 1)?),
        };
        // A step takes at least three bytes in the file.
        let count = reader.count(3)?;
        let mut steps = Vec::with_capacity(count);
        for _ in 0..count {
            steps.push((reader.varint()?, reader.varint()?, JobId(reader.varint()?)));
        }
        Some(FrontierImage { topic, class, steps })
    }
}

/// How much of a run, or run-to-be, is consumed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunUse {
    /// The run's number.
    pub no: u64,
    /// Entries consumed, at least.
    pub consumed: u64,
}

impl RunUse {
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        put_varint(self.no, out);
        put_varint(self.consumed, out);
    }

    pub(super) fn decode(reader: &mut Reader<'_>) -> Option<RunUse> {
        Some(RunUse { no: reader.varint()?, consumed: reader.varint()? })
    }
}

pub(super) fn encode_topic(image: &TopicImage, out: &mut Vec<u8>) {
    put_varint(u64::from(image.topic.0), out);
    put_bytes(image.name.as_str().as_bytes(), out);
    encode_settings(&image.settings, out);
    encode_pause(image.pause, out);
    put_varint(image.holds_until, out);
    encode_counts(&image.counts, out);
    let form = TopicForm::of(image);
    if form != TopicForm::Plain {
        put_varint(image.schedules, out);
    }
    if form == TopicForm::Whole {
        put_varint(image.counts.done, out);
        out.push(u8::from(image.has_deadlines) | u8::from(image.has_parked) << 1);
    }
}

/// Which fields follow those that every topic has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TopicForm {
    /// None.
    Plain,
    /// Its schedules.
    Scheduled,
    /// Its schedules, done jobs, and whether it has deadlines.
    Whole,
}

impl TopicForm {
    pub(super) fn of(image: &TopicImage) -> TopicForm {
        match image {
            image if image.counts.done > 0 => TopicForm::Whole,
            image if image.has_deadlines || image.has_parked => TopicForm::Whole,
            image if image.schedules > 0 => TopicForm::Scheduled,
            _ => TopicForm::Plain,
        }
    }
}

/// Reads a topic of this form.
pub(super) fn decode_topic(reader: &mut Reader<'_>, form: TopicForm) -> Option<TopicImage> {
    let mut image = TopicImage {
        topic: TopicNo(reader.varint_u32()?),
        name: TopicName::new(reader.text()?).ok()?,
        settings: decode_settings(reader)?,
        pause: decode_pause(reader)?,
        holds_until: reader.varint()?,
        counts: decode_counts(reader)?,
        schedules: 0,
        has_deadlines: false,
        has_parked: false,
    };
    if form != TopicForm::Plain {
        image.schedules = reader.varint()?;
    }
    if form == TopicForm::Whole {
        image.counts.done = reader.varint()?;
        (image.has_deadlines, image.has_parked) = decode_hints(reader)?;
    }
    Some(image)
}

fn decode_bool(reader: &mut Reader<'_>) -> Option<bool> {
    match reader.byte()? {
        0 => Some(false),
        1 => Some(true),
        _ => None,
    }
}

/// Whether there are deadlines, and whether jobs may be parked.
fn decode_hints(reader: &mut Reader<'_>) -> Option<(bool, bool)> {
    let hints = reader.byte()?;
    (hints <= 3).then_some((hints & 1 != 0, hints & 2 != 0))
}

/// Appends the counts that every topic has; done jobs are not among them.
fn encode_counts(counts: &Counts, out: &mut Vec<u8>) {
    let numbers = [
        counts.waiting,
        counts.leased,
        counts.dead,
        counts.bytes,
        counts.puts,
        counts.reserves,
        counts.acks,
        counts.nacks,
        counts.expiries,
        counts.releases,
        counts.kills,
        counts.cancels,
    ];
    numbers.into_iter().for_each(|number| put_varint(number, out));
}

fn decode_counts(reader: &mut Reader<'_>) -> Option<Counts> {
    Some(Counts {
        waiting: reader.varint()?,
        leased: reader.varint()?,
        dead: reader.varint()?,
        done: 0,
        bytes: reader.varint()?,
        puts: reader.varint()?,
        reserves: reader.varint()?,
        acks: reader.varint()?,
        nacks: reader.varint()?,
        expiries: reader.varint()?,
        releases: reader.varint()?,
        kills: reader.varint()?,
        cancels: reader.varint()?,
    })
}

pub(super) fn encode_lease(image: &LeaseImage, out: &mut Vec<u8>) {
    put_varint(u64::from(image.topic.0), out);
    put_varint(image.ttr_ms, out);
    out.push(u8::from(image.session));
    put_varint(image.job.id.0, out);
    put_sized(out, |out| encode_payload(&image.job, out));
}

pub(super) fn decode_lease(reader: &mut Reader<'_>) -> Option<LeaseImage> {
    let topic = TopicNo(reader.varint_u32()?);
    let ttr_ms = reader.varint()?;
    let session = decode_bool(reader)?;
    let id = JobId(reader.varint()?);
    let job = decode_payload(id, reader.bytes()?)?;
    Some(LeaseImage { topic, job, ttr_ms, session })
}

pub(super) fn encode_lock(image: &LockImage, out: &mut Vec<u8>) {
    put_bytes(&image.name, out);
    put_bytes(&image.owner, out);
    put_varint(image.fence, out);
    put_varint(u64::from(image.depth), out);
    put_varint(image.ttl_ms, out);
}

pub(super) fn decode_lock(reader: &mut Reader<'_>) -> Option<LockImage> {
    Some(LockImage {
        name: Bytes::copy_from_slice(reader.bytes()?),
        owner: Bytes::copy_from_slice(reader.bytes()?),
        fence: reader.varint()?,
        depth: reader.varint_u32()?,
        ttl_ms: reader.varint()?,
    })
}
