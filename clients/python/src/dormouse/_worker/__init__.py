"""What a `Worker` is made of: it fetches, runs, prolongs and tells."""
