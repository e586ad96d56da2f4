//! The disk backend of Dormouse: the machine of dormouse-core over a journal and sorted runs.

pub mod disk;
