//! What proves Dormouse: simulated disk, models, conformance suite, rigs.

pub mod sim;
