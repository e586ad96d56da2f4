//! What holders have: the counts are those of the leases and locks there are, and bound the next.

use std::collections::BTreeMap;

use bytes::Bytes;
use dormouse_core::backend::{Answer, Request, Ticket};
use dormouse_core::command::{Command, Reply};
use dormouse_core::error::{Code, Error};
use dormouse_core::fact::{Cause, Fact};
use dormouse_core::holder::{HolderId, Holdings};
use dormouse_core::job::Token;
use dormouse_core::limits::{BODY_BYTES_MAX, LEASED_BYTES_MAX, LOCKS_MAX, TICK_MAX};
use dormouse_core::machine::{Machine, Output};
use dormouse_core::op::*;
use dormouse_core::timeline::Timeline;

use crate::support::*;

/// Who took each lease and lock, by the requests and their answers alone.
#[derive(Default)]
pub(crate) struct HolderModel {
    asked: BTreeMap<Ticket, (Command, HolderId)>,
    /// By the number of the grant, which no other lease or lock has.
    holders: BTreeMap<u64, HolderId>,
}

impl HolderModel {
    pub(crate) fn ask(&mut self, ticket: Ticket, command: &Command, holder: Option<HolderId>) {
        if let Some(holder) = holder {
            self.asked.insert(ticket, (command.clone(), holder));
        }
    }

    /// A lease that ran out and was taken back counts anew.
    pub(crate) fn note_facts(&mut self, facts: &[Fact]) {
        for fact in facts {
            if let Fact::Move { progress, cause: Cause::Extend, .. } = fact {
                self.holders.remove(&progress.fence);
            }
        }
    }

    pub(crate) fn note(&mut self, ticket: Ticket, answer: &Answer) {
        let Some((command, holder)) = self.asked.remove(&ticket) else { return };
        match (command, answer) {
            (_, Ok(Reply::Jobs(jobs))) => {
                jobs.iter().for_each(|job| self.count(job.token.fence, holder));
            }
            (_, Ok(Reply::Lock(lock))) => self.count(lock.fence, holder),
            (Command::Extend(items), Ok(Reply::Extended(replies))) => {
                for (item, _) in items.iter().zip(replies).filter(|(_, reply)| reply.is_ok()) {
                    self.count(item.token.fence, holder);
                }
            }
            _ => {}
        }
    }

    fn count(&mut self, fence: u64, holder: HolderId) {
        self.holders.entry(fence).or_insert(holder);
    }

    /// Whether the machine's counts are what its leases and locks say.
    pub(crate) fn compare<T: Timeline>(&mut self, machine: &Machine<T>) {
        let mut expected: BTreeMap<HolderId, Holdings> = BTreeMap::new();
        let mut alive = BTreeMap::new();
        let leases = machine.lease_images().map(|lease| (lease.job.progress.fence, lease.job));
        for (fence, job) in leases {
            let Some(&holder) = self.holders.get(&fence) else { continue };
            let held = expected.entry(holder).or_default();
            held.jobs += 1;
            held.bytes += u64::from(job.progress.bytes);
            alive.insert(fence, holder);
        }
        for lock in machine.lock_images() {
            let Some(&holder) = self.holders.get(&lock.fence) else { continue };
            expected.entry(holder).or_default().locks += 1;
            alive.insert(lock.fence, holder);
        }
        // A lease that ended counts anew if it is taken back.
        self.holders = alive;
        assert_eq!(machine.holdings().collect::<BTreeMap<_, _>>(), expected);
    }
}

fn holdings(rig: &Rig, holder: Option<HolderId>) -> Holdings {
    let of_all: BTreeMap<HolderId, Holdings> = rig.machine.holdings().collect();
    of_all.get(&holder.unwrap()).copied().unwrap_or_default()
}

const NAMES: [&str; 8] = ["a", "b", "c", "d", "e", "f", "g", "h"];

