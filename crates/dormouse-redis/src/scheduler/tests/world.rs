//! A server with its partitions, the network and Redis, step by step, and what must hold.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::time::Duration;

use super::super::{
    Action, BATCH_JOBS_MAX, Batch, NewWaiter, Now, PartitionNo, RECHECK, Scheduler, WaiterNo,
};
use super::fake::{FakePartition, Kind, Lease, PRIORITY, Reply, Script, TestRequest, Verdict};

/// How a request was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answered {
    Delivered,
    /// It was sent and not answered in time.
    Unconfirmed,
    /// It was not executed, and must not be later.
    Refused,
}

/// A call of the cluster client: sent until it is answered.
struct Call {
    id: u64,
    script: Script,
    /// It was sent, or an earlier copy of its batch was: that may still be executed.
    is_sent: bool,
    was_resent: bool,
}

/// The connection of the server to a partition's node.
#[derive(Default)]
struct Link {
    is_down: bool,
    calls: Vec<Call>,
    requests: VecDeque<u64>,
    replies: VecDeque<(u64, Option<Verdict>)>,
    /// Copies on abandoned connections.
    strays: Vec<Script>,
    is_subscribed: bool,
    wakeups: VecDeque<u64>,
}

struct TestWaiter {
    max: usize,
    is_blocking: bool,
    /// It has no submission, so that nothing but its number decides when it is served.
    is_free: bool,
    partitions: Vec<PartitionNo>,
    is_done: bool,
}

pub(super) struct World {
    pub(super) scheduler: Scheduler<TestRequest, Reply>,
    pub(super) fakes: Vec<FakePartition>,
    links: Vec<Link>,
    needs_action: Vec<bool>,
    pub(super) now: Now,
    last_no: u64,
    answers: HashMap<u64, Answered>,
    open: HashSet<u64>,
    executed: HashSet<u64>,
    last_places: HashMap<(PartitionNo, u64), u64>,
    last_sent: HashMap<(PartitionNo, u8), (u64, Vec<u64>)>,
    waiters: BTreeMap<WaiterNo, TestWaiter>,
    held: HashMap<Lease, PartitionNo>,
}

impl World {
    pub(super) fn new(partitions: usize, replicas: u32) -> World {
        let now = Now { steady: Duration::from_secs(1), redis_ms: 1_000 };
        let mut scheduler = Scheduler::new(replicas, 0);
        for no in 0..partitions {
            let recheck = RECHECK + RECHECK / 50 * u32::try_from(no).unwrap();
            assert_eq!(scheduler.add_partition(partitions, recheck, now), no);
        }
        World {
            scheduler,
            fakes: (0..partitions).map(|_| FakePartition::default()).collect(),
            links: (0..partitions).map(|_| Link::default()).collect(),
            needs_action: vec![true; partitions],
            now,
            last_no: 0,
            answers: HashMap::new(),
            open: HashSet::new(),
            executed: HashSet::new(),
            last_places: HashMap::new(),
            last_sent: HashMap::new(),
            waiters: BTreeMap::new(),
            held: HashMap::new(),
        }
    }

    fn next_no(&mut self) -> u64 {
        self.last_no += 1;
        self.last_no
    }

    pub(super) fn submit(&mut self, no: PartitionNo, submission: Option<(u64, u64)>, kind: Kind) {
        let request = TestRequest { no: self.next_no(), submission, kind };
        self.open.insert(request.no);
        self.scheduler.submit(no, submission.map(|(no, _)| no), request, self.now);
        self.needs_action[no] = true;
    }

    pub(super) fn park(&mut self, waiter: NewWaiter, partitions: &[PartitionNo]) -> WaiterNo {
        let no = self.next_no();
        let NewWaiter { max, is_blocking, submission, .. } = waiter;
        let (is_free, partitions_here) = (submission.is_none(), partitions.to_vec());
        let its =
            TestWaiter { max, is_blocking, is_free, partitions: partitions_here, is_done: false };
        self.waiters.insert(no, its);
        self.scheduler.park(no, waiter, partitions, self.now);
        if is_blocking {
            for &partition in partitions {
                if self.scheduler.subscribe(partition, self.now) {
                    self.links[partition].is_subscribed = true;
                    self.scheduler.poll_now(partition);
                }
            }
        }
        self.wake_others();
        no
    }

    /// Withdraws the n-th waiter that is not done.
    pub(super) fn withdraw(&mut self, n: usize) {
        if let Some((&no, waiter)) = self.waiters.iter_mut().filter(|(_, w)| !w.is_done).nth(n) {
            waiter.is_done = true;
            self.scheduler.remove_waiter(no);
            self.wake_others();
        }
    }

