//! The reply to reschedule and revive.

use dormouse_core::op::ChangeReply;

use crate::resp::encode::Out;

/// The id of the job, its previous state, its new due time.
pub(super) fn write(out: &mut Out<'_>, changed: ChangeReply) {
    out.list(3);
    out.digits(changed.id.0);
    out.string(changed.was.as_str().as_bytes());
    out.number(changed.due_at);
}
