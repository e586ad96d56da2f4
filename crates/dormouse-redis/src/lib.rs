//! Dormouse on Redis and Redis Cluster.

mod link;