    /// Acks or releases some of the leases that are held at a partition.
    pub(super) fn end_leases(&mut self, no: PartitionNo, most: usize, release: bool) {
        let held: Vec<Lease> = self
            .held
            .iter()
            .filter(|(_, at)| **at == no)
            .map(|(lease, _)| *lease)
            .take(most)
            .collect();
        self.held.retain(|lease, _| !held.contains(lease));
        if !held.is_empty() {
            self.submit(no, None, if release { Kind::Release(held) } else { Kind::Ack(held) });
        }
    }

    pub(super) fn advance(&mut self, by_ms: u64) {
        self.now.steady += Duration::from_millis(by_ms);
        self.now.redis_ms += by_ms;
    }

    fn wake_others(&mut self) {
        for no in self.scheduler.take_news().woken {
            self.needs_action[no] = true;
        }
    }

    /// Performs the actions of all partitions that have a reason for one.
    pub(super) fn perform(&mut self) {
        let mut rounds = 0;
        while let Some(no) = (0..self.links.len()).find(|&no| self.is_due(no)) {
            self.needs_action[no] = false;
            while let Some(action) = self.scheduler.next_action(no, self.now) {
                self.act(no, action);
            }
            self.wake_others();
            rounds += 1;
            assert!(rounds < 1_000, "it is woken for ever, with nothing to do");
        }
    }

    fn is_due(&self, no: PartitionNo) -> bool {
        let wake_at = self.scheduler.wake_at(no, self.now);
        self.needs_action[no]
            || wake_at.steady.is_some_and(|at| at <= self.now.steady)
            || wake_at.redis_ms.is_some_and(|at| at <= self.now.redis_ms)
    }

    fn act(&mut self, no: PartitionNo, action: Action<TestRequest, Reply>) {
        match action {
            Action::Send { sequence } => self.send(no, sequence),
            Action::Deliver { batch, reply, is_reordered } => {
                self.deliver(no, batch, reply);
                self.scheduler.delivered(no, is_reordered);
            }
            Action::TimeOut { sequence, waiters } => {
                let is_sent = self.links[no]
                    .calls
                    .iter()
                    .any(|call| call.script.sequence == sequence && call.is_sent);
                let (_, batch) = self.scheduler.batch(no, sequence).expect("it is in flight");
                let requests: Vec<_> = batch.requests.iter().map(|request| request.no).collect();
                let answer = if is_sent { Answered::Unconfirmed } else { Answered::Refused };
                requests.into_iter().for_each(|request| self.answer(request, answer));
                if !is_sent {
                    self.scheduler.clear(no, sequence);
                }
                self.refuse_waiters(waiters);
            }
            Action::Refuse { requests, waiters } => {
                requests.into_iter().for_each(|request| self.answer(request.no, Answered::Refused));
                self.refuse_waiters(waiters);
            }
            Action::Unsubscribe => self.links[no].is_subscribed = false,
            Action::GiveTicks => unreachable!("no partition of this world has schedules"),
        }
    }

    fn send(&mut self, no: PartitionNo, sequence: u8) {
        let id = self.next_no();
        let about_ms = self.now.redis_ms;
        let (number, batch) = self.scheduler.batch(no, sequence).expect("it is in flight");
        let (requests, polls) = (batch.requests.clone(), batch.polls.clone());
        let jobs: usize =
            requests.iter().map(|request| super::super::Request::weight(request).jobs).sum();
        assert!(requests.len() <= 1 || jobs <= BATCH_JOBS_MAX, "{jobs} jobs in a batch");
        assert!(requests.is_sorted_by_key(super::super::Request::phase), "batch order");
        let nos: Vec<u64> = requests.iter().map(|request| request.no).collect();
        let link = &mut self.links[no];
        let before = link.calls.iter().find(|call| call.script.sequence == sequence);
        let (is_repeat, was_sent) = (before.is_some(), before.is_some_and(|call| call.is_sent));
        link.calls.retain(|call| call.script.sequence != sequence);
        let last = self.last_sent.insert((no, sequence), (number, nos.clone()));
        if let Some((last, last_nos)) = last {
            let is_same = number == last && (nos == last_nos || nos.is_empty());
            assert!(if is_repeat { is_same } else { number > last }, "the number of a repeat");
        }
        let waits = |script: &Script| script.polls.iter().any(|poll| poll.waits);
        let others_wait = link.calls.iter().any(|call| waits(&call.script));
        let is_beside = !is_repeat && !polls.is_empty() && others_wait;
        assert!(!is_beside, "a poll beside one for a blocking waiter");
        let waiters: Vec<_> = polls.iter().flat_map(|poll| poll.waiters.clone()).collect();
        let script = Script { sequence, number, about_ms, requests, polls };
        if !link.is_down {
            link.requests.push_back(id);
        }
        let is_sent = was_sent || !link.is_down;
        link.calls.push(Call { id, script, is_sent, was_resent: was_sent });
        for other in (0..self.links.len()).filter(|other| *other != no) {
            let polled = self.polled(other);
            let twice = waiters.iter().find(|waiter| polled.contains(waiter));
            assert!(twice.is_none() || is_repeat, "two partitions poll for {twice:?}");
        }
    }

