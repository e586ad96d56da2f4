//! The timeline in memory: a map.
