//! Random histories. A failure prints its seed; `SCHEDULER_SEED=<seed>` repeats it alone, and
//! `SCHEDULER_HISTORIES` sets how many are run.

use std::time::Instant;

use super::super::NewWaiter;
use super::fake::Kind;
use super::world::World;

const STEPS: u64 = 2_000;

struct Rng(u64);

impl Rng {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (x ^ (x >> 31)) % end
    }

    fn index(&mut self, end: usize) -> usize {
        usize::try_from(self.below(end as u64)).unwrap()
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

struct History {
    world: World,
    rng: Rng,
    partitions: usize,
    submissions: u64,
    /// Faults per thousand steps.
    faults: u64,
}

impl History {
    fn new(seed: u64) -> History {
        let mut rng = Rng(seed);
        let partitions = 1 + rng.index(3);
        let world = World::new(partitions, u32::from(rng.one_in(5)));
        let faults = [0, 5, 50][rng.index(3)];
        History { world, rng, partitions, submissions: 0, faults }
    }

    fn step(&mut self) {
        let no = self.rng.index(self.partitions);
        if self.rng.below(1_000) < self.faults {
            return self.fault(no);
        }
        match self.rng.below(20) {
            0..=2 => self.submit(no),
            3 => self.submit_in_order(),
            4 | 5 => self.park(),
            6 => {
                let n = self.rng.index(4);
                self.world.withdraw(n);
            }
            7 | 8 => {
                let (most, release) = (1 + self.rng.index(9), self.rng.one_in(4));
                self.world.end_leases(no, most, release);
            }
            9..=12 => drop(self.world.reach_redis(no, false)),
            13..=16 => drop(self.world.reach_server(no)),
            17 => drop(self.world.wakeup(no, false)),
            _ => {
                let by_ms = [0, 1, 3, 30, 400][self.rng.index(5)];
                self.world.advance(by_ms);
            }
        }
        // Not after each step: inputs of several steps meet.
        if !self.rng.one_in(3) {
            self.world.perform();
        }
    }

    fn put(&mut self) -> Kind {
        let jobs = if self.rng.one_in(10) { 1 + self.rng.index(120) } else { 1 };
        Kind::Put { jobs, delay_ms: [0, 0, 20, 3_000][self.rng.index(4)] }
    }

    fn submit(&mut self, no: usize) {
        let kind = if self.rng.one_in(5) { Kind::Read } else { self.put() };
        let times = if self.rng.one_in(8) { 30 } else { 1 };
        for _ in 0..times {
            self.world.submit(no, None, kind.clone());
        }
    }

    /// Several requests whose order must be kept, and perhaps a reserve after them.
    fn submit_in_order(&mut self) {
        self.submissions += 1;
        let no = self.rng.index(self.partitions);
        for place in 0..=self.rng.below(5) {
            let kind = match self.rng.below(4) {
                0 => Kind::Read,
                1 => Kind::Ack(Vec::new()),
                2 => Kind::Release(Vec::new()),
                _ => self.put(),
            };
            self.world.submit(no, Some((self.submissions, place)), kind);
        }
        if self.rng.one_in(2) {
            let submission = Some(self.submissions);
            let waiter = NewWaiter { max: 2, ttr_ms: None, submission, is_blocking: false };
            self.world.park(waiter, &[no]);
        }
    }

    fn park(&mut self) {
        let ttr_ms = self.rng.one_in(4).then_some(5);
        let max = if self.rng.one_in(6) { 200 } else { 1 + self.rng.index(3) };
        let is_blocking = !self.rng.one_in(3);
        let waiter = NewWaiter { max, ttr_ms, submission: None, is_blocking };
        let first = self.rng.index(self.partitions);
        let count = if is_blocking { 1 + self.rng.index(self.partitions) } else { 1 };
        let partitions: Vec<_> = (0..count).map(|n| (first + n) % self.partitions).collect();
        self.world.park(waiter, &partitions);
    }

    fn fault(&mut self, no: usize) {
        match self.rng.below(12) {
            0..=2 => drop(self.world.reach_redis(no, true)),
            3 => self.world.refuse_batch(no),
            4 => self.world.break_link(no, false),
            5 => self.world.break_link(no, true),
            6 | 7 => self.world.mend_link(no),
            8 => {
                let n = self.rng.index(100);
                self.world.deliver_stray(no, n);
            }
            9 => drop(self.world.wakeup(no, true)),
            10 => {
                let by_ms = 500 + self.rng.below(12_000);
                self.world.advance(by_ms);
            }
            _ if self.rng.one_in(4) => self.world.lose_data(no),
            _ => self.world.fakes[no].is_stale = true,
        }
        self.world.perform();
    }

    fn run(&mut self) {
        for _ in 0..2 {
            for _ in 0..STEPS / 2 {
                self.step();
            }
            self.world.settle();
            let no = self.rng.index(self.partitions);
            self.world.check_prompt(no);
        }
    }
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap())
}

#[test]
fn random_histories_keep_every_promise() {
    let first = number("SCHEDULER_SEED");
    let histories = first.map_or(number("SCHEDULER_HISTORIES").unwrap_or(40), |_| 1);
    let began_at = Instant::now();
    for seed in (0..histories).map(|n| first.unwrap_or(n + 1)) {
        let panics = std::panic::catch_unwind(|| History::new(seed).run());
        if let Err(panic) = panics {
            eprintln!("SCHEDULER_SEED={seed}");
            std::panic::resume_unwind(panic);
        }
    }
    eprintln!("{histories} histories of {STEPS} steps in {:?}", began_at.elapsed());
}
