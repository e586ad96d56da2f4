//! Encodes the arguments of the script verb `cancel` and decodes its reply.

use bytes::Bytes;
use dormouse_core::error::Error;
use dormouse_core::op::{Cancel, ChangeReply, Target};
use dormouse_core::refusal::cancel_leased;

use super::target;
use crate::wire::{Op, Reader};

pub(crate) fn op<'a>(cancels: impl Iterator<Item = &'a Cancel>) -> Op {
    let unless_leased = |given| Bytes::from_static(if given { b"1" } else { b"" });
    let args =
        cancels.flat_map(|item| [target::arg(&item.target), unless_leased(item.unless_leased)]);
    Op::new("cancel", args.collect())
}

pub(crate) fn read(
    reply: &mut Reader<'_>,
    target: &Target,
) -> Result<Result<ChangeReply, Error>, Error> {
    target::change_reply(reply, target, |id, _| cancel_leased(id))
}
