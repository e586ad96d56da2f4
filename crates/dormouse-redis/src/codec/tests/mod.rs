//! What only a real server can tell of the scripts.

mod backoff;
