//! Rules that answers must obey, whatever gave them: nothing here knows the code of the rules.

mod checker;
mod job;
mod limits;

pub use checker::Checker;
