//! What reschedule and revive answer.

use dormouse_core::op::ChangeReply;

use crate::resp::encode::Out;

/// Which job it is, in which state it was, when it is due now.
pub(super) fn write(out: &mut Out<'_>, changed: ChangeReply) {
    out.list(3);
    out.digits(changed.id.0);
    out.string(changed.was.as_str().as_bytes());
    out.number(changed.due_at);
}
