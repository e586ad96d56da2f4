//! The account of a campaign: every job that was put is somewhere, once.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use super::{Ask, Found, Line, Planned, Told};

/// The recorded wall clock and the steady one may drift apart a little.
const TOLERANCE_US: u64 = 5_000;
const EVERY_MS: u64 = 100;

/// The numbers of jobs that a campaign has covered.
#[derive(Clone, Copy, Debug, Default)]
pub struct Account {
    /// Jobs that were found at the end.
    pub jobs: usize,
    /// Dead letters among them.
    pub letters: usize,
    /// Done jobs among them.
    pub done: usize,
    /// Chains that were answered.
    pub chains: usize,
    /// Chains of which nobody knew whether they were done.
    pub unanswered_chains: usize,
    /// Jobs of ticks.
    pub ticks: usize,
}

#[derive(Default)]
struct Book {
    /// By call.
    asks: BTreeMap<u64, (u64, Ask)>,
    tolds: BTreeMap<u64, (u64, Told)>,
    found: Vec<Found>,
    found_at_us: u64,
    ticked: Option<[u64; 4]>,
}

impl Book {
    fn read(path: &Path) -> Result<Book, String> {
        let file = File::open(path).map_err(|error| error.to_string())?;
        let mut book = Book::default();
        for line in BufReader::new(file).lines() {
            let line = line.map_err(|error| error.to_string())?;
            // A kill may have cut it short; then the next one begins in it.
            let Ok(line) = serde_json::from_str::<Line>(&line) else { continue };
            match line {
                Line::Asked { call, at_us, ask } => drop(book.asks.insert(call, (at_us, ask))),
                Line::Told { call, at_us, told } => drop(book.tolds.insert(call, (at_us, told))),
                Line::Found { at_us, jobs } => (book.found_at_us, book.found) = (at_us, jobs),
                Line::Ticked { anchor_ms, next_ms, given, total } => {
                    book.ticked = Some([anchor_ms, next_ms, given, total]);
                }
                Line::Failed(text) => return Err(text),
            }
        }
        Ok(book)
    }
}

/// Where each number was found.
struct Whereabouts<'b>(BTreeMap<u64, Vec<&'b Found>>);

impl Whereabouts<'_> {
    fn count(&self, number: u64) -> usize {
        self.0.get(&number).map_or(0, Vec::len)
    }

    fn is_done(&self, number: u64) -> bool {
        self.0.get(&number).is_some_and(|found| found.iter().any(|one| one.state == "Done"))
    }
}

/// Makes up the account.
pub(super) fn check(path: &Path) -> Result<Account, String> {
    let book = Book::read(path)?;
    let mut by_number = BTreeMap::<u64, Vec<&Found>>::new();
    for found in book.found.iter().filter(|found| found.tick_ms.is_none()) {
        let number = found.number.ok_or_else(|| format!("{found:?} has a body of nobody"))?;
        by_number.entry(number).or_default().push(found);
    }
    if let Some((number, found)) = by_number.iter().find(|(_, found)| found.len() > 1) {
        return Err(format!("job {number} is there twice: {found:?}"));
    }
    let places = Whereabouts(by_number);
    let mut account = Account { jobs: book.found.len(), ..Account::default() };
    account.letters = book.found.iter().filter(|found| found.origin.is_some()).count();
    account.done = book.found.iter().filter(|found| found.state == "Done").count();
    check_puts(&book, &places)?;
    check_chains(&book, &places, &mut account)?;
    check_deadlines(&book, &places)?;
    check_ends(&book)?;
    account.ticks = check_ticks(&book)?;
    Ok(account)
}

/// Every job that was put is there, itself or as its letter.
fn check_puts(book: &Book, places: &Whereabouts<'_>) -> Result<(), String> {
    for (call, (_, ask)) in &book.asks {
        if let (Ask::Put(planned), true) = (ask, book.tolds.contains_key(call))
            && places.count(planned.number) == 0
        {
            return Err(format!("job {} was put and is lost", planned.number));
        }
    }
    Ok(())
}

