//! One round: fresh servers, some clients, one of them at a time.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::compare::Compare;
use crate::generate::{Generator, MARK, MARK_PUT, NOBODY};
use crate::ids::Side;
use crate::pair::{Pair, Replies, Servers};
use crate::script::Script;
use crate::server::{Server, TIMEOUT};
use crate::setup::TUBES;

const STEPS: usize = 500;
const CLIENTS_MAX: usize = 3;
/// Commands that are sent at once.
const PIPELINE_MAX: u64 = 8;
/// A client that waits for longer will probably not get a job.
const WAIT_STEPS_MAX: usize = 40;
/// Times of ours are whole milliseconds, and may be one more.
const TICK: Duration = Duration::from_millis(3);
const SHOWN_STEPS: usize = 25;

/// Runs it, and gives the number of commands.
pub(crate) fn run(seed: u64) -> u64 {
    let maker = Generator::new(seed);
    let setup = maker.setup.clone();
    let servers = Servers { ours: Server::ours(&setup), original: Server::original(&setup) };
    let mut round = Round::new(maker, &servers);
    let outcome = round.go(&servers);
    if let Err(why) = outcome {
        let history = round.history.make_contiguous().join("\n");
        panic!("DORMOUSE_SEED={seed}, {setup:?}\n{history}\n{why}");
    }
    let commands = round.commands;
    let Servers { mut ours, mut original } = servers;
    assert!(ours.is_running() && original.is_running(), "DORMOUSE_SEED={seed}: one has ended");
    commands
}

struct Round {
    maker: Generator,
    /// Looks, and says nothing that changes anything.
    observer: Pair,
    /// With a number each, for the history.
    clients: Vec<(usize, Pair)>,
    connected: usize,
    waiting: Option<Waiting>,
    buried_at: Instant,
    history: VecDeque<String>,
    commands: u64,
}

/// Somebody who has sent a `reserve` that is not answered.
struct Waiting {
    number: usize,
    pair: Pair,
    steps: usize,
}

impl Round {
    fn new(maker: Generator, servers: &Servers) -> Round {
        Round {
            maker,
            observer: Pair::connect(servers),
            clients: Vec::new(),
            connected: 0,
            waiting: None,
            buried_at: Instant::now(),
            history: VecDeque::new(),
            commands: 0,
        }
    }

    fn go(&mut self, servers: &Servers) -> Result<(), String> {
        let mut begin = MARK_PUT.to_owned();
        if self.maker.setup.keeps_tubes {
            begin.extend(TUBES.map(|tube| format!("watch {tube}\r\n")));
        }
        self.maker.ids.put();
        self.observe(&Script::text(begin))?;
        self.settle()?;
        for _ in 0..STEPS {
            self.step(servers)?;
        }
        self.compare_all()
    }

    fn step(&mut self, servers: &Servers) -> Result<(), String> {
        let chance = self.maker.rng.below(100);
        // Of the jobs that are given back then, another one goes to who waits.
        let may_leave = !self.maker.setup.has_ties && self.waiting.is_none();
        if self.clients.is_empty() || (chance < 10 && self.connected_now() < CLIENTS_MAX) {
            self.connected += 1;
            self.clients.push((self.connected, Pair::connect(servers)));
            return self.settle();
        }
        match chance {
            10..=12 if may_leave && self.clients.len() > 1 => self.leave()?,
            13..=17 if self.waiting.is_none() && self.clients.len() > 1 => self.begin_to_wait()?,
            _ => self.exchange()?,
        }
        self.look_after_waiting()
    }

    fn connected_now(&self) -> usize {
        self.clients.len() + usize::from(self.waiting.is_some())
    }

    fn pick(&mut self) -> usize {
        self.maker.rng.below(self.clients.len() as u64) as usize
    }

