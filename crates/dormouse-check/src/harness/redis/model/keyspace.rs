//! Invariants of the keys of every partition, whatever happened. Read as Redis has it, by
//! nothing of the crate under test.

use std::collections::{BTreeMap, BTreeSet};

use crate::harness::redis::{RedisServer, Reply};

/// 2^45: where the scores of leases begin.
const ZONE: f64 = 35_184_372_088_832.0;

type Key = Vec<u8>;

/// The keys of one partition.
struct Partition<'a> {
    redis: &'a RedisServer,
    tag: String,
    priorities: Vec<u32>,
    now_ms: u64,
}

/// Checks all partitions of topics.
pub(crate) fn check_keys(redis: &RedisServer, now_ms: u64) -> Result<(), String> {
    let mut partitions: BTreeMap<String, Vec<u32>> = BTreeMap::new();
    for key in texts(&redis.must(&["KEYS", "dormouse:*"])) {
        let key = String::from_utf8_lossy(&key).into_owned();
        let parts = key.strip_prefix("dormouse:{").and_then(|key| key.split_once("}:"));
        let (tag, name) = parts.ok_or_else(|| format!("a strange key: {key}"))?;
        if tag.starts_with('-') {
            continue;
        }
        let priorities = partitions.entry(tag.to_owned()).or_default();
        priorities.extend(name.strip_prefix('z').and_then(|number| number.parse::<u32>().ok()));
    }
    for (tag, priorities) in partitions {
        let partition = Partition { redis, tag, priorities, now_ms };
        partition.check().map_err(|why| format!("keys of {}: {why}", partition.tag))?;
    }
    Ok(())
}