/// Leases jobs of 1 MiB, of each topic in turn, until that is refused; gives them and the refusal.
fn lease_all(rig: &mut Rig, holder: Option<HolderId>) -> (Vec<Token>, Error) {
    let body = Bytes::from(vec![0; BODY_BYTES_MAX]);
    let mut taken = Vec::new();
    loop {
        let name = NAMES[taken.len() % NAMES.len()];
        rig.put(Put::new(topic(name), body.clone()));
        match rig.run_by(holder, Command::Reserve(reserve(&[name], 1, 0))) {
            Ok(reply) => taken.extend(jobs(Ok(reply)).iter().map(|job| job.token)),
            Err(error) => return (taken, error),
        }
    }
}

#[test]
fn leases_are_shared_by_holders_whatever_their_topics() {
    let mut rig = Rig::new();
    let [a, b, c] = [(); 3].map(|()| HolderId::next());
    let full = LEASED_BYTES_MAX as usize / BODY_BYTES_MAX;
    let (of_a, error) = lease_all(&mut rig, a);
    assert_eq!(of_a.len(), full / 2, "whoever is alone has half");
    let words = ["this token has 128 jobs of 134217728 bytes", "share", "268435456", "ack"];
    says(&error, Code::Busy, &words);
    let (of_b, error) = lease_all(&mut rig, b);
    assert_eq!(of_b.len(), full / 4);
    says(&error, Code::Busy, &["this token has 64 jobs", "share"]);
    // By its id, too.
    let id = rig.put_now("z");
    let by_id = || Command::ReserveId(ReserveId { id, ttr_ms: None, session: None });
    says(&rig.run_by(a, by_id()).unwrap_err(), Code::Busy, &words);
    rig.run_by(c, by_id()).unwrap();
    // Who is not counted is bounded by the topics alone, and ends where all is used.
    let (_, error) = lease_all(&mut rig, None);
    says(&error, Code::Busy, &["jobs of 268435", "the limit is"]);
}

#[test]
fn an_ended_lease_gives_its_share_back() {
    let mut rig = Rig::new();
    let a = HolderId::next();
    let (taken, _) = lease_all(&mut rig, a);
    let _ = lease_all(&mut rig, HolderId::next());
    rig.ack(taken[0]).unwrap();
    assert_eq!(holdings(&rig, a).jobs, taken.len() as u64 - 1);
    // Still more than a quarter: what was given back is for others.
    let small = || Command::Reserve(reserve(&["z"], 1, 0));
    rig.put_now("z");
    says(&rig.run_by(a, small()).unwrap_err(), Code::Busy, &["this token has 127 jobs"]);
    taken[1..=64].iter().for_each(|token| assert!(rig.ack(*token).is_ok()));
    assert_eq!(jobs(rig.run_by(a, small())).len(), 1);
}

/// A token that waits must not hold up those who came after it.
#[test]
fn a_waiting_reserve_beyond_its_share_lets_others_pass() {
    let mut rig = Rig::new();
    let [a, b] = [(); 2].map(|()| HolderId::next());
    let _ = lease_all(&mut rig, a);
    let wait = || Command::Reserve(reserve(&["z"], 1, 60_000));
    let (first, second) = (rig.begin_by(a, wait()), rig.begin_by(b, wait()));
    let id = rig.put_now("z");
    says(&rig.answer(first).unwrap().unwrap_err(), Code::Busy, &["this token", "share"]);
    assert_eq!(ids(&jobs(rig.answer(second).unwrap())), [id.0]);
}

#[test]
fn a_lease_that_ran_out_counts_for_who_takes_it_back() {
    let mut rig = Rig::new();
    let [a, b] = [(); 2].map(|()| HolderId::next());
    rig.put(Put { ttr_ms: Some(10), ..Put::new(topic("t"), "body") });
    let lease = jobs(rig.run_by(a, Command::Reserve(reserve(&["t"], 1, 0)))).pop().unwrap();
    let extend = || Command::Extend(vec![Extend { token: lease.token, ttr_ms: None }]);
    rig.run_by(b, extend()).unwrap();
    assert_eq!((holdings(&rig, a).jobs, holdings(&rig, b).jobs), (1, 0), "it stays with the first");
    rig.pass(10);
    assert_eq!(rig.machine.holdings().count(), 0);
    rig.run_by(b, extend()).unwrap();
    assert_eq!((holdings(&rig, a).jobs, holdings(&rig, b).jobs), (0, 1));
}

