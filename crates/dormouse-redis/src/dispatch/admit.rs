//! What is refused before it reaches Redis: by the rules, or because the scripts do not have it
//! yet. A field that a script would drop silently must not get this far.

use dormouse_core::error::Error;
use dormouse_core::op::{Chain, Put, SetTopic};
use dormouse_core::topic::Settings;

use crate::clock::ANY_TIME;

pub(super) fn put(put: &Put) -> Result<(), Error> {
    put.check(ANY_TIME)?;
    match put.group {
        Some(_) => Err(no_limits("group")),
        None => Ok(()),
    }
}

pub(super) fn chain(chain: &Chain) -> Result<(), Error> {
    chain.check(ANY_TIME)?;
    let has_group = chain.puts.iter().any(|put| put.group.is_some());
    if has_group { Err(no_limits("group")) } else { Ok(()) }
}

pub(super) fn set_topic(set: &SetTopic) -> Result<(), Error> {
    set.check()?;
    let Settings { leased_max, rate, group_leased_max, group_rate, .. } = &set.settings;
    let limits = [
        ("leased_max", leased_max.is_some()),
        ("rate", rate.is_some()),
        ("group_leased_max", group_leased_max.is_some()),
        ("group_rate", group_rate.is_some()),
    ];
    match limits.into_iter().find(|(_, is_set)| *is_set) {
        Some((field, _)) => Err(no_limits(field)),
        None => Ok(()),
    }
}

fn no_limits(field: &str) -> Error {
    Error::invalid(format!(
        "{field}: limits are not there on the Redis backend yet; leave {field} out, or use the \
         disk store"
    ))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use dormouse_core::error::Code;
    use dormouse_core::job::Token;
    use dormouse_core::rate::Rate;
    use dormouse_core::topic::TopicName;

    use super::*;

    fn check(field: &str, result: Result<(), Error>) {
        let error = result.unwrap_err();
        assert_eq!(error.code, Code::Invalid);
        let begin = format!("{field}: limits are not there on the Redis backend yet; ");
        assert!(error.text.starts_with(&begin), "{error}");
    }

    #[test]
    fn limits_are_refused_and_not_dropped() {
        let topic = TopicName::new("t").unwrap();
        let plain = Put::new(topic.clone(), Bytes::new());
        let grouped = Put { group: Some(Bytes::from_static(b"g")), ..plain.clone() };
        assert_eq!(put(&plain), Ok(()));
        check("group", put(&grouped));
        let token: Token = "1.1".parse().unwrap();
        let chain_of = |puts| Chain { token, puts };
        assert_eq!(chain(&chain_of(vec![plain.clone()])), Ok(()));
        check("group", chain(&chain_of(vec![plain, grouped])));
        let set = |settings| set_topic(&SetTopic { topic: topic.clone(), settings });
        let none = Settings::default;
        assert_eq!(set(Settings { jobs_max: Some(1), ..none() }), Ok(()));
        check("leased_max", set(Settings { leased_max: Some(1), ..none() }));
        check("rate", set(Settings { rate: Some(Rate::new(1, 1_000)), ..none() }));
        check("group_leased_max", set(Settings { group_leased_max: Some(1), ..none() }));
        check("group_rate", set(Settings { group_rate: Some(Rate::new(1, 1_000)), ..none() }));
    }
}