    fn answer(&mut self, request: u64, answer: Answered) {
        let is_late = answer == Answered::Delivered
            && self.answers.get(&request) == Some(&Answered::Unconfirmed);
        if is_late {
            return;
        }
        let before = self.answers.insert(request, answer);
        assert_eq!(before, None, "request {request} is answered twice, now {answer:?}");
        self.open.remove(&request);
        let is_executed = self.executed.contains(&request);
        assert!(answer != Answered::Refused || !is_executed, "refused, but executed");
    }

    fn refuse_waiters(&mut self, waiters: Vec<WaiterNo>) {
        waiters.into_iter().for_each(|waiter| self.serve(waiter, 0, Vec::new()));
    }

    fn deliver(&mut self, no: PartitionNo, batch: Batch<TestRequest>, reply: Reply) {
        for request in &batch.requests {
            self.answer(request.no, Answered::Delivered);
            // As `partition/deliver.rs` does: the end of a lease may make any job visible.
            if matches!(request.kind, Kind::Release(_)) {
                self.scheduler.heads_mut(no).invalidate();
            }
        }
        for (due_at, id) in reply.puts {
            self.scheduler.heads_mut(no).lower(PRIORITY, due_at, id);
        }
        for (poll, (jobs, report)) in batch.polls.iter().zip(reply.polls) {
            self.scheduler.heads_mut(no).update(&report, &[PRIORITY]);
            let outcome = self.scheduler.polled(no, poll, jobs);
            for (waiter, jobs) in outcome.done {
                self.serve(waiter, no, jobs);
            }
            if !outcome.left.is_empty() {
                self.submit(no, None, Kind::Release(outcome.left));
            }
        }
    }

    fn serve(&mut self, waiter: WaiterNo, no: PartitionNo, jobs: Vec<Lease>) {
        let its = self.waiters.get_mut(&waiter).expect("it was parked");
        assert!(!std::mem::replace(&mut its.is_done, true), "a waiter is answered twice");
        assert!(jobs.len() <= its.max, "more jobs than asked for");
        let (is_blocking, partitions) = (its.is_blocking && its.is_free, its.partitions.clone());
        if is_blocking && partitions.len() == 1 && !jobs.is_empty() {
            let is_older = |(_, other): &(&u64, &TestWaiter)| {
                !other.is_done
                    && other.is_blocking
                    && other.is_free
                    && other.partitions == partitions
            };
            let older = self.waiters.range(..waiter).find(is_older);
            assert!(older.is_none(), "{waiter} is served before an older one");
        }
        self.held.extend(jobs.into_iter().map(|lease| (lease, no)));
    }

    /// A request reaches Redis; its reply is on its way, or an error that the client cures.
    pub(super) fn reach_redis(&mut self, no: PartitionNo, error: bool) -> bool {
        let Some(id) = self.links[no].requests.pop_front() else {
            return false;
        };
        let link = &self.links[no];
        let Some(call) = link.calls.iter().find(|call| call.id == id) else {
            return true;
        };
        let verdict = if error { None } else { Some(self.execute(no, &call.script.clone())) };
        self.links[no].replies.push_back((id, verdict));
        true
    }

    /// A copy on an abandoned connection reaches Redis.
    pub(super) fn deliver_stray(&mut self, no: PartitionNo, n: usize) {
        let strays = &mut self.links[no].strays;
        if !strays.is_empty() {
            let script = strays.swap_remove(n % strays.len());
            self.execute(no, &script);
        }
    }

