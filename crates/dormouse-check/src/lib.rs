//! What proves Dormouse: simulated disk, models, conformance suite, rigs.

pub mod conformance;
pub mod history;
pub mod http;
pub mod model;
pub mod redis;
pub mod redis_model;
pub mod redis_rig;
pub mod rig;
pub mod sim;
