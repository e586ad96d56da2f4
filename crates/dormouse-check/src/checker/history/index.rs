//! The history, found by call, by job and by key.

use std::collections::BTreeMap;

use super::Store;
use crate::checker::event::{Answer, Ask, Dumped, Event, PutAsk, Taken, Verb};

/// When a call or an answer was recorded: its line in the whole history, and the wall clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    pub(super) line: usize,
    pub(super) us: u64,
}

/// A call.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) round: usize,
    pub(super) ask: Ask,
    pub(super) asked: Mark,
    pub(super) told: Option<(Mark, Answer)>,
}

impl Call {
    /// It was answered with this before that line.
    pub(super) fn told_before(&self, line: usize) -> bool {
        self.told.as_ref().is_some_and(|(mark, _)| mark.line < line)
    }

    pub(super) fn answer(&self) -> Option<&Answer> {
        self.told.as_ref().map(|(_, answer)| answer)
    }

    /// It was refused or found nothing: it changed nothing.
    pub(super) fn changed_nothing(&self) -> bool {
        matches!(self.answer(), Some(Answer::Gone | Answer::Refused(_) | Answer::Duplicate(_)))
    }
}

/// A delivery.
#[derive(Clone, Debug)]
pub(super) struct Take {
    pub(super) job: Taken,
    pub(super) round: usize,
    pub(super) asked: Mark,
    pub(super) told: Mark,
}

/// All jobs at one instant.
#[derive(Clone, Debug)]
pub(super) struct Dump {
    pub(super) line: usize,
    pub(super) jobs: BTreeMap<u64, Dumped>,
    pub(super) counts: [u64; 3],
}

/// All that concerns one job. Calls by their index.
#[derive(Clone, Debug, Default)]
pub(super) struct Job {
    /// The put that made it, if it was answered.
    pub(super) created: Option<usize>,
    pub(super) takes: Vec<Take>,
    /// Calls with a token of this job.
    pub(super) tokens: Vec<usize>,
    pub(super) cancels: Vec<usize>,
    pub(super) reschedules: Vec<usize>,
    /// The line on which it was first seen to exist.
    pub(super) seen: Option<usize>,
    /// A put that its body came from; a replace does not change topic and key.
    number: Option<u64>,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Index {
    pub(super) calls: Vec<Call>,
    pub(super) jobs: BTreeMap<u64, Job>,
    /// Puts by their number.
    pub(super) puts: BTreeMap<u64, usize>,
    /// Puts with a key, by topic and key.
    pub(super) keys: BTreeMap<(String, String), Vec<usize>>,
    /// Cancels by key, by topic and key.
    pub(super) key_cancels: BTreeMap<(String, String), Vec<usize>>,
    pub(super) reserves: Vec<usize>,
    pub(super) dumps: Vec<Dump>,
    /// The drain, whose clock is ahead; beyond the last one if there was none yet.
    pub(super) drain_round: usize,
    store: Store,
}

impl Index {
    pub(super) fn new(
        rounds: &[Vec<Event>],
        store: &Store,
        drained: bool,
    ) -> Result<Index, String> {
        let drain_round = rounds.len() - usize::from(drained && !rounds.is_empty());
        let mut index = Index { drain_round, store: store.clone(), ..Index::default() };
        let mut line = 0;
        for (round, events) in rounds.iter().enumerate() {
            let mut open = BTreeMap::new();
            for event in events {
                line += 1;
                index.add(round, line, event, &mut open)?;
            }
        }
        for at in 0..index.calls.len() {
            index.file(at);
        }
        Ok(index)
    }

    fn add(
        &mut self,
        round: usize,
        line: usize,
        event: &Event,
        open: &mut BTreeMap<u64, usize>,
    ) -> Result<(), String> {
        match event {
            Event::Opening | Event::Drained => {}
            Event::Failed(text) => return Err(format!("round {round}: the store failed: {text}")),
            Event::Dump { jobs, counts } => {
                for job in jobs {
                    self.job_seen(job.id, line).number = job.number;
                }
                let jobs = jobs.iter().map(|job| (job.id, job.clone())).collect();
                self.dumps.push(Dump { line, jobs, counts: *counts });
            }
            Event::Asked { call, at_us, ask } => {
                open.insert(*call, self.calls.len());
                let asked = Mark { line, us: *at_us };
                self.calls.push(Call { round, ask: ask.clone(), asked, told: None });
            }
            Event::Told { call, at_us, answer } => {
                let at = open.remove(call).ok_or("an answer to no call")?;
                if *answer == Answer::Unknown {
                    return Ok(());
                }
                self.calls[at].told = Some((Mark { line, us: *at_us }, answer.clone()));
            }
        }
        Ok(())
    }

