//! The scheduler without Redis: cases by hand (`table`), and random histories against a model of
//! Redis and the network (`random`), whose parts are `fake` (a partition in Redis) and `world` (the
//! network, the tasks, and what must hold). The bug bank of `dormouse-check` tests these tests.

mod fake;
mod random;
mod table;
mod world;
