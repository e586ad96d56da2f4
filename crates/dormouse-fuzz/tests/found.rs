//! What must be found is found.

use std::panic::catch_unwind;

use dormouse_fuzz::{Input, Target, fuzz};

fn target(name: &'static str) -> Target<'static> {
    Target {
        name,
        home: env!("CARGO_TARGET_TMPDIR"),
        seeds: &[b"put 1 22 333"],
        words: &[b"put", b"\r\n"],
        held_bytes_max: |bytes| 64 + 4 * bytes as u64,
    }
}

#[test]
fn a_panic_is_found() {
    let panics = |input: &Input| assert!(!input.bytes.windows(2).any(|pair| pair == b"\r\n"));
    assert!(catch_unwind(|| fuzz(&target("panic"), panics)).is_err());
}

#[test]
fn memory_beyond_the_bound_is_found() {
    let grows = |input: &Input| {
        let copies = if input.bytes.starts_with(b"\r") { 5 } else { 2 };
        std::hint::black_box(input.bytes.repeat(copies));
    };
    assert!(catch_unwind(|| fuzz(&target("memory"), grows)).is_err());
}

#[test]
fn what_is_in_order_passes() {
    let seen = fuzz(&target("good"), |input| {
        let whole: Vec<u8> = input.pieces().flatten().copied().collect();
        assert_eq!(whole, input.bytes);
    });
    assert!(seen.executions >= 1_000 && seen.held_bytes > 0);
}
