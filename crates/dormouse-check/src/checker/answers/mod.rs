//! What answers alone must obey, whatever gave them: nothing here knows the rules' code.

mod checker;
mod job;

pub use checker::Checker;
