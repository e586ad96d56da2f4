//! Any [`Backend`](dormouse_core::backend::Backend) behind HTTP.

pub mod access;