#[test]
fn what_outlives_a_restart_counts_again_when_it_is_prolonged() {
    let mut rig = Rig::new();
    let a = HolderId::next();
    rig.put_now("t");
    let lease = jobs(rig.run_by(a, Command::Reserve(reserve(&["t"], 1, 0)))).pop().unwrap();
    rig.run_by(a, lock("l", "o", 0)).unwrap();
    assert_eq!(holdings(&rig, a), Holdings { jobs: 1, bytes: lease.bytes(), locks: 1 });
    let facts = std::mem::take(&mut rig.facts);
    let mut again = Rig::new();
    facts.into_iter().for_each(|fact| again.machine.replay(fact));
    again.machine.recovered(again.now, &mut Output::default()).unwrap();
    assert_eq!(again.machine.holdings().count(), 0);
    again.run_by(a, Command::Extend(vec![Extend { token: lease.token, ttr_ms: None }])).unwrap();
    let renew = RenewLock { name: bytes("l"), owner: bytes("o"), ttl_ms: None };
    again.run_by(a, Command::RenewLock(renew)).unwrap();
    assert_eq!(holdings(&again, a), Holdings { jobs: 1, bytes: lease.bytes(), locks: 1 });
}

fn lock(name: &str, owner: &str, wait_ms: i64) -> Command {
    Command::Lock(Lock { name: bytes(name), owner: bytes(owner), ttl_ms: 86_400_000, wait_ms })
}

/// Takes a lock without a look at all jobs, which a rig has after each step.
fn take_lock(rig: &mut Rig, holder: Option<HolderId>, name: &str) -> Result<(), Error> {
    let request = Request { holder, ..Request::new(Ticket::next(), lock(name, "o", 0)) };
    let mut out = Output::default();
    rig.machine.step(rig.now, request, &mut out).unwrap();
    out.answers.pop().unwrap().1.map(drop)
}

#[test]
fn locks_are_shared_by_holders() {
    let mut rig = Rig::new();
    let [a, b] = [(); 2].map(|()| HolderId::next());
    rig.run_by(b, lock("of b", "o", 0)).unwrap();
    let mut taken = 0;
    let error = loop {
        match take_lock(&mut rig, a, &format!("l{taken}")) {
            Ok(()) => taken += 1,
            Err(error) => break error,
        }
    };
    assert_eq!(taken, LOCKS_MAX / 2 - 1);
    says(&error, Code::Busy, &["this token holds 499999 locks", "share", "1000000", "release"]);
    rig.run_by(b, lock("another of b", "o", 0)).unwrap();
    // Nor does it get more by waiting: the next who waits does.
    let waiting = rig.begin_by(a, lock("of b", "a", 60_000));
    let behind = rig.begin_by(b, lock("of b", "b", 60_000));
    rig.run_by(b, Command::Unlock(Unlock { name: bytes("of b"), owner: bytes("o") })).unwrap();
    says(&rig.answer(waiting).unwrap().unwrap_err(), Code::Busy, &["this token holds", "share"]);
    assert!(matches!(rig.answer(behind), Some(Ok(Reply::Lock(_)))));
    // Taking an own lock again is none more, and one that is given back makes room.
    rig.run_by(a, lock("l0", "o", 0)).unwrap();
    let unlock = |name: &str| Command::Unlock(Unlock { name: bytes(name), owner: bytes("o") });
    rig.run_by(a, unlock("l1")).unwrap();
    rig.run_by(b, unlock("another of b")).unwrap();
    rig.run_by(a, lock("l1", "o", 0)).unwrap();
    // So many are refused in one step, and no more.
    rig.run_by(b, lock("another of b", "o", 0)).unwrap();
    let many = (0..=TICK_MAX).map(|at| rig.begin_by(a, lock("of b", &format!("w{at}"), 60_000)));
    let many: Vec<Ticket> = many.collect();
    rig.run_by(b, Command::Unlock(Unlock { name: bytes("of b"), owner: bytes("b") })).unwrap();
    let answers: Vec<_> = many.iter().map(|ticket| rig.answer(*ticket).unwrap()).collect();
    assert_eq!(answers.iter().filter(|answer| answer.is_err()).count(), TICK_MAX);
    assert!(answers.last().unwrap().is_ok());
}
