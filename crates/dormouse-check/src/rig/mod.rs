//! Rigs of real processes: a child works on a real directory and tells what it asks and what it is
//! told; the parent kills it, starts the next one, and checks the whole history. Or the child is
//! the server, and the parent asks it over HTTP.

pub mod body;
pub mod campaign;
pub mod checker;
pub mod child;
pub mod client;
pub mod dump;
pub mod event;
pub mod load;
pub mod seed;
pub mod served;
pub mod teller;
