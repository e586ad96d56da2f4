//! The client against servers that lose answers, send garbage, are slow, refuse or go.

mod client;
mod fake;
mod loss;
mod opening;
mod waits;
