//! get: look at a job.

use dormouse_core::command::{Command, Reply};
use dormouse_core::error::{Code, Error};

use super::{ReplyKind, job, only};
use crate::access::Verb;
use crate::client::unexpected;
use crate::pipeline::Turn;
use crate::resp::args::Args;
use crate::resp::conn::{Conn, PendingReply, check_of};
use crate::resp::encode::Out;

pub(in crate::resp) fn run(
    conn: &mut Conn,
    args: &mut Args<'_>,
    turn: &mut Turn<PendingReply>,
) -> Result<(), Error> {
    let target = conn.target(Verb::Get, &[], args)?;
    args.finish(&["KEY"])?;
    let check = check_of(Verb::Get, &target);
    conn.ask_jobs(turn, 1, Command::Get(vec![target]), check, ReplyKind::View);
    Ok(())
}

/// The job, or nothing if it is not there: who looks does not err.
pub(super) fn write(out: &mut Out<'_>, reply: Reply) -> Result<(), Error> {
    let Reply::Views(views) = reply else { return Err(unexpected(&reply)) };
    match only(views) {
        Ok(view) => job::write_view(out, &view, true),
        Err(error) if error.code == Code::NotFound => out.null(),
        Err(error) => return Err(error),
    }
    Ok(())
}