    /// Some commands on one connection. While somebody waits, only one, so that it is clear which
    /// one has ended the wait.
    fn exchange(&mut self) -> Result<(), String> {
        let at = self.pick();
        self.maker.somebody_waits = self.waiting.is_some();
        let most = if self.waiting.is_some() { 1 } else { PIPELINE_MAX };
        let script = self.maker.script(most);
        self.note(self.clients[at].0, &script);
        if script.buries {
            self.pass_a_tick()?;
        }
        let mut ours = script.bytes(&self.maker.ids, Side::Ours);
        let mut original = script.bytes(&self.maker.ids, Side::Original);
        ours.extend(self.mark().bytes(&self.maker.ids, Side::Ours));
        original.extend(self.mark().bytes(&self.maker.ids, Side::Original));
        if self.maker.rng.chance(30) {
            self.send_in_pieces(at, &ours, &original)?;
        } else {
            self.clients[at].1.send(&ours, &original)?;
        }
        let replies = hear(&mut self.clients[at].1)?;
        if script.buries {
            self.buried_at = Instant::now();
        }
        self.compare(&replies)
    }

    /// In between both servers have answered somebody else, so they have seen the piece.
    fn send_in_pieces(&mut self, at: usize, ours: &[u8], original: &[u8]) -> Result<(), String> {
        let most = original.len().min(ours.len()) as u64;
        let mut cuts: Vec<usize> =
            (0..=self.maker.rng.below(3)).map(|_| self.maker.rng.below(most) as usize).collect();
        cuts.sort_unstable();
        let mut from = 0;
        for cut in cuts {
            self.clients[at].1.send(&ours[from..cut], &original[from..cut])?;
            self.sync()?;
            from = cut;
        }
        self.clients[at].1.send(&ours[from..], &original[from..])
    }

    /// Jobs that are buried in the same millisecond are kicked in another order.
    fn pass_a_tick(&mut self) -> Result<(), String> {
        while self.buried_at.elapsed() < TICK {
            self.sync()?;
        }
        Ok(())
    }

    /// Says goodbye, or just goes, perhaps in the middle of something.
    fn leave(&mut self) -> Result<(), String> {
        let at = self.pick();
        let (number, mut pair) = self.clients.swap_remove(at);
        let (text, is_put) = match self.maker.rng.below(5) {
            0 => ("", false),
            1 => ("stats\r\nreserve-with-tim", false),
            2 => ("put 1 0 1000 10\r\nabc", true),
            _ => ("quit\r\nstats\r\n", false),
        };
        let script = Script::text(text);
        self.note(number, &script);
        pair.send_script(&script, &self.maker.ids)?;
        if is_put {
            // The original must have read it: then it has spent an id.
            self.sync()?;
            self.maker.ids.refused();
        }
        if text.starts_with("quit") {
            self.compare(&pair.rest()?)?;
        } else {
            pair.leave();
        }
        self.settle()
    }

    /// A `reserve` that is not answered, because the one before was not.
    fn begin_to_wait(&mut self) -> Result<(), String> {
        let at = self.pick();
        let probe = Script::text("reserve-with-timeout 0\r\n");
        self.note(self.clients[at].0, &probe);
        let pair = &mut self.clients[at].1;
        pair.send_script(&probe, &self.maker.ids)?;
        let replies = pair.reply()?;
        self.compare(&replies)?;
        if replies.original[0] == b"TIMED_OUT\r\n" {
            let (number, mut pair) = self.clients.swap_remove(at);
            let reserve = Script::text("reserve\r\n");
            self.note(number, &reserve);
            pair.send_script(&reserve, &self.maker.ids)?;
            self.waiting = Some(Waiting { number, pair, steps: 0 });
            self.settle()?;
        }
        Ok(())
    }

