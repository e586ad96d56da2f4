//! The binary: server and command line of the Dormouse delay queue.

fn main() {}