    /// Puts a call where it is looked for.
    fn file(&mut self, at: usize) {
        let call = self.calls[at].clone();
        match &call.ask {
            Ask::Put(put) => {
                self.puts.insert(put.number, at);
                if let Some(key) = &put.key {
                    self.keys.entry((put.topic.clone(), key.clone())).or_default().push(at);
                }
                if let Some((mark, Answer::Created(id))) = &call.told {
                    let job = self.job_seen(*id, mark.line);
                    job.created = Some(at);
                }
            }
            Ask::Reserve { .. } => {
                self.reserves.push(at);
                if let Some((told, Answer::Jobs(taken))) = &call.told {
                    for job in taken {
                        let (round, asked, told) = (call.round, call.asked, *told);
                        let take = Take { job: job.clone(), round, asked, told };
                        // While the store is shaken, it may be of a put that will be lost.
                        let known = if self.is_shaken(told.us) {
                            self.jobs.entry(job.id).or_default()
                        } else {
                            self.job_seen(job.id, told.line)
                        };
                        known.number = known.number.or(job.number);
                        known.takes.push(take);
                    }
                }
            }
            Ask::Token { token: (id, _), .. } => {
                self.jobs.entry(*id).or_default().tokens.push(at);
            }
            Ask::CancelId(id) => self.jobs.entry(*id).or_default().cancels.push(at),
            Ask::CancelKey { topic, key } => {
                self.key_cancels.entry((topic.clone(), key.clone())).or_default().push(at);
                if let Some(Answer::Changed(id)) = call.answer() {
                    self.jobs.entry(*id).or_default().cancels.push(at);
                }
            }
            Ask::Reschedule { id, .. } => self.jobs.entry(*id).or_default().reschedules.push(at),
        }
    }

    fn job_seen(&mut self, id: u64, line: usize) -> &mut Job {
        let job = self.jobs.entry(id).or_default();
        job.seen = Some(job.seen.map_or(line, |seen| seen.min(line)));
        job
    }

    /// Calls under way in one round may happen in the other, and leases of one hold in it.
    pub(super) fn is_one_life(&self, round: usize, other: usize) -> bool {
        self.store.lasting || round == other
    }

    /// A lease that was given then may have been lost.
    pub(super) fn is_shaken(&self, us: u64) -> bool {
        self.store.shaken_us.iter().any(|(from, to)| (*from..=*to).contains(&us))
    }

    pub(super) fn call(&self, at: usize) -> &Call {
        &self.calls[at]
    }

    /// The put that made this job, if it is known.
    pub(super) fn put_of(&self, job: &Job) -> Option<&PutAsk> {
        let at = job.created.or_else(|| self.puts.get(&job.number?).copied())?;
        match &self.call(at).ask {
            Ask::Put(put) => Some(put),
            _ => None,
        }
    }

    /// Calls that removed this job for sure.
    pub(super) fn ends<'i>(&'i self, job: &'i Job) -> impl Iterator<Item = &'i Call> {
        self.possible_ends(job)
            .filter(|call| matches!(call.answer(), Some(Answer::Done | Answer::Changed(_))))
    }

    /// Calls that removed this job, or may have.
    pub(super) fn possible_ends<'i>(&'i self, job: &'i Job) -> impl Iterator<Item = &'i Call> {
        let is_ack =
            |call: &&Call| matches!(call.ask, Ask::Token { verb: Verb::Ack, forged: false, .. });
        let acks = job.tokens.iter().map(|at| self.call(*at)).filter(is_ack);
        let cancels = job.cancels.iter().map(|at| self.call(*at));
        let name = self.put_of(job).and_then(|put| Some((put.topic.clone(), put.key.clone()?)));
        let by_key = name.and_then(|name| self.key_cancels.get(&name));
        let unanswered = by_key.into_iter().flatten().map(|at| self.call(*at));
        let unanswered = unanswered.filter(|call| call.told.is_none());
        acks.chain(cancels).chain(unanswered).filter(|call| !call.changed_nothing())
    }

    /// All lines about a job, for people.
    pub(super) fn story(&self, id: u64) -> String {
        let Some(job) = self.jobs.get(&id) else { return String::new() };
        let mut lines = BTreeMap::new();
        let calls = job.created.iter().chain(&job.tokens).chain(&job.cancels);
        for call in calls.chain(&job.reschedules).map(|at| self.call(*at)) {
            let told = call.told.as_ref().map(|(mark, answer)| (mark.line, answer));
            lines.insert(call.asked.line, format!("{:?} -> {told:?}", call.ask));
        }
        for take in &job.takes {
            let text = format!("asked on line {}: {:?}", take.asked.line, take.job);
            lines.insert(take.told.line, text);
        }
        for dump in &self.dumps {
            let text = format!("dump: {:?}", dump.jobs.get(&id));
            lines.insert(dump.line, text);
        }
        let shown = lines.iter().map(|(line, text)| format!("\n  {line}: {text}"));
        format!("\njob {id}:{}", shown.collect::<String>())
    }
}
