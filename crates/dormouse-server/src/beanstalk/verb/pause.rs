//! pause-tube: a tube that exists gives no job for a while.

use std::sync::atomic::Ordering;

use bytes::BytesMut;
use dormouse_core::backend::Answer;
use dormouse_core::command::{Command, Reply};
use dormouse_core::limits::TTL_MS_MAX;
use dormouse_core::op::{PauseTopic, Stats};
use dormouse_core::topic::TopicName;

use super::{PendingReply, ms};
use crate::beanstalk::shared::up;
use crate::beanstalk::{Beanstalk, reply};
use crate::client::unexpected;
use crate::pipeline::{Step, Turn};

impl Beanstalk {
    pub(super) fn pause_tube(
        &mut self,
        tube: Option<TopicName>,
        pause_s: u32,
        turn: &mut Turn<PendingReply>,
    ) {
        let Some(tube) = tube else {
            return turn.say().extend_from_slice(reply::BAD_FORMAT);
        };
        if self.shared.tubes.is_tied(&tube) {
            return turn.ask_last(pause(tube, pause_s));
        }
        // It exists only if it has jobs.
        let stats = Command::Stats(Stats { topic: Some(tube.clone()) });
        turn.ask_last(Step::new(stats, PendingReply::PauseSeen(tube, pause_s)));
    }

    pub(super) fn pause_seen(
        tube: TopicName,
        pause_s: u32,
        answer: Answer,
        out: &mut BytesMut,
    ) -> Option<Step<PendingReply>> {
        match answer {
            Ok(Reply::Stats(stats)) => {
                let counts = &stats.counts;
                if counts.waiting + counts.leased + counts.dead > 0 {
                    return Some(pause(tube, pause_s));
                }
                out.extend_from_slice(reply::NOT_FOUND);
            }
            Ok(other) => reply::error(&unexpected(&other), out),
            Err(error) => reply::error(&error, out),
        }
        None
    }

    pub(super) fn paused(
        &mut self,
        tube: &TopicName,
        pause_s: u32,
        answer: Answer,
        out: &mut BytesMut,
    ) {
        match answer {
            Ok(Reply::Done) => {
                if let Some(tube) = self.shared.tubes.find(tube) {
                    up(&tube.pauses);
                    tube.pause_s.store(pause_s.into(), Ordering::Relaxed);
                }
                out.extend_from_slice(reply::PAUSED);
            }
            Ok(other) => reply::error(&unexpected(&other), out),
            Err(error) => reply::error(&error, out),
        }
    }
}

/// No time at all ends a pause.
fn pause(tube: TopicName, pause_s: u32) -> Step<PendingReply> {
    let command = match pause_s {
        0 => Command::Resume(tube.clone()),
        _ => {
            let for_ms = Some(ms(pause_s, TTL_MS_MAX));
            Command::Pause(PauseTopic { topic: tube.clone(), for_ms })
        }
    };
    Step::new(command, PendingReply::Paused(tube, pause_s))
}