    /// Hears who waited and, by the original, does not wait any more.
    fn look_after_waiting(&mut self) -> Result<(), String> {
        let Some(mut waiting) = self.waiting.take() else { return Ok(()) };
        waiting.steps += 1;
        let stats = self.observe(&Script::text("stats\r\n"))?;
        if count(&stats.original[0], "current-waiting") == Some(0) {
            self.history.push_back(format!("client {}: its wait is over", waiting.number));
            let replies = waiting.pair.reply()?;
            self.clients.push((waiting.number, waiting.pair));
            self.compare(&replies)?;
            self.settle()
        } else if waiting.steps > WAIT_STEPS_MAX && !self.maker.setup.has_ties {
            self.history.push_back(format!("client {} goes", waiting.number));
            waiting.pair.leave();
            self.settle()
        } else {
            self.waiting = Some(waiting);
            Ok(())
        }
    }

    /// Waits until both have noticed who has come, gone, or begun to wait, and agree about
    /// everything. Ours has a task for each connection, the original reads what was said before it
    /// sees that nothing more comes.
    fn settle(&mut self) -> Result<(), String> {
        let start = Instant::now();
        loop {
            let stats = self.observe(&Script::text("stats\r\n"))?;
            let is_late = start.elapsed() > TIMEOUT;
            if is_late || self.is_up_to_date(&stats.original[0]) {
                let outcome = self.compare(&stats);
                if is_late || outcome.is_ok() {
                    return outcome;
                }
            }
        }
    }

    fn is_up_to_date(&self, stats: &[u8]) -> bool {
        let (connections, waiting) =
            (self.connected_now() + 1, usize::from(self.waiting.is_some()));
        count(stats, "current-connections") == Some(connections)
            && count(stats, "current-waiting") == Some(waiting)
    }

    /// Everything that can be seen, at the end.
    fn compare_all(&mut self) -> Result<(), String> {
        self.settle()?;
        let mut script = Script::text("stats\r\nlist-tubes\r\n");
        for tube in TUBES {
            let words =
                format!("stats-tube {tube}\r\nuse {tube}\r\npeek-ready\r\npeek-delayed\r\n");
            script.append(Script::text(words + "peek-buried\r\n"));
        }
        script.append(Script::text("use default\r\n"));
        for number in MARK + 1..=self.maker.ids.last() {
            script.append(Script::about("stats-job", number, ""));
        }
        let replies = self.observe(&script)?;
        self.compare(&replies)
    }

    /// Says something on a connection that nobody else uses.
    fn observe(&mut self, script: &Script) -> Result<Replies, String> {
        let mut script = script.clone();
        script.append(self.mark());
        self.observer.send_script(&script, &self.maker.ids)?;
        self.commands += script.commands;
        hear(&mut self.observer)
    }

    /// Both servers have read what was sent before. Neither counts this command, so a `stats` on
    /// another connection may come before or after it.
    fn sync(&mut self) -> Result<(), String> {
        self.observer.send_script(&Script::about("kick-job", NOBODY, ""), &self.maker.ids)?;
        let replies = self.observer.reply()?;
        self.compare(&replies)
    }

    /// Ends each script: no other command has the same answer.
    fn mark(&self) -> Script {
        Script::about("peek", MARK, "")
    }

    fn compare(&self, replies: &Replies) -> Result<(), String> {
        Compare { ids: &self.maker.ids, setup: &self.maker.setup }.all(replies)
    }

    fn note(&mut self, client: usize, script: &Script) {
        let bytes = script.bytes(&self.maker.ids, Side::Ours);
        self.history.push_back(format!("client {client}: {}", bytes.escape_ascii()));
        if self.history.len() > SHOWN_STEPS {
            self.history.pop_front();
        }
        self.commands += script.commands;
    }
}

/// All replies up to the mark, which both call by the same id as nothing was put before.
fn hear(pair: &mut Pair) -> Result<Replies, String> {
    let mark = format!("FOUND {MARK} ");
    pair.replies_to(mark.as_bytes(), mark.as_bytes())
}

/// A number of `stats`.
fn count(stats: &[u8], key: &str) -> Option<usize> {
    let text = String::from_utf8_lossy(stats);
    let value = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(": "));
    value?.parse().ok()
}
