//! Encodes the arguments of the script verb `peek` and decodes its reply.

use dormouse_core::error::Error;
use dormouse_core::job::State;
use dormouse_core::op::JobView;
use dormouse_core::topic::TopicName;

use super::get::read_view;
use super::target::state_code;
use crate::wire::{Op, Reader, Records, Writer};

pub(crate) fn op(state: State) -> Op {
    Op::new("peek", vec![Writer::default().u8(state_code(state)).take()])
}

pub(crate) fn read(
    reply: &mut Reader<'_>,
    records: &mut Records,
    topic: &TopicName,
) -> Result<Option<JobView>, Error> {
    read_view(reply, records, topic)?.transpose()
}