    fn execute(&mut self, no: PartitionNo, script: &Script) -> Verdict {
        let verdict = self.fakes[no].execute(script, self.now.redis_ms);
        for request in std::mem::take(&mut self.fakes[no].executed) {
            let answer = self.answers.get(&request.no);
            // What changes nothing is not remembered, and may be executed again.
            let is_known = answer.is_some() || self.executed.contains(&request.no);
            if request.kind == Kind::Read && is_known {
                continue;
            }
            assert_eq!(answer, None, "executed after it was answered: {request:?}");
            assert!(self.executed.insert(request.no), "executed twice");
            if let Some((submission, place)) = request.submission {
                let last = self.last_places.insert((no, submission), place);
                assert!(last < Some(place), "executed out of order");
            }
        }
        if self.links[no].is_subscribed {
            let published = std::mem::take(&mut self.fakes[no].published);
            self.links[no].wakeups.extend(published);
        }
        verdict
    }

    /// A reply reaches the server.
    pub(super) fn reach_server(&mut self, no: PartitionNo) -> bool {
        let link = &mut self.links[no];
        let Some((id, verdict)) = link.replies.pop_front() else {
            return false;
        };
        let Some(index) = link.calls.iter().position(|call| call.id == id) else {
            return true;
        };
        let Some(verdict) = verdict else {
            // MOVED, ASK, CLUSTERDOWN, LOADING, NOSCRIPT: the client sends it again.
            link.calls[index].was_resent = true;
            link.requests.push_back(id);
            return true;
        };
        let call = match verdict {
            Verdict::Again => None,
            _ => Some(link.calls.remove(index)),
        };
        match (verdict, call) {
            (Verdict::Done(reply), Some(call)) => {
                self.scheduler.completed(no, call.script.sequence, reply, call.was_resent);
            }
            (Verdict::Late, _) => panic!("a call under way is late"),
            _ => {
                let sequence = self.links[no].calls[index].script.sequence;
                self.scheduler.again(no, sequence);
                if self.scheduler.batch(no, sequence).is_none() {
                    self.links[no].calls.remove(index);
                }
            }
        }
        self.needs_action[no] = true;
        true
    }

    /// Redis refuses the batch that was sent first, as at maxmemory: nothing is executed.
    pub(super) fn refuse_batch(&mut self, no: PartitionNo) {
        let link = &mut self.links[no];
        let is_first = |call: &Call| !call.was_resent && link.requests.contains(&call.id);
        let Some(index) = link.calls.iter().position(is_first) else {
            return;
        };
        let call = link.calls.remove(index);
        link.requests.retain(|id| *id != call.id);
        let failed = self.scheduler.failed(no, call.script.sequence, self.now);
        let (batch, waiters) = failed.expect("it is in flight");
        for request in batch.requests {
            if !self.answers.contains_key(&request.no) {
                self.answer(request.no, Answered::Refused);
            }
        }
        self.refuse_waiters(waiters);
        self.needs_action[no] = true;
        self.wake_others();
    }

    pub(super) fn wakeup(&mut self, no: PartitionNo, is_lost: bool) -> bool {
        let Some(at_ms) = self.links[no].wakeups.pop_front() else {
            return false;
        };
        if !is_lost {
            self.scheduler.wakeup(no, at_ms);
            self.needs_action[no] = true;
        }
        true
    }

    /// The connection breaks: replies are lost, requests may arrive late.
    pub(super) fn break_link(&mut self, no: PartitionNo, stays_down: bool) {
        let link = &mut self.links[no];
        let copy = |call: &Call| link.requests.contains(&call.id).then(|| call.script.clone());
        let copies: Vec<Script> = link.calls.iter().filter_map(copy).collect();
        link.strays.extend(copies);
        link.requests.clear();
        link.replies.clear();
        link.wakeups.clear();
        link.is_down = stays_down;
        self.scheduler.poll_now(no);
        self.needs_action[no] = true;
        self.resend(no);
    }

    pub(super) fn mend_link(&mut self, no: PartitionNo) {
        if std::mem::take(&mut self.links[no].is_down) {
            self.resend(no);
        }
    }

    fn resend(&mut self, no: PartitionNo) {
        let link = &mut self.links[no];
        if link.is_down {
            return;
        }
        for call in &mut link.calls {
            call.was_resent |= call.is_sent;
            call.is_sent = true;
            link.requests.push_back(call.id);
        }
    }

    /// Redis comes back without its data.
    pub(super) fn lose_data(&mut self, no: PartitionNo) {
        self.fakes[no].lose_data();
        self.held.retain(|_, at| *at != no);
        self.links[no].strays.clear();
        // What was lost may be executed again.
        for call in &self.links[no].calls {
            for request in &call.script.requests {
                self.executed.remove(&request.no);
                if let Some((submission, _)) = request.submission {
                    self.last_places.remove(&(no, submission));
                }
            }
        }
    }

