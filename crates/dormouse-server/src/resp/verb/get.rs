//! get: look at a job.

use dormouse_core::error::{Code, Error};
use dormouse_core::op::{Get, JobView};

use super::{ReplyKind, job};
use crate::access::Verb;
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
    conn.send_for_jobs(turn, 1, Get(vec![target]), check, ReplyKind::View);
    Ok(())
}

/// The job, or null if it does not exist: that is no error for a reader.
pub(super) fn write(out: &mut Out<'_>, view: Result<JobView, Error>) -> Result<(), Error> {
    match view {
        Ok(view) => job::write_view(out, &view, true),
        Err(error) if error.code == Code::NotFound => out.null(),
        Err(error) => return Err(error),
    }
    Ok(())
}
