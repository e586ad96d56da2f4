//! Two connections that hear the same.

use crate::client::Client;
use crate::ids::{Ids, Side};
use crate::script::Script;
use crate::server::Server;

/// Both servers.
pub(crate) struct Servers {
    pub(crate) ours: Server,
    pub(crate) original: Server,
}

/// A client of both.
pub(crate) struct Pair {
    ours: Client,
    original: Client,
}

/// The replies of both, in order.
#[derive(Debug)]
pub(crate) struct Replies {
    pub(crate) ours: Vec<Vec<u8>>,
    pub(crate) original: Vec<Vec<u8>>,
}

impl Pair {
    pub(crate) fn connect(servers: &Servers) -> Pair {
        Pair {
            ours: Client::connect(servers.ours.addr),
            original: Client::connect(servers.original.addr),
        }
    }

    /// Sends a part of what there is for each side.
    pub(crate) fn send(&mut self, ours: &[u8], original: &[u8]) -> Result<(), String> {
        self.original.send(original).map_err(|why| format!("original: {why}"))?;
        self.ours.send(ours).map_err(|why| format!("ours: {why}"))
    }

    pub(crate) fn send_script(&mut self, script: &Script, ids: &Ids) -> Result<(), String> {
        self.send(&script.bytes(ids, Side::Ours), &script.bytes(ids, Side::Original))
    }

    /// One reply of both.
    pub(crate) fn reply(&mut self) -> Result<Replies, String> {
        let original = self.original.reply().map_err(|why| format!("original: {why}"))?;
        let ours = self.ours.reply();
        let ours = ours.map_err(|why| {
            let original = original.escape_ascii();
            format!("ours: {why}; the original says {original}")
        })?;
        Ok(Replies { ours: vec![ours], original: vec![original] })
    }

    /// All replies up to the one that begins so, for each side.
    pub(crate) fn replies_to(&mut self, ours: &[u8], original: &[u8]) -> Result<Replies, String> {
        let original = until(&mut self.original, original);
        let ours = until(&mut self.ours, ours);
        match (ours, original) {
            (Ok(ours), Ok(original)) => Ok(Replies { ours, original }),
            (ours, original) => Err(format!("ours: {ours:?}\noriginal: {original:?}")),
        }
    }

    /// The last replies of both before they close.
    pub(crate) fn rest(self) -> Result<Replies, String> {
        let original = self.original.rest().map_err(|why| format!("original: {why}"))?;
        let ours = self.ours.rest().map_err(|why| format!("ours: {why}"))?;
        Ok(Replies { ours: vec![ours], original: vec![original] })
    }

    pub(crate) fn leave(self) {
        self.original.leave();
        self.ours.leave();
    }
}

fn until(client: &mut Client, last: &[u8]) -> Result<Vec<Vec<u8>>, String> {
    let mut replies = Vec::new();
    loop {
        let reply = client.reply().map_err(|why| format!("{why} behind {}", shown(&replies)))?;
        if reply.starts_with(last) {
            return Ok(replies);
        }
        replies.push(reply);
    }
}

/// Replies in one line.
pub(crate) fn shown(replies: &[Vec<u8>]) -> String {
    let shown = replies.iter().map(|reply| reply.escape_ascii().to_string());
    shown.collect::<Vec<_>>().join(" | ")
}
