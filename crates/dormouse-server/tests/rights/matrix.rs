//! What each cell must answer, whatever the protocol.

use dormouse_server::access::{Grant, Verb};

use crate::server::{Prepared, Served, Subject, TOPICS, absent, scopes};

/// How a call names what it is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    /// By the name of a topic or lock, also with a key or a cursor in it.
    Name,
    /// By a job's id or token: only the server knows the topic.
    Job,
    /// Nothing: it is about all topics together.
    All,
    /// Nothing: it is about those topics that the caller may see.
    Seen,
    /// Nothing, and no right is needed, only a token.
    Known,
    /// Nothing, and no right is needed.
    Nothing,
}

/// One way to make a call.
#[derive(Debug)]
pub(crate) struct Call {
    /// The template of the request.
    pub(crate) text: &'static str,
    /// The template of its body.
    pub(crate) body: &'static str,
    pub(crate) verb: Verb,
    pub(crate) by: By,
    pub(crate) prepared: Prepared,
    /// A right that it needs as well, on the topic that it names.
    pub(crate) with: Option<Verb>,
}

/// An answer as text, without what differs between any two answers.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) kind: AnswerKind,
    pub(crate) text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AnswerKind {
    Done,
    Unauthorized,
    Forbidden,
    /// Any other error, or an answer that says that a job is gone.
    Other,
}

/// What a cell expects.
#[derive(Debug, PartialEq, Eq)]
enum Expected {
    Done,
    Forbidden,
    /// As if the job were not there.
    Absent,
}

fn expected(grant: &Grant, call: &Call, topic: &str) -> Expected {
    if call.with.is_some_and(|verb| !grant.allows(verb, topic)) {
        return Expected::Forbidden;
    }
    let is_done = match call.by {
        By::Name => grant.allows(call.verb, topic),
        By::Job if grant.allows(call.verb, topic) => true,
        By::Job if !grant.may_somewhere(call.verb) => false,
        // It may read the job, so that there is nothing to hide.
        By::Job if grant.allows(Verb::Get, topic) => false,
        By::Job => return Expected::Absent,
        By::All => grant.covers_all(call.verb),
        By::Seen => grant.may_somewhere(call.verb),
        By::Known | By::Nothing => true,
    };
    if is_done { Expected::Done } else { Expected::Forbidden }
}

/// Asks by a token, or without one.
pub(crate) trait Wire {
    async fn ask(&mut self, token: Option<&str>, call: &Call, subject: &Subject) -> Answer;
}

/// Tries all cells; returns their number.
pub(crate) async fn check(served: &mut Served, wire: &mut impl Wire, calls: &[Call]) -> usize {
    let mut cells = 0;
    for call in calls {
        for topic in TOPICS {
            let mut subject = served.subject(topic, call.prepared).await;
            let guest = wire.ask(None, call, &subject).await;
            assert_eq!(guest.kind == AnswerKind::Done, call.by == By::Nothing, "{call:?}");
            for token in scopes().iter().map(String::as_str).chain(["mixed"]) {
                let grant = served.access.grant(Some(token)).unwrap();
                let answer = wire.ask(Some(token), call, &subject).await;
                let expected = expected(&grant, call, topic);
                let place = format!("{token} on {topic}: {call:?}: {answer:?}");
                match expected {
                    Expected::Done => assert_eq!(answer.kind, AnswerKind::Done, "{place}"),
                    Expected::Forbidden => {
                        assert_eq!(answer.kind, AnswerKind::Forbidden, "{place}");
                    }
                    Expected::Absent => assert_eq!(answer.kind, AnswerKind::Other, "{place}"),
                }
                if expected == Expected::Done {
                    // It has changed something.
                    subject = served.subject(topic, call.prepared).await;
                } else if call.with.is_some_and(|verb| {
                    grant.allows(verb, topic) && !grant.allows(verb, &absent(topic).topic)
                }) {
                    // The right on the topic that the call names is judged first.
                } else if call.by != By::Job
                    || !grant.allows(Verb::Get, topic)
                    || !grant.may_somewhere(call.verb)
                {
                    // What is not the caller's and what is not there are told alike.
                    let none = absent(topic);
                    let other = wire.ask(Some(token), call, &none).await;
                    assert_eq!(subject.erase(&answer.text), none.erase(&other.text), "{place}");
                }
                check_leak(&grant, call, &place, &answer);
                cells += 1;
            }
        }
    }
    cells
}

/// Without a right on the topic outside, its name is in no answer to a call that did not name it.
fn check_leak(grant: &Grant, call: &Call, place: &str, answer: &Answer) {
    let outside = TOPICS[1];
    let names_topic = call.by == By::Name || call.with.is_some();
    let is_named = names_topic && place.contains(&format!("on {outside}"));
    let may_see = Verb::ALL.into_iter().any(|verb| grant.allows(verb, outside));
    assert!(is_named || may_see || !answer.text.contains(outside), "{place}");
}

/// The table has a row for every call that the server has, and no other.
pub(crate) fn check_complete(mut known: Vec<String>, rows: impl Iterator<Item = String>) {
    let mut rows: Vec<String> = rows.collect();
    for names in [&mut known, &mut rows] {
        names.sort();
        names.dedup();
    }
    for name in &known {
        assert!(rows.contains(name), "{name} has no row in the matrix of rights: add one");
    }
    for name in &rows {
        assert!(known.contains(name), "{name} is in the matrix of rights, and not served");
    }
}
