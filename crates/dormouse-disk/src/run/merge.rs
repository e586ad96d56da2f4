//! Merging neighbouring runs: their unread entries become one run.

use std::sync::Arc;

use dormouse_core::job::JobId;
use dormouse_core::place::{Class, Place};
use dormouse_core::topic::TopicNo;

use crate::damage::Damage;
use crate::pace;

use super::page::Cursor;
use super::reader::Run;
use super::record::{LaneRecord, lane_of};
use super::stream::BlockStream;
use super::writer::RunWriter;

/// Entries between two looks at whether to go on: well below a millisecond.
const ENTRIES_PER_LOOK: u32 = 256;

/// Tells for topic, class and the age of a run from which (due_at, id) on the lane is unread there;
/// `None` if all of it is consumed.
pub type UnreadFrom<'a> = dyn Fn(TopicNo, Class, u64) -> Option<(u64, JobId)> + 'a;

/// Copies the unread entries of `inputs`, oldest first, to `writer`. `false` = `go_on` stopped it.
///
/// `unread_from` is asked once per lane and run, lanes ascending within a run; blocks of consumed
/// lanes are not read. Of equal places the newest input's entry stays with the sum of the weights;
/// a tombstone goes only if that sum is 0, because otherwise an older run, which is not merged, has
/// the job it departs from.
pub fn merge(
    inputs: &[Arc<Run>],
    unread_from: &UnreadFrom<'_>,
    writer: &mut RunWriter,
    go_on: &dyn Fn() -> bool,
) -> Result<bool, Damage> {
    let mut inputs: Vec<Input<'_>> = inputs.iter().map(|run| Input::new(run)).collect();
    for input in &mut inputs {
        input.next_lane(unread_from)?;
    }
    let mut until_look = 0;
    // There are a few inputs: looking at every head is no slower than a heap.
    while let Some(place) = inputs.iter().filter_map(|input| input.head).min() {
        if until_look == 0 {
            if !go_on() {
                return Ok(false);
            }
            pace::rest();
            until_look = ENTRIES_PER_LOOK;
        }
        until_look -= 1;
        write(&inputs, place, writer)?;
        for input in inputs.iter_mut().filter(|input| input.head == Some(place)) {
            input.advance(unread_from)?;
        }
    }
    Ok(true)
}

/// Writes the merged entry of a place, unless it is a tombstone that met its job.
fn write(inputs: &[Input<'_>], place: Place, writer: &mut RunWriter) -> Result<(), Damage> {
    let (mut weight, mut payload) = (0_i32, None);
    for input in inputs.iter().filter(|input| input.head == Some(place)) {
        weight = weight.saturating_add(input.weight());
        // The last one is the newest.
        payload = input.payload();
    }
    if payload.is_none() && weight == 0 { Ok(()) } else { writer.push(&place, weight, payload) }
}

/// One run on its way through a merge.
struct Input<'a> {
    run: &'a Run,
    lanes: Cursor<LaneRecord>,
    stream: BlockStream<'a>,
    /// The place of the current entry; `None` at the end.
    head: Option<Place>,
    /// Where the current entry is.
    block_no: u64,
    index: usize,
}

impl<'a> Input<'a> {
    fn new(run: &'a Run) -> Input<'a> {
        let stream = BlockStream::new(run);
        Input { run, lanes: run.lanes.scan(), stream, head: None, block_no: 0, index: 0 }
    }

    /// Goes to the unread entry after the current one.
    fn advance(&mut self, unread_from: &UnreadFrom<'_>) -> Result<(), Damage> {
        let lane = self.head.as_ref().map(lane_of);
        self.index += 1;
        self.head = self.place_or_next_block()?.filter(|place| Some(lane_of(place)) == lane);
        if self.head.is_none() { self.next_lane(unread_from) } else { Ok(()) }
    }

    /// Goes to the first unread entry of the lanes not yet begun.
    fn next_lane(&mut self, unread_from: &UnreadFrom<'_>) -> Result<(), Damage> {
        while let Some(record) = self.lanes.next()? {
            let (topic, class) = record.lane;
            if let Some((due_at, id)) = unread_from(topic, class, self.run.meta.age) {
                self.head = self.seek(&record, &Place { topic, class, due_at, id })?;
                if self.head.is_some() {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Goes to the first entry of a lane that is not below `bound`.
    fn seek(&mut self, record: &LaneRecord, bound: &Place) -> Result<Option<Place>, Damage> {
        let from_start = (bound.due_at, bound.id) == (0, JobId(0));
        let floor = if from_start { None } else { self.run.blocks.floor(bound)? };
        // The floor may be a block before the lane's first, which has nothing of it.
        let first = u64::from(record.first.block);
        self.block_no = floor.map_or(first, |(no, _)| no.max(first));
        self.stream.load(self.block_no)?;
        self.index = self.stream.block().lower_bound(bound);
        let place = self.place_or_next_block()?;
        Ok(place.filter(|place| lane_of(place) == record.lane))
    }

    /// The place of the current entry, or of the next block's first if the block is at its end.
    fn place_or_next_block(&mut self) -> Result<Option<Place>, Damage> {
        if let Some(head) = self.stream.block().heads().get(self.index) {
            return Ok(Some(head.place));
        }
        if !self.stream.load(self.block_no + 1)? {
            return Ok(None);
        }
        self.block_no += 1;
        self.index = 0;
        Ok(self.stream.block().heads().first().map(|head| head.place))
    }

    fn weight(&self) -> i32 {
        self.stream.block().heads().get(self.index).map_or(0, |head| head.weight)
    }

    fn payload(&self) -> Option<&[u8]> {
        let block = self.stream.block();
        block.heads().get(self.index).and_then(|head| block.payload(head))
    }
}
