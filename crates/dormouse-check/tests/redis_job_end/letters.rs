//! Dead letters: one for each death, wherever servers die.

use bytes::Bytes;
use dormouse_check::conformance::client::Client;
use dormouse_core::command::Command;
use dormouse_core::job::{JobId, State};
use dormouse_core::op::*;
use dormouse_core::topic::Settings;

use super::{SCRIPTS_MAX, World, counts, is_there, kept, reserve, set, topic, view, wait_for};

fn to(name: &str) -> Settings {
    Settings { dead_topic: Some(topic(name)), ..Settings::default() }
}

fn kill(target: KillTarget) -> Command {
    Command::Kill(vec![Kill { target, error: None, priority: None }])
}

/// A job of `mail` is killed by the first server, which dies after so many scripts. `None` = before
/// the kill. Letters that are left are hidden.
fn killed(world: &World, scripts: i64) -> Option<(JobId, Client)> {
    set(&world.first, "mail", to("morgue"));
    let lease = world.lease();
    world.die_during(kill(KillTarget::Token(lease.token)), scripts);
    hide_letters(world);
    let second = world.second();
    if view(&second, Target::Id(lease.id)).is_some_and(|view| view.state != State::Dead) {
        assert!(scripts <= 1, "it was killed after {scripts} scripts");
        return None;
    }
    Some((lease.id, second))
}

const LETTERS: &str = "dormouse:{mail/0}:l";
const HIDDEN: &str = "dormouse:{mail/0}:hidden";

/// Lets no server find the letters to send.
fn hide_letters(world: &World) {
    if world.redis.must(&["EXISTS", LETTERS]).int() == 1 {
        world.redis.must(&["RENAME", LETTERS, HIDDEN]);
    }
}

/// Lets this server find them, now.
fn show_letters(world: &World, server: &Client) {
    if world.redis.must(&["EXISTS", HIDDEN]).int() == 1 {
        world.redis.must(&["RENAME", HIDDEN, LETTERS]);
        // A deadline makes it look after the partition.
        let put = Put { expires_after_ms: Some(3_600_000), ..Put::new(topic("mail"), "") };
        server.ask(Command::Put(vec![put])).unwrap();
    }
    await_letters(world);
}

/// Waits until no letter is to be sent.
fn await_letters(world: &World) {
    wait_for(|| world.redis.must(&["EXISTS", LETTERS]).int() == 0);
}

#[test]
fn a_letter_is_sent_once_wherever_its_server_dies() {
    for scripts in 0..SCRIPTS_MAX {
        let world = World::new();
        let Some((id, second)) = killed(&world, scripts) else { continue };
        show_letters(&world, &second);
        wait_for(|| counts(&second, "morgue") == (1, 1));
        assert_eq!(counts(&second, "morgue"), (1, 1), "after {scripts} scripts");
        assert!(!is_there(&second, id));
    }
}

#[test]
fn a_letter_that_was_cancelled_or_killed_does_not_come_again() {
    let mut ended = 0;
    for scripts in 0..SCRIPTS_MAX {
        for is_cancelled in [true, false] {
            let world = World::new();
            set(&world.first, "morgue", kept());
            let Some((id, second)) = killed(&world, scripts) else { continue };
            let key = Bytes::from(format!("dormouse:dead:{id}"));
            let letter = Target::Key { topic: topic("morgue"), key };
            if view(&second, letter.clone()).is_none() {
                continue;
            }
            ended += 1;
            let end = match is_cancelled {
                true => Command::Cancel(vec![Cancel { target: letter, unless_leased: false }]),
                false => kill(KillTarget::Resting(letter)),
            };
            second.ask(end).unwrap();
            show_letters(&world, &second);
            assert_eq!(counts(&second, "morgue"), (1, 0), "after {scripts} scripts");
        }
    }
    assert!(ended > 0, "no letter was sent");
}

#[test]
fn a_letter_for_which_there_was_no_room_is_dead_or_a_letter_and_never_both() {
    for scripts in 0..SCRIPTS_MAX {
        let world = World::new();
        set(&world.first, "morgue", Settings { jobs_max: Some(1), ..kept() });
        world.first.ask(Command::Put(vec![Put::new(topic("morgue"), "")])).unwrap();
        let Some((id, second)) = killed(&world, scripts) else { continue };
        let filler = reserve(&second, "morgue").token;
        second.ask(Command::Ack(vec![filler])).unwrap();
        show_letters(&world, &second);
        let (puts, waiting) = counts(&second, "morgue");
        let is_dead = is_there(&second, id);
        assert_eq!(puts, 1 + waiting, "after {scripts} scripts");
        assert_eq!(waiting, u64::from(!is_dead), "after {scripts} scripts");
    }
}

#[test]
fn a_letter_that_is_begun_goes_to_its_dead_topic_whatever_is_set_since_then() {
    for scripts in 0..SCRIPTS_MAX {
        for next in [to("crypt"), Settings::default()] {
            let world = World::new();
            let Some((id, second)) = killed(&world, scripts) else { continue };
            set(&second, "mail", next);
            show_letters(&world, &second);
            let letters = counts(&second, "morgue").0 + counts(&second, "crypt").0;
            let is_dead = is_there(&second, id);
            assert_eq!(letters + u64::from(is_dead), 1, "after {scripts} scripts");
        }
    }
}

#[test]
fn a_letter_that_was_given_up_does_not_stand_in_the_way_of_the_next_death() {
    let world = World::new();
    let client = world.second();
    set(&client, "mail", to("morgue"));
    set(&client, "morgue", Settings { jobs_max: Some(0), ..Settings::default() });
    let lease = world.lease();
    client.ask(kill(KillTarget::Token(lease.token))).unwrap();
    await_letters(&world);
    assert!(is_there(&client, lease.id));
    set(&client, "morgue", Settings::default());
    client.ask(Command::Revive(vec![Target::Id(lease.id)])).unwrap();
    client.ask(kill(KillTarget::Resting(Target::Id(lease.id)))).unwrap();
    wait_for(|| counts(&client, "morgue") == (1, 1));
    assert!(!is_there(&client, lease.id));
}

#[test]
fn a_backlog_of_letters_is_sent_by_a_server_that_comes_later() {
    let world = World::new();
    set(&world.first, "mail", to("morgue"));
    let kills: Vec<Kill> = (0..100)
        .map(|_| KillTarget::Token(world.lease().token))
        .map(|target| Kill { target, error: None, priority: None })
        .collect();
    // The letters are begun at most.
    world.die_during(Command::Kill(kills), 2);
    let second = world.second();
    await_letters(&world);
    let (puts, waiting) = counts(&second, "morgue");
    let left = world.redis.must(&["HLEN", "dormouse:{mail/0}:j"]).int();
    assert_eq!((puts, i64::try_from(waiting).unwrap() + left), (waiting, 100));
}
