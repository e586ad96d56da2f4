//! A cluster as one of its nodes sees it: CLUSTER NODES.

/// A node, as another node knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) id: String,
    pub(crate) is_primary: bool,
    /// The primary that it copies.
    pub(crate) copies: Option<String>,
    /// First and last of each range.
    slots: Vec<(u16, u16)>,
    /// Neither failed, nor suspected of it, nor just met.
    pub(crate) is_well: bool,
}

/// All nodes that a node knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct View(pub(crate) Vec<Seen>);

impl View {
    /// Reads lines of `id address flags primary ping pong epoch link slot...`.
    pub(crate) fn parse(text: &str) -> View {
        View(text.lines().filter_map(seen).collect())
    }

    /// The owner of the slot.
    pub(crate) fn owner(&self, slot: u16) -> Option<&str> {
        let has = |node: &&Seen| node.slots.iter().any(|(a, b)| (*a..=*b).contains(&slot));
        self.0.iter().find(has).map(|node| node.id.as_str())
    }

    pub(crate) fn get(&self, id: &str) -> Option<&Seen> {
        self.0.iter().find(|node| node.id == id)
    }
}

fn seen(line: &str) -> Option<Seen> {
    let words: Vec<&str> = line.split(' ').collect();
    let [id, _address, flags, primary, _ping, _pong, _epoch, _link, slots @ ..] = words.as_slice()
    else {
        return None;
    };
    let flags: Vec<&str> = flags.split(',').collect();
    let ill = ["fail", "fail?", "handshake", "noaddr"];
    Some(Seen {
        id: (*id).to_owned(),
        is_primary: flags.contains(&"master"),
        copies: (*primary != "-").then(|| (*primary).to_owned()),
        slots: slots.iter().filter_map(|range| slot_range(range)).collect(),
        is_well: !flags.iter().any(|flag| ill.contains(flag)),
    })
}

/// `5` or `0-5461`; slots on the move are in brackets and belong to whom they leave.
fn slot_range(text: &str) -> Option<(u16, u16)> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    Some((first.parse().ok()?, last.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
aa 127.0.0.1:1@10001 myself,master - 0 0 1 connected 0-10 12 [12->-bb] [99-<-bb]
bb 127.0.0.1:2@10002,host master,fail - 0 0 2 connected 13-20
cc 127.0.0.1:3@10003 slave aa 0 0 1 connected
";

    #[test]
    fn slots_and_roles_are_read() {
        let view = View::parse(TEXT);
        let owners = [0, 10, 11, 12, 20, 99].map(|slot| view.owner(slot));
        assert_eq!(owners, [Some("aa"), Some("aa"), None, Some("aa"), Some("bb"), None]);
        assert!(!view.get("bb").unwrap().is_well);
        let copy = view.get("cc").unwrap();
        assert!(!copy.is_primary && copy.is_well);
        assert_eq!(copy.copies.as_deref(), Some("aa"));
    }
}
