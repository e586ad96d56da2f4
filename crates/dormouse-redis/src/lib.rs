//! Dormouse on Redis and Redis Cluster.
