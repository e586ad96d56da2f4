//! Encodes the arguments of the script verb `cancel` and decodes its reply.

use dormouse_core::op::{Cancel, ChangeReply, Target};
use dormouse_core::refusal::cancel_leased;

use super::{ItemResult, target};
use crate::wire::{Op, Reader, flag};

pub(crate) fn op(cancels: &[Cancel]) -> Op {
    let args = |item: &Cancel| [target::arg(&item.target), flag(item.unless_leased)];
    Op::new("cancel", cancels.iter().flat_map(args).collect())
}

pub(crate) fn read(reply: &mut Reader<'_>, target: &Target) -> ItemResult<ChangeReply> {
    target::change_reply(reply, target, |id, _| cancel_leased(id))
}
