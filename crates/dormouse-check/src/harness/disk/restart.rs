//! Crash and start again, and bring the oracle to where the store says it is.

use dormouse_core::time::Now;
use dormouse_disk::journal::{BatchHeader, Boot, Record, plan};
use dormouse_disk::manifest;

use crate::faults::disk::CrashMode;
use crate::generate::rng::Rng;
use crate::harness::disk::driver::Driver;
use crate::harness::disk::simulation::{SIZES, World};

impl World {
    /// Crashes in this way and opens the store again; the first starts are cut short by a power
    /// cut at these calls of theirs. `reboot` = how long the machine was off.
    pub fn restart(
        &mut self,
        mode: CrashMode,
        reboot: Option<u64>,
        cuts: &[u64],
        rng: &mut Rng,
    ) -> Result<(), String> {
        self.count(match mode {
            CrashMode::Kill => "kill",
            CrashMode::LoseUnsynced => "power cut, all lost",
            CrashMode::Prefix => "power cut, prefix kept",
            CrashMode::Sectors => "power cut, sectors torn",
        });
        let steady_before = self.now().steady_ms;
        let is_cached = mode == CrashMode::Kill && !self.driver.failed;
        let mut at_least = if is_cached { self.driver.written } else { self.driver.synced };
        self.disk.crash(mode, rng);
        if let Some(off_ms) = reboot {
            self.time.reboot(off_ms);
        }
        for cut in cuts {
            self.disk.crash_at_call(self.disk.calls() + 1 + cut);
            match Driver::open(&self.disk, SIZES, self.time) {
                // It did not get as far as that call; everything that was answered must be found
                // again.
                Ok(driver) => {
                    drop(driver);
                    self.disk.clear_faults();
                }
                Err(error) if !self.disk.is_off() => return Err(self.refused(&error)),
                Err(_) => self.count("start cut short"),
            }
            let mode = CrashMode::random(rng);
            if mode != CrashMode::Kill {
                at_least = at_least.min(self.driver.synced);
            }
            self.disk.crash(mode, rng);
        }
        let opened = Driver::open(&self.disk, SIZES, self.time);
        let driver = opened.map_err(|error| self.refused(&error))?;
        let steady_after = driver.now(self.time).steady_ms;
        if reboot.is_none() && steady_after != steady_before {
            return Err(format!("steady was {steady_before}, is {steady_after} on the same boot"));
        }
        self.follow(driver, at_least)
    }

    fn refused(&self, error: &dyn std::fmt::Display) -> String {
        format!("a plain crash, but the store does not open: {error} ({:?})", self.disk.names())
    }

    /// Brings the oracle to the state that the starts since the last one report in the journal.
    fn follow(&mut self, driver: Driver, at_least: u64) -> Result<(), String> {
        let manifest = manifest::read(&self.disk).map_err(|error| error.to_string())?;
        let manifest = manifest.ok_or("the manifest is gone")?;
        let last_epoch = self.oracle.machine.epoch();
        let starts = self.starts_after(manifest.first_segment, last_epoch)?;
        let Some((_, first)) = starts.first() else {
            return Err(format!("no start after epoch {last_epoch} in the journal"));
        };
        if first.last_batch < at_least || first.last_batch > self.sealed {
            return Err(format!(
                "the store recovered batch {}; {at_least} must not be lost, {} was the last",
                first.last_batch, self.sealed
            ));
        }
        self.checker.lost_after(first.last_batch);
        let runs = manifest.runs.len();
        self.count(
            ["start with no run", "start with 1 run", "start with 2 runs"]
                .get(runs)
                .copied()
                .unwrap_or("start with more runs"),
        );
        if first.last_batch < self.sealed {
            self.count("start that lost batches");
        }
        for (header, boot) in &starts {
            let now = Now {
                steady_ms: header.steady_ms,
                wall_ms: header.wall_ms,
                fraction: self.time.reading.into_ms_us > 0,
            };
            self.oracle.recover(manifest.first_segment, boot.last_batch, boot.epoch, now)?;
            self.checker.restarted(now, boot.last_batch + 1);
            self.sealed = header.number;
        }
        if driver.store.last_sealed() != self.sealed {
            let have = driver.store.last_sealed();
            return Err(format!("the store is at batch {have}, its journal at {}", self.sealed));
        }
        self.checker.set_durable(self.sealed);
        self.driver = driver;
        self.source.sessions.clear();
        self.source.tickets.clear();
        Ok(())
    }

    /// The starts in the journal whose epoch is higher than this, in order.
    pub(crate) fn starts_after(
        &self,
        first_segment: u64,
        epoch: u32,
    ) -> Result<Vec<(BatchHeader, Boot)>, String> {
        let plan = plan(&self.disk, first_segment).map_err(|error| error.to_string())?;
        let mut starts: Vec<(BatchHeader, Boot)> = Vec::new();
        let replay = plan.replay(&self.disk, &mut |header, record| {
            if let Record::Boot(boot) = record
                && boot.epoch > epoch
            {
                starts.push((*header, boot));
            }
            Ok(())
        });
        replay.map_err(|error| error.to_string())?;
        Ok(starts)
    }
}
