//! Chains: no ack without its puts, and no put twice, wherever servers die.

use bytes::Bytes;
use dormouse_check::conformance::client::Client;
use dormouse_core::command::{Command, Reply};
use dormouse_core::error::{Code, Error};
use dormouse_core::job::{State, Token};
use dormouse_core::op::*;
use dormouse_core::topic::Settings;

use super::{SCRIPTS_MAX, World, counts, is_there, kept, reserve, set, topic};

/// Makes topics known, so that their registration takes no script of the chain.
fn register(client: &Client, names: &[&str]) {
    for name in names {
        client.ask(Command::Put(vec![Put::new(topic(name), "")])).unwrap();
        client.ask(Command::Purge(topic(name).into())).unwrap();
    }
}

fn done(answer: Result<Reply, Error>) -> Vec<PutReply> {
    match answer {
        Ok(Reply::Chain(ChainReply { end: EndReply::Done, puts })) => puts,
        other => panic!("{other:?}"),
    }
}

fn chain(token: Token) -> Command {
    let puts = ["mail", "next", "other"].map(|name| Put::new(topic(name), "next")).to_vec();
    Command::Chain(Chain { token, puts })
}

#[test]
fn a_chain_never_acks_without_its_puts_wherever_its_server_dies() {
    let mut is_repeated = false;
    for scripts in 0..SCRIPTS_MAX {
        let world = World::new();
        register(&world.first, &["next", "other"]);
        let lease = world.lease();
        world.die_during(chain(lease.token), scripts);
        let second = world.second();
        let begun = counts(&second, "next").1 + counts(&second, "other").1;
        if is_there(&second, lease.id) {
            assert_eq!(counts(&second, "mail").1, 0);
            is_repeated |= begun > 0;
            assert_eq!(done(second.ask(chain(lease.token))).len(), 3);
        }
        for (name, puts) in [("mail", 2), ("next", 2), ("other", 2)] {
            assert_eq!(counts(&second, name), (puts, 1), "{name} after {scripts} scripts");
        }
        assert!(!is_there(&second, lease.id));
        let Ok(Reply::Chain(again)) = second.ask(chain(lease.token)) else { panic!() };
        assert_eq!(again, ChainReply { end: EndReply::Gone, puts: Vec::new() });
    }
    assert!(is_repeated, "no server died between puts and ack");
}

/// A put with a key, which the next consumer may have taken and acked before the chain comes again.
fn keyed_chain(token: Token, on_conflict: OnConflict) -> Command {
    let key = Some(Bytes::from("k"));
    let keyed = Put { key, on_conflict, ..Put::new(topic("next"), "next") };
    Command::Chain(Chain { token, puts: vec![keyed, Put::new(topic("other"), "other")] })
}

#[test]
fn a_chain_puts_once_whatever_its_keys_and_whoever_repeats_it() {
    use OnConflict::{Keep, Latest, Reject, Replace};
    let mut repeats = 0;
    for (number, on_conflict) in [Reject, Keep, Replace, Latest].into_iter().enumerate() {
        for scripts in 1..6 {
            let world = World::new();
            register(&world.first, &["next", "other"]);
            set(&world.first, "next", kept());
            let lease = world.lease();
            world.die_during(keyed_chain(lease.token, on_conflict), scripts);
            let second = world.second();
            if !is_there(&second, lease.id) {
                continue;
            }
            let mut token = lease.token;
            if scripts % 2 == 0 {
                // The job is given to another consumer.
                let nack = Nack { token, delay_ms: Some(0), priority: None, error: None };
                second.ask(Command::Nack(vec![nack])).unwrap();
                token = reserve(&second, "mail").token;
            }
            if counts(&second, "next") == (2, 1) {
                repeats += 1;
                let next = reserve(&second, "next").token;
                if number % 2 == 1 {
                    second.ask(Command::Ack(vec![next])).unwrap();
                }
            }
            done(second.ask(keyed_chain(token, on_conflict)));
            for name in ["next", "other"] {
                let puts = counts(&second, name).0;
                assert_eq!(puts, 2, "{name}, {on_conflict:?} after {scripts} scripts");
            }
        }
    }
    assert!(repeats >= 4, "{repeats} servers died between puts and ack");
}

#[test]
fn a_chain_that_puts_something_else_is_another_one() {
    let mut is_begun = false;
    for scripts in 1..6 {
        let world = World::new();
        register(&world.first, &["next"]);
        let lease = world.lease();
        let chain = |body: &'static str| {
            let puts = vec![Put::new(topic("next"), body)];
            Command::Chain(Chain { token: lease.token, puts })
        };
        world.die_during(chain("one"), scripts);
        let second = world.second();
        if !is_there(&second, lease.id) {
            continue;
        }
        let before = counts(&second, "next").1;
        is_begun |= before > 0;
        done(second.ask(chain("another")));
        assert_eq!(counts(&second, "next").1, before + 1, "after {scripts} scripts");
    }
    assert!(is_begun, "no server died between put and ack");
}

#[test]
fn a_chain_puts_with_the_settings_that_another_server_has_set() {
    let world = World::new();
    register(&world.first, &["next"]);
    let leases: Vec<_> = (0..4).map(|_| world.lease()).collect();
    let second = world.second();
    let fresh = [world.second(), world.second()];
    let chains = [&["mail"][..], &["mail", "next"]];
    let clients = [&*world.first, &fresh[0], &*world.first, &fresh[1]];
    for (index, (client, lease)) in clients.into_iter().zip(leases).enumerate() {
        let attempts_max = 3 + u32::try_from(index).unwrap();
        let settings = Settings {
            delay_ms: Some(600_000),
            attempts_max: Some(attempts_max),
            ..Settings::default()
        };
        set(&second, "mail", settings.clone());
        set(&second, "next", settings);
        let puts = chains[index / 2].iter().map(|name| Put::new(topic(name), "")).collect();
        let replies = done(client.ask(Command::Chain(Chain { token: lease.token, puts })));
        for reply in replies {
            assert_eq!(reply.state, Some(State::Delayed));
            let view = super::view(client, Target::Id(reply.id)).unwrap();
            assert_eq!(view.job.content.attempts_max, attempts_max);
        }
    }
}

#[test]
fn the_script_of_a_chain_is_bounded() {
    let world = World::new();
    let put = |key: Option<String>| {
        let key = key.map(Bytes::from);
        Put { key, ..Put::new(topic("mail"), vec![b'x'; 1 << 20]) }
    };
    let token = world.lease().token;
    let keyed = (0..5).map(|n| put(Some(n.to_string()))).collect();
    let error = world.first.ask(Command::Chain(Chain { token, puts: keyed })).unwrap_err();
    assert_eq!(error.code, Code::TooLarge);
    assert!(error.text.contains("4194304"), "{}", error.text);
    assert_eq!(counts(&world.first, "mail"), (1, 0));
    let keyless = (0..6).map(|_| put(None)).collect();
    let replies = done(world.first.ask(Command::Chain(Chain { token, puts: keyless })));
    assert!(replies.iter().all(|reply| reply.outcome == PutOutcome::Created));
    assert_eq!(counts(&world.first, "mail"), (7, 6));
}