    /// Time passes without faults.
    pub(super) fn run(&mut self, for_ms: u64, tick_ms: u64) {
        for _ in 0..for_ms / tick_ms {
            self.advance(tick_ms);
            for no in 0..self.links.len() {
                while self.reach_redis(no, false) {}
                while self.reach_server(no) {}
                while self.wakeup(no, false) {}
            }
            self.perform();
        }
    }

    /// All faults end; then everything is answered, and nothing is forgotten.
    pub(super) fn settle(&mut self) {
        for no in 0..self.links.len() {
            self.mend_link(no);
            self.links[no].strays.clear();
        }
        self.run(100, 1);
        self.run(2 * u64::try_from(RECHECK.as_millis()).unwrap(), 50);
        assert!(self.open.is_empty(), "never answered: {:?}", self.open);
        for (no, fake) in self.fakes.iter().enumerate() {
            let waits = self.waiters.values().any(|w| !w.is_done && w.partitions.contains(&no));
            assert!(!waits || !fake.has_visible(self.now.redis_ms), "never served");
            for lease in fake.leases(self.now.redis_ms) {
                assert!(self.held.contains_key(&lease), "nobody has {lease:?}");
            }
        }
        let immediate = self.waiters.values().find(|w| !w.is_done && !w.is_blocking);
        assert!(immediate.is_none(), "an immediate waiter is never answered");
        self.waiters.retain(|_, waiter| !waiter.is_done);
    }

    /// No jobs, and nobody waits.
    fn clear(&mut self) {
        while self.waiters.values().any(|waiter| !waiter.is_done) {
            self.withdraw(0);
        }
        self.fakes.iter_mut().for_each(FakePartition::take_all);
        self.held.clear();
        self.run(50, 1);
    }

    fn park_blocking(&mut self, partitions: &[PartitionNo]) -> WaiterNo {
        let waiter = NewWaiter { max: 1, ttr_ms: None, submission: None, is_blocking: true };
        self.park(waiter, partitions)
    }

    /// A job that another server puts is delivered at once, by its wakeup; so is one in any of the
    /// partitions at which a waiter is parked.
    pub(super) fn check_prompt(&mut self, no: PartitionNo) {
        self.clear();
        let waiter = self.park_blocking(&[no]);
        self.run(50, 1);
        let due_at = self.now.redis_ms;
        self.fakes[no].put(due_at);
        let published = std::mem::take(&mut self.fakes[no].published);
        self.links[no].wakeups.extend(published);
        self.run(50, 1);
        assert!(self.waiters[&waiter].is_done, "served late, in spite of a wakeup");

        self.clear();
        self.fakes[no].put(due_at);
        self.fakes[no].published.clear();
        let partitions: Vec<_> = (0..self.links.len()).collect();
        let waiter = self.park_blocking(&partitions);
        self.run(50, 1);
        assert!(self.waiters[&waiter].is_done, "served late by one of several partitions");
        if partitions.len() > 1 {
            self.check_away(no, &partitions);
        }
    }

    /// A partition that Redis does not answer about keeps no waiter from being served by others.
    fn check_away(&mut self, no: PartitionNo, partitions: &[PartitionNo]) {
        self.clear();
        self.break_link(no, true);
        let waiter = self.park_blocking(partitions);
        self.run(50, 1);
        let other = (no + 1) % partitions.len();
        let due_at = self.now.redis_ms;
        self.fakes[other].put(due_at);
        let published = std::mem::take(&mut self.fakes[other].published);
        self.links[other].wakeups.extend(published);
        self.run(600, 1);
        assert!(self.waiters[&waiter].is_done, "a partition that is away holds a waiter");
        self.mend_link(no);
        self.run(50, 1);
    }

    /// The waiters that a partition polls for.
    fn polled(&mut self, no: PartitionNo) -> Vec<WaiterNo> {
        let mut polled = Vec::new();
        for call in &self.links[no].calls {
            // Those of a batch that is not answered may be served elsewhere.
            let is_slow = call.was_resent || self.now.redis_ms > call.script.about_ms + 500;
            if !is_slow && let Some((_, batch)) = self.scheduler.batch(no, call.script.sequence) {
                polled.extend(batch.polls.iter().flat_map(|poll| &poll.waiters));
            }
        }
        polled
    }
}
