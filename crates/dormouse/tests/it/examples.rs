//! The examples run as they stand.

#[path = "../../examples/debounce.rs"]
mod debounce;
#[path = "../../examples/order_timeout.rs"]
mod order_timeout;
#[path = "../../examples/worker.rs"]
mod worker;

#[test]
fn order_timeout_runs() {
    order_timeout::main().unwrap();
}

#[test]
fn worker_runs() {
    worker::main().unwrap();
}

#[test]
fn debounce_runs() {
    debounce::main().unwrap();
}
