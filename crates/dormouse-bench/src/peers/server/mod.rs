//! Servers of all contenders: started on free ports in directories of their own.

mod process;
mod programs;
mod start;

pub(super) use process::{Process, on_path};
pub(super) use programs::Programs;
pub(super) use start::{Extras, Server};