impl Partition<'_> {
    fn ask(&self, words: &[&str], name: &str, rest: &[&str]) -> Reply {
        let key = format!("dormouse:{{{}}}:{name}", self.tag);
        let words: Vec<&str> = words.iter().copied().chain([key.as_str()]).collect();
        self.redis.must(&words.into_iter().chain(rest.iter().copied()).collect::<Vec<_>>())
    }

    fn members(&self, name: &str) -> Vec<(Key, f64)> {
        let all = texts(&self.ask(&["ZRANGE"], name, &["0", "-1", "WITHSCORES"]));
        let score = |text: &[u8]| String::from_utf8_lossy(text).parse().unwrap_or(f64::NAN);
        all.chunks(2).map(|pair| (pair[0].clone(), score(&pair[1]))).collect()
    }

    fn fields(&self, name: &str) -> BTreeMap<Key, Key> {
        let all = texts(&self.ask(&["HGETALL"], name, &[]));
        all.chunks(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect()
    }

    fn check(&self) -> Result<(), String> {
        let records: BTreeSet<Key> = texts(&self.ask(&["HKEYS"], "j", &[])).into_iter().collect();
        let progress = self.fields("f");
        let mut rests = BTreeMap::new();
        let mut first_end = f64::INFINITY;
        for priority in &self.priorities {
            for (id, score) in self.members(&format!("z{priority}")) {
                if (ZONE..2.0 * ZONE).contains(&score) {
                    first_end = first_end.min(score - ZONE);
                }
                if (ZONE..3.0 * ZONE).contains(&score) && !progress.contains_key(&id) {
                    return Err(format!("job {id:x?} is leased and has no fence"));
                }
                if let Some(said) = progress.get(&id).and_then(|bytes| bytes.get(12..16))
                    && said != priority.to_be_bytes()
                {
                    return Err(format!(
                        "job {id:x?} rests in z{priority}, its progress says {said:?}"
                    ));
                }
                once(&mut rests, id, format!("z{priority}"))?;
            }
        }
        for name in ["d", "o", "l"] {
            for (id, _) in self.members(name) {
                once(&mut rests, id, name.to_owned())?;
            }
        }
        let dying = self.members("e");
        if let Some((id, _)) = dying.iter().find(|(id, _)| !records.contains(id)) {
            return Err(format!("a deadline of {id:x?}, which is gone"));
        }
        self.check_deadline(dying.first().map_or(f64::INFINITY, |(_, at)| *at))?;
        let resting: BTreeSet<Key> = rests.keys().cloned().collect();
        if resting != records {
            return Err(format!("records {records:x?} but resting {resting:x?}"));
        }
        if let Some(id) = progress.keys().find(|id| !records.contains(*id)) {
            return Err(format!("the fence of {id:x?} has no job"));
        }
        self.check_names(&records)?;
        self.check_groups(&progress)?;
        self.check_schedules()?;
        self.check_bound(first_end)
    }

    /// Every key has its job or a hold, every hold its key.
    fn check_names(&self, records: &BTreeSet<Key>) -> Result<(), String> {
        let names = self.fields("k");
        let holds: BTreeSet<Key> = self.members("h").into_iter().map(|(key, _)| key).collect();
        for (key, id) in &names {
            if !records.contains(id) && !holds.contains(key) {
                let key = String::from_utf8_lossy(key);
                return Err(format!(
                    "key {key} belongs to {id:x?}, which is gone and holds nothing"
                ));
            }
        }
        match holds.iter().find(|key| !names.contains_key(*key)) {
            Some(key) => Err(format!("the hold of {} is of no key", String::from_utf8_lossy(key))),
            None => Ok(()),
        }
    }

    /// A parked job is among those of its group, and no other is; a leased job with a group has a
    /// slot, and every slot has an end.
    fn check_groups(&self, progress: &BTreeMap<Key, Key>) -> Result<(), String> {
        let keys = |name: &str| -> BTreeSet<Key> {
            self.members(name).into_iter().map(|(member, _)| member).collect()
        };
        let (slots, listed, instants) = (keys("g"), keys("q"), keys("i"));
        let mut parked = BTreeSet::new();
        for priority in &self.priorities {
            for (id, score) in self.members(&format!("z{priority}")) {
                if score >= 3.0 * ZONE {
                    let at = (score % ZONE) as u64;
                    let zone = (score / ZONE) as u8;
                    let mut rest = priority.to_be_bytes().to_vec();
                    rest.extend_from_slice(&at.to_be_bytes()[2..]);
                    rest.extend_from_slice(&id);
                    rest.push(zone);
                    parked.insert(rest);
                } else if score >= ZONE
                    && let Some(group) = progress.get(&id).and_then(|text| group_of(text))
                    && score % ZONE > self.now_ms as f64
                {
                    let slot = [group, id.as_slice()].concat();
                    if !slots.contains(&slot) || !instants.contains(&slot) {
                        return Err(format!("job {id:x?} is leased and has no slot"));
                    }
                }
            }
        }
        let of_group = |member: &Key| member[member.len().saturating_sub(19)..].to_vec();
        let listed: BTreeSet<Key> = listed.iter().map(of_group).collect();
        if listed != parked {
            return Err(format!("parked {parked:x?}, groups have {listed:x?}"));
        }
        match slots.iter().find(|slot| !instants.contains(*slot)) {
            Some(slot) => Err(format!("slot {slot:x?} has no end")),
            None => Ok(()),
        }
    }

    /// Every schedule has a record and an instant.
    fn check_schedules(&self) -> Result<(), String> {
        let timed: BTreeSet<Key> = self.members("t").into_iter().map(|(name, _)| name).collect();
        let kept: BTreeSet<Key> = self.fields("n").into_keys().collect();
        if timed == kept { Ok(()) } else { Err(format!("schedules {kept:x?}, timed {timed:x?}")) }
    }

    /// A number of the partition header.
    fn header(&self, index: usize) -> Option<f64> {
        let state = self.fields("s");
        let header = state.get(b"b".as_slice())?;
        Some(f64::from_be_bytes(*header.get(8 * index..)?.first_chunk()?))
    }

    /// No deadline is before the instant in the partition header, its last number.
    fn check_deadline(&self, first: f64) -> Result<(), String> {
        match self.header(14) {
            Some(bound) if bound > first => {
                Err(format!("a deadline is at {first}, the header says {bound}"))
            }
            _ => Ok(()),
        }
    }

    /// No lease ends before the instant in the partition header, its fourth number.
    fn check_bound(&self, first_end: f64) -> Result<(), String> {
        let bound = self.header(3);
        if first_end.is_finite() && bound.is_none_or(|bound| bound > first_end) {
            return Err(format!("a lease ends at {first_end}, the header says {bound:?}"));
        }
        Ok(())
    }
}

fn once(rests: &mut BTreeMap<Key, String>, id: Key, at: String) -> Result<(), String> {
    let text = format!("{id:x?} rests in {at}");
    match rests.insert(id, at) {
        None => Ok(()),
        Some(before) => Err(format!("{text} and in {before}")),
    }
}

/// The group of a progress, with its length before it, if there is one: after 47 bytes of numbers,
/// the last of which are the flags.
fn group_of(progress: &[u8]) -> Option<&[u8]> {
    let rest = progress.get(47..).filter(|_| progress[46] & 128 != 0)?;
    let length = usize::from(u16::from_be_bytes(*rest.first_chunk()?));
    rest.get(..2 + length)
}

fn texts(reply: &Reply) -> Vec<Key> {
    reply.list().iter().map(|item| item.bytes().to_vec()).collect()
}
