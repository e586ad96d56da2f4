//! kick: make delayed jobs ready.

use dormouse_core::error::Error;

use super::many::Many;
use crate::pipeline::Turn;
use crate::resp::args::Args;
use crate::resp::conn::{Conn, PendingReply};

pub(in crate::resp) fn run(
    conn: &mut Conn,
    args: &mut Args<'_>,
    turn: &mut Turn<PendingReply>,
) -> Result<(), Error> {
    Many::kick(conn, args, turn)
}
