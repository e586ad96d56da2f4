//! Random commands that are well formed.
//!
//! All times are so long that nothing happens by itself during a round, and priorities and delays
//! are all different, because the order of equal ones is a listed difference.

use dormouse_check::generate::rng::Rng;

use crate::ids::Ids;
use crate::script::Script;
use crate::setup::{Setup, TUBES};

/// The job whose answer ends each script; nothing else names it.
pub(crate) const MARK: u64 = 1;
/// Its body, and the tube where it waits for about 95 years.
pub(crate) const MARK_PUT: &str = "use mark\r\nput 0 3000000000 100 4\r\nmark\r\nuse default\r\n";
/// No job has a number like that.
pub(crate) const NOBODY: u64 = 1_000_000_000;

pub(crate) struct Generator {
    pub(crate) rng: Rng,
    pub(crate) ids: Ids,
    pub(crate) setup: Setup,
    /// Of several jobs that become ready at once, another one goes to who waits.
    pub(crate) somebody_waits: bool,
    serial: u64,
}

impl Generator {
    pub(crate) fn new(seed: u64) -> Generator {
        let mut rng = Rng::new(seed);
        let setup = Setup::choose(&mut rng);
        Generator { rng, ids: Ids::default(), setup, somebody_waits: false, serial: 0 }
    }

    /// Some commands, at most one of which buries.
    pub(crate) fn script(&mut self, commands_max: u64) -> Script {
        let mut script = Script::default();
        for _ in 0..=self.rng.below(commands_max) {
            let next = self.command();
            if !(script.buries && next.buries) {
                script.append(next);
            }
        }
        script
    }

    fn command(&mut self) -> Script {
        match self.rng.below(25) {
            0..=4 => self.put(),
            5..=6 => Script::text("reserve-with-timeout 0\r\n"),
            7..=8 => self.of_worker(),
            9..=12 => self.of_job(),
            13 => self.kick(),
            14 => self.pause(),
            15..=18 => self.of_tube(),
            19 => self.look(),
            20 => self.wrong_put(),
            21 => self.wrong_line(),
            _ => self.mutant(),
        }
    }

    /// Anything that is one line, and answered by one.
    pub(crate) fn line(&mut self) -> Script {
        match self.rng.below(7) {
            0 => Script::text("reserve-with-timeout 0\r\n"),
            1 => self.of_worker(),
            2 => self.of_job(),
            3 => self.kick(),
            4 => self.pause(),
            5 => self.of_tube(),
            _ => self.look(),
        }
    }

    pub(crate) fn put(&mut self) -> Script {
        let length = if self.rng.chance(2) {
            self.setup.body_bytes_max
        } else {
            self.rng.below(40) as usize
        };
        let mut put = self.put_line(length, "").into_bytes();
        put.extend(self.bytes(length, |_| true));
        put.extend_from_slice(b"\r\n");
        self.ids.put();
        Script::text(put)
    }

    /// The line of a put; with a delay only if the priority is nobody else's.
    pub(crate) fn put_line(&mut self, length: usize, end: &str) -> String {
        let ttr = 1_000 + self.rng.below(100_000);
        if self.setup.has_ties && self.rng.chance(50) {
            let priority = self.rng.pick(&[0, 700_000]).unwrap();
            return format!("put {priority} 0 {ttr} {length}{end}\r\n");
        }
        let (priority, delay) = (self.priority(), self.delay());
        format!("put {priority} {delay} {ttr} {length}{end}\r\n")
    }

    /// Nobody else's: urgent ones, others, and the largest.
    fn priority(&mut self) -> u64 {
        self.serial += 1;
        let least = self.rng.pick(&[1, 1, 800_000, 4_294_900_000]).unwrap();
        least + self.serial
    }

    /// None in most cases, else hours or decades.
    fn delay(&mut self) -> u64 {
        self.serial += 1;
        let least = *self.rng.pick(&[0, 0, 0, 0, 20_000, 2_999_000_000]).unwrap();
        if least == 0 { 0 } else { least + self.serial }
    }

    /// A job of the last ones, of all, or none.
    fn number(&mut self) -> u64 {
        let count = self.ids.last() - MARK;
        let back = match self.rng.below(20) {
            _ if count == 0 => return NOBODY,
            0 => return NOBODY + self.rng.below(9),
            1 | 2 => self.rng.below(count),
            _ => self.rng.below(count.min(12)),
        };
        self.ids.last() - back
    }

    pub(crate) fn tube(&mut self) -> &'static str {
        self.rng.pick(&TUBES).unwrap()
    }

    fn of_worker(&mut self) -> Script {
        let number = self.number();
        match self.rng.below(3) {
            0 => Script::about("touch", number, ""),
            1 => {
                let rest = format!(" {} {}", self.priority(), self.delay());
                Script::about("release", number, &rest)
            }
            _ => Script::about("bury", number, &format!(" {}", self.priority())),
        }
    }

    fn of_job(&mut self) -> Script {
        let verbs = ["reserve-job", "delete", "kick-job", "peek", "stats-job", "stats-job"];
        let verb = self.rng.pick(&verbs).unwrap();
        let number = self.number();
        Script::about(verb, number, "")
    }

    fn kick(&mut self) -> Script {
        let counts = ["0", "1", "+1", "1x", " 1", "2", "3", "1000", " 2", "-1", "2x"];
        let counts = if self.somebody_waits { &counts[..5] } else { &counts };
        let count = self.rng.pick(counts).unwrap();
        Script::text(format!("kick {count}\r\n"))
    }

    /// A pause outlives its tube here, so it is of one that does not vanish.
    fn pause(&mut self) -> Script {
        let seconds = *self.rng.pick(&[0, 0, 5_000]).unwrap();
        let tube = if self.setup.keeps_tubes { self.tube() } else { TUBES[0] };
        Script::text(format!("pause-tube {tube} {seconds}\r\n"))
    }

    fn of_tube(&mut self) -> Script {
        let verbs = ["use", "use", "watch", "watch", "ignore", "stats-tube", "stats-tube"];
        let verb = self.rng.pick(&verbs).unwrap();
        let tube = self.tube();
        Script::text(format!("{verb} {tube}\r\n"))
    }

    fn look(&mut self) -> Script {
        let words = [
            "peek-ready",
            "peek-delayed",
            "peek-buried",
            "list-tubes",
            "list-tube-used",
            "list-tubes-watched",
            "stats",
        ];
        let word = self.rng.pick(&words).unwrap();
        Script::text(format!("{word}\r\n"))
    }

    /// Random bytes of a kind.
    pub(crate) fn bytes(&mut self, count: usize, is_good: impl Fn(u8) -> bool) -> Vec<u8> {
        let all = std::iter::repeat_with(|| self.rng.next_u64() as u8);
        all.filter(|&byte| is_good(byte)).take(count).collect()
    }
}
