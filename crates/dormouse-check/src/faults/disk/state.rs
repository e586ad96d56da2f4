//! The disk's content and its directory.

use std::collections::BTreeMap;
use std::io;

use super::fault::{FailKind, Faults};
use super::node::Node;

pub(super) type NodeNo = u64;
pub(super) type Names = BTreeMap<String, NodeNo>;

/// A change of the directory that no `sync_dir` has covered.
#[derive(Clone, Debug)]
pub(super) enum DirOp {
    Create(String, NodeNo),
    Rename(String, String),
    Remove(String),
}

#[derive(Clone, Debug)]
pub(super) struct State {
    pub(super) boot: u64,
    pub(super) calls: u64,
    pub(super) last_call: String,
    pub(super) faults: Faults,
    pub(super) free_bytes: u64,
    pub(super) names: Names,
    pub(super) durable_names: Names,
    pub(super) pending_ops: Vec<DirOp>,
    pub(super) nodes: BTreeMap<NodeNo, Node>,
    next_node: NodeNo,
}

impl Default for State {
    fn default() -> State {
        State {
            boot: 0,
            calls: 0,
            last_call: String::new(),
            faults: Faults::default(),
            free_bytes: 1 << 50,
            names: Names::new(),
            durable_names: Names::new(),
            pending_ops: Vec::new(),
            nodes: BTreeMap::new(),
            next_node: 1,
        }
    }
}

impl State {
    /// Refuses handles of before the last crash, and everything while the power is off.
    pub(super) fn check_alive(&self, boot: u64) -> io::Result<()> {
        if boot != self.boot {
            return Err(io::Error::other("this handle is of before the crash"));
        }
        self.faults.check_power()
    }

    pub(super) fn find(&self, name: &str) -> io::Result<NodeNo> {
        self.names.get(name).copied().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    pub(super) fn node(&self, node: NodeNo) -> io::Result<&Node> {
        self.nodes.get(&node).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    pub(super) fn node_named(&mut self, name: &str) -> Option<&mut Node> {
        let node = self.names.get(name)?;
        self.nodes.get_mut(node)
    }

    pub(super) fn create(&mut self, name: &str) -> io::Result<NodeNo> {
        self.call("create", name)?;
        if self.names.contains_key(name) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let node = self.add_node(name);
        self.run(DirOp::Create(name.to_owned(), node));
        Ok(node)
    }

    pub(super) fn rename(&mut self, from: &str, to: &str) -> io::Result<()> {
        self.call("rename", from)?;
        self.find(from)?;
        self.run(DirOp::Rename(from.to_owned(), to.to_owned()));
        Ok(())
    }

    pub(super) fn remove(&mut self, name: &str) -> io::Result<()> {
        self.call("remove", name)?;
        self.find(name)?;
        self.run(DirOp::Remove(name.to_owned()));
        Ok(())
    }

    pub(super) fn sync_dir(&mut self) -> io::Result<()> {
        self.call("sync_dir", "")?;
        self.durable_names.clone_from(&self.names);
        self.pending_ops.clear();
        self.drop_unused();
        Ok(())
    }

    pub(super) fn write(&mut self, node: NodeNo, offset: usize, data: &[u8]) -> io::Result<()> {
        let name = self.node(node)?.name.clone();
        let failed = self.begin_call("write", &name)?;
        let end = offset + data.len();
        let growth = end.saturating_sub(self.node(node)?.cached.len()) as u64;
        let failed = match failed {
            None if growth > self.free_bytes => Some(FailKind::NoSpace.error()),
            failed => failed,
        };
        // A write that fails may have got as far as the middle.
        let written = if failed.is_some() { &data[..data.len() / 2] } else { data };
        self.free_bytes = self.free_bytes.saturating_sub(growth.min(written.len() as u64));
        let seq = self.calls;
        if let Some(node) = self.nodes.get_mut(&node) {
            node.write(seq, offset, written);
        }
        failed.map_or(Ok(()), Err)
    }

    pub(super) fn sync(&mut self, node: NodeNo) -> io::Result<()> {
        let name = self.node(node)?.name.clone();
        let failed = self.begin_call("sync", &name)?;
        if let Some(node) = self.nodes.get_mut(&node) {
            match failed {
                None => node.sync(),
                // The kernel marks the pages clean: readable, but no later sync writes them.
                Some(_) => node.pending.clear(),
            }
        }
        failed.map_or(Ok(()), Err)
    }

    /// Unwritten data stays; data that a failed sync gave up is no longer readable.
    pub(super) fn forget_cached(&mut self, node: NodeNo) -> io::Result<()> {
        self.node(node)?;
        if let Some(node) = self.nodes.get_mut(&node) {
            node.forget_cached();
        }
        Ok(())
    }

    pub(super) fn put_file(&mut self, name: &str, content: &[u8]) {
        let no = self.add_node(name);
        if let Some(node) = self.nodes.get_mut(&no) {
            node.cached = content.to_vec();
            node.durable = content.to_vec();
        }
        self.names.insert(name.to_owned(), no);
        self.durable_names.insert(name.to_owned(), no);
    }

    pub(super) fn opened(&mut self, node: NodeNo) {
        if let Some(node) = self.nodes.get_mut(&node) {
            node.handles += 1;
        }
    }

    pub(super) fn closed(&mut self, boot: u64, node: NodeNo) {
        if boot == self.boot
            && let Some(node) = self.nodes.get_mut(&node)
        {
            node.handles = node.handles.saturating_sub(1);
        }
    }

    /// Lets files go that nobody can reach any more, now or after a crash.
    pub(super) fn drop_unused(&mut self) {
        let created = self.pending_ops.iter().filter_map(|op| match op {
            DirOp::Create(_, node) => Some(*node),
            _ => None,
        });
        let mut used: Vec<NodeNo> = created.collect();
        used.extend(self.names.values());
        used.extend(self.durable_names.values());
        used.sort_unstable();
        let mut freed = 0;
        self.nodes.retain(|no, node| {
            let keep = node.handles > 0 || used.binary_search(no).is_ok();
            freed += if keep { 0 } else { node.cached.len() as u64 };
            keep
        });
        self.free_bytes = self.free_bytes.saturating_add(freed);
    }

    fn run(&mut self, op: DirOp) {
        apply(&mut self.names, &op);
        self.pending_ops.push(op);
    }

    fn add_node(&mut self, name: &str) -> NodeNo {
        let no = self.next_node;
        self.next_node += 1;
        self.nodes.insert(no, Node { name: name.to_owned(), ..Node::default() });
        no
    }

    /// Counts a call that has no effect at all if it fails.
    fn call(&mut self, what: &str, name: &str) -> io::Result<()> {
        self.begin_call(what, name)?.map_or(Ok(()), Err)
    }

    /// Counts a call; the inner error is for the caller to give after the call's partial effect.
    fn begin_call(&mut self, what: &str, name: &str) -> io::Result<Option<io::Error>> {
        self.calls += 1;
        self.last_call = format!("{what} {name}");
        self.faults.at_call(self.calls)
    }
}

/// Changes a directory; an operation on a name that is not there changes nothing.
pub(super) fn apply(names: &mut Names, op: &DirOp) {
    match op {
        DirOp::Create(name, node) => {
            names.insert(name.clone(), *node);
        }
        DirOp::Rename(from, to) => {
            if let Some(node) = names.remove(from) {
                names.insert(to.clone(), node);
            }
        }
        DirOp::Remove(name) => {
            names.remove(name);
        }
    }
}
