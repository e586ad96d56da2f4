//! Real processes: a child works on a real directory and records its calls and their answers; the
//! parent kills it, starts the next one, and checks the whole history. Or the child is the server,
//! and the parent calls it over HTTP.

pub mod campaign;
pub mod child;
pub mod client;
pub mod dump;
pub mod ends;
pub mod load;
pub mod recorder;
pub mod served;
