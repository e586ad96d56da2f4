//! pause-tube: stops reserves from an existing tube for a while.

use std::sync::atomic::Ordering;

use bytes::BytesMut;
use dormouse_core::command::Command;
use dormouse_core::error::Error;
use dormouse_core::limits::TTL_MS_MAX;
use dormouse_core::op::{PauseTopic, Stats, TopicStats};
use dormouse_core::topic::TopicName;

use super::{PendingReply, ms};
use crate::beanstalk::shared::up;
use crate::beanstalk::{Beanstalk, reply};
use crate::pipeline::{Next, Request, Turn};

impl Beanstalk {
    pub(super) fn pause_tube(
        &mut self,
        tube: Option<TopicName>,
        pause_s: u32,
        turn: &mut Turn<PendingReply>,
    ) {
        let Some(tube) = tube else {
            return turn.reply_now().extend_from_slice(reply::BAD_FORMAT);
        };
        if self.shared.tubes.is_attached(&tube) {
            return turn.send_last(pause(tube, pause_s));
        }
        // Nobody uses or watches it, so it exists only if it has jobs.
        let stats = Stats { topic: Some(tube.clone()) };
        turn.send_last(Request::new(stats, PendingReply::PauseSeen(tube, pause_s)));
    }

    pub(super) fn pause_seen(
        tube: TopicName,
        pause_s: u32,
        stats: Result<TopicStats, Error>,
        out: &mut BytesMut,
    ) -> Next<PendingReply> {
        match stats {
            Ok(stats) => {
                let counts = &stats.counts;
                if counts.waiting + counts.leased + counts.dead > 0 {
                    return Some(pause(tube, pause_s));
                }
                out.extend_from_slice(reply::NOT_FOUND);
            }
            Err(error) => reply::error(&error, out),
        }
        None
    }

    pub(super) fn paused(
        &mut self,
        tube: &TopicName,
        pause_s: u32,
        paused: Result<(), Error>,
        out: &mut BytesMut,
    ) {
        match paused {
            Ok(()) => {
                if let Some(tube) = self.shared.tubes.find(tube) {
                    up(&tube.pauses);
                    tube.pause_s.store(pause_s.into(), Ordering::Relaxed);
                }
                out.extend_from_slice(reply::PAUSED);
            }
            Err(error) => reply::error(&error, out),
        }
    }
}

/// A pause of zero seconds ends the pause.
fn pause(tube: TopicName, pause_s: u32) -> Request<PendingReply> {
    let command = match pause_s {
        0 => Command::Resume(tube.clone()),
        _ => {
            let for_ms = Some(ms(pause_s, TTL_MS_MAX));
            Command::Pause(PauseTopic { topic: tube.clone(), for_ms })
        }
    };
    Request::new(command, PendingReply::Paused(tube, pause_s))
}