/// All or nothing; and no ack without its puts.
fn check_chains(
    book: &Book,
    places: &Whereabouts<'_>,
    account: &mut Account,
) -> Result<(), String> {
    let mut acked = BTreeSet::new();
    for (call, (_, ask)) in &book.asks {
        let Ask::Chain { number, puts } = ask else { continue };
        let there = puts.iter().filter(|put| places.count(put.number) > 0).count();
        let is_whole = there == puts.len();
        let wrong = |what: &str| Err(format!("chain on {number} with {puts:?}: {what}"));
        if there > 0 && !is_whole {
            return wrong("a part of it is there");
        }
        if is_whole && !acked.insert(*number) {
            return wrong("another chain has acked the job, too");
        }
        if is_whole && !places.is_done(*number) {
            return wrong("its puts are there, but its job is not done");
        }
        match book.tolds.get(call) {
            Some((_, Told::Done)) if !is_whole => return wrong("it was done and is not there"),
            Some((_, Told::Gone | Told::Refused(_))) if is_whole => {
                return wrong("it was refused and is there");
            }
            Some(_) => account.chains += 1,
            None => account.unanswered_chains += 1,
        }
    }
    let done = places.0.keys().filter(|number| places.is_done(**number));
    match done.into_iter().find(|number| !acked.contains(number)) {
        Some(number) => Err(format!("job {number} is done, and no puts came with its ack")),
        None => Ok(()),
    }
}

/// The latest instant at which a job may be taken for the first time; by number.
fn latest_us(book: &Book) -> BTreeMap<u64, u64> {
    let mut latest = BTreeMap::new();
    let mut note = |planned: &Planned, told_us: u64| {
        let span_ms = planned.delay_ms + planned.expires_after_ms;
        if planned.expires_after_ms > 0 {
            latest.insert(planned.number, told_us + span_ms * 1_000 + TOLERANCE_US);
        }
    };
    for (call, (_, ask)) in &book.asks {
        let Some((told_us, Told::Done)) = book.tolds.get(call) else { continue };
        match ask {
            Ask::Put(planned) => note(planned, *told_us),
            Ask::Chain { puts, .. } => puts.iter().for_each(|planned| note(planned, *told_us)),
            _ => {}
        }
    }
    latest
}

/// Nothing is handed out after its deadline, and nothing waits on after it.
fn check_deadlines(book: &Book, places: &Whereabouts<'_>) -> Result<(), String> {
    let latest = latest_us(book);
    for (call, (asked_us, ask)) in &book.asks {
        let (Ask::Reserve, Some((_, Told::Jobs(jobs)))) = (ask, book.tolds.get(call)) else {
            continue;
        };
        for (number, attempt) in jobs {
            let is_late = latest.get(number).is_some_and(|latest_us| asked_us > latest_us);
            if is_late && *attempt == 1 {
                return Err(format!("job {number} was handed out after its deadline"));
            }
        }
    }
    for (number, latest_us) in &latest {
        let found = places.0.get(number).into_iter().flatten();
        let mut waiting = found.filter(|one| one.state == "Ready" && one.origin.is_none());
        // One that was taken and came back has a later deadline, but not by seconds.
        if book.found_at_us > latest_us + 5_000_000 && waiting.next().is_some() {
            return Err(format!("job {number} waits on after its deadline"));
        }
    }
    Ok(())
}

/// Each letter is of another job, and that job is gone; a dead topic without a limit is never
/// full.
fn check_ends(book: &Book) -> Result<(), String> {
    let ids: BTreeSet<u64> = book.found.iter().map(|found| found.id).collect();
    let mut origins = BTreeSet::new();
    for found in &book.found {
        let Some(origin) = found.origin else {
            if found.topic == "work" && found.state == "Dead" {
                return Err(format!("{found:?} is dead and no letter"));
            }
            continue;
        };
        if ids.contains(&origin) || !origins.insert(origin) {
            return Err(format!("{found:?}: its job is still there, or has another letter"));
        }
    }
    Ok(())
}

/// The law of ticks: each that passed is counted once, and each that was given has one job.
fn check_ticks(book: &Book) -> Result<usize, String> {
    let Some([anchor_ms, next_ms, given, total]) = book.ticked else {
        return Err("the schedule was not looked at".to_owned());
    };
    let ticks: Vec<u64> = book.found.iter().filter_map(|found| found.tick_ms).collect();
    let distinct: BTreeSet<u64> = ticks.iter().copied().collect();
    if distinct.len() != ticks.len() || ticks.len() as u64 != given {
        let (jobs, distinct) = (ticks.len(), distinct.len());
        return Err(format!("{given} ticks were given: {jobs} jobs of {distinct} ticks"));
    }
    let last_ms = distinct.last().copied().unwrap_or(anchor_ms);
    if next_ms > 0 && total != (next_ms - anchor_ms) / EVERY_MS - 1 {
        return Err(format!(
            "{total} ticks are counted from {anchor_ms} to {next_ms}, the last was {last_ms}"
        ));
    }
    Ok(ticks.len())
}
