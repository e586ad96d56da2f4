//! The duel's tables, and what is demanded of it: ratios within a round, of which the median counts
//! and the range is shown.

use super::PeersPlan;
use super::contender::Contender;
use super::duel::{Measure, Turns};
use super::findings::Findings;
use super::load::Turn;
use crate::redis::median;
use crate::redis::table::short;

/// Two contenders, what each does, and how much faster the first must be.
struct Ratio {
    name: &'static str,
    ours: (Contender, Measure),
    theirs: (Contender, Measure),
    bar: f64,
}

const fn ratio(
    name: &'static str,
    ours: (Contender, Measure),
    theirs: (Contender, Measure),
    bar: f64,
) -> Ratio {
    Ratio { name, ours, theirs, bar }
}

const RATIOS: [Ratio; 12] = {
    use Contender::*;
    use Measure::*;
    [
        ratio(
            "PUT over RESP, synced, pipelines, to Redis always",
            (RespSynced, PutDeep),
            (RedisAlways, PutDeep),
            2.5,
        ),
        ratio(
            "PUT over RESP, synced, pipelines, to Redis everysec",
            (RespSynced, PutDeep),
            (RedisEverysec, PutDeep),
            1.8,
        ),
        ratio(
            "PUT over RESP, synced, pipeline 1, to Redis always",
            (RespSynced, Put),
            (RedisAlways, Put),
            1.5,
        ),
        ratio(
            "PUT over RESP, relaxed 50 ms, pipeline 1, to Redis everysec",
            (RespRelaxed, Put),
            (RedisEverysec, Put),
            1.3,
        ),
        ratio(
            "put over beanstalkd protocol, synced, pipeline 1, to beanstalkd -f 0",
            (BeanstalkSynced, Put),
            (BeanstalkdF0, Put),
            5.0,
        ),
        ratio(
            "put over beanstalkd protocol, synced, pipelines, to beanstalkd -f 0",
            (BeanstalkSynced, PutDeep),
            (BeanstalkdF0, PutDeep),
            20.0,
        ),
        ratio(
            "put over beanstalkd protocol, relaxed 50 ms, pipeline 1, to beanstalkd -f 50",
            (BeanstalkRelaxed, Put),
            (BeanstalkdF50, Put),
            1.2,
        ),
        ratio(
            "put over beanstalkd protocol, relaxed 50 ms, pipeline 1, to beanstalkd without log",
            (BeanstalkRelaxed, Put),
            (Beanstalkd, Put),
            1.0,
        ),
        ratio(
            "reserve + ack one by one, beanstalkd protocol, relaxed, to beanstalkd without log",
            (BeanstalkRelaxed, Take),
            (Beanstalkd, Take),
            1.0,
        ),
        ratio(
            "reserve + ack one by one, RESP, relaxed, to Redis everysec",
            (RespRelaxed, Take),
            (RedisEverysec, Take),
            1.2,
        ),
        ratio(
            "reserve + ack one by one, RESP, synced, to Redis always",
            (RespSynced, Take),
            (RedisAlways, Take),
            1.6,
        ),
        ratio(
            "RESERVE MAX 100 + ACK of 100, synced, to Redis everysec one by one",
            (RespSynced, Batch),
            (RedisEverysec, Take),
            5.0,
        ),
    ]
};

pub(super) fn report(turns: &Turns, plan: &PeersPlan, found: &mut Findings) {
    table(turns, plan, found);
    for Ratio { name, ours, theirs, bar } in RATIOS {
        let (ours, theirs) = (turns.of(ours.0, ours.1), turns.of(theirs.0, theirs.1));
        let ratios: Vec<f64> =
            ours.iter().zip(theirs).map(|(ours, theirs)| ours.per_s / theirs.per_s).collect();
        let more = format!("{} to {} jobs/s{}", per_s(ours), per_s(theirs), range(&ratios));
        let value = (!ratios.is_empty()).then(|| median(ratios));
        found.at_least(name, bar, value, &more);
    }
}

/// The least and the greatest ratio of a round.
fn range(ratios: &[f64]) -> String {
    let least = ratios.iter().copied().fold(f64::INFINITY, f64::min);
    let most = ratios.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if ratios.is_empty() { String::new() } else { format!("; {least:.2} to {most:.2} by round") }
}

fn table(turns: &Turns, plan: &PeersPlan, found: &mut Findings) {
    let mut rows = Vec::new();
    for contender in plan.contenders() {
        if found.is_absent(contender) {
            continue;
        }
        let mut row = vec![contender.name().to_owned()];
        for measure in Measure::ALL {
            let turns = turns.of(contender, measure);
            if turns.is_empty() {
                row.push(String::new());
                continue;
            }
            let (server_us, own_us) =
                (middle(turns, |turn| turn.server_us), middle(turns, |turn| turn.own_us));
            row.push(format!("{} ({server_us:.1}, {own_us:.1})", per_s(turns)));
            let name = |what| format!("{}_{}_{what}", contender.key(), measure.key());
            found.figure(name("per_s"), middle(turns, |turn| turn.per_s));
            found.figure(name("server_us"), server_us);
            found.figure(name("own_us"), own_us);
        }
        rows.push(row);
    }
    let title = format!(
        "Jobs/s, the middle of {} rounds (processor time per job in us: server, generator); {} \
         connections, bodies of 100 bytes",
        plan.rounds, plan.connections
    );
    let deep = plan.pipeline;
    let columns = [
        "contender",
        "put, pipeline 1",
        &format!("put, pipeline {deep}"),
        "take + ack, pipeline 1",
        &format!("take + ack, pipeline {deep}"),
        "batches of 100",
    ];
    found.table(&title, &columns, &rows);
}

fn middle(turns: &[Turn], figure: impl Fn(&Turn) -> f64) -> f64 {
    median(turns.iter().map(figure).collect())
}

fn per_s(turns: &[Turn]) -> String {
    if turns.is_empty() { "?".to_owned() } else { short(middle(turns, |turn| turn.per_s)) }
}
