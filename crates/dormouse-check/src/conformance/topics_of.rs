//! topics_of: the topics of jobs, without the jobs themselves.

use super::prelude::*;

cases! { topics_of:
    jobs_of_every_state_have_one
    an_unknown_id_has_none
    too_many_are_refused
}

fn topics_of(s: &Subject, ids: Vec<JobId>) -> Vec<Result<String, Code>> {
    let Ok(Reply::TopicsOf(topics)) = s.ask(Command::TopicsOf(ids)) else { panic!("no topics") };
    let text = |topic: Result<TopicName, Error>| topic.map(|topic| topic.to_string());
    topics.into_iter().map(|topic| text(topic).map_err(|error| error.code)).collect()
}

fn jobs_of_every_state_have_one(s: &mut Subject) {
    let large = bytes::Bytes::from(vec![b'x'; limits::BODY_BYTES_MAX]);
    let leased = s.put(job("sms"));
    s.reserve_one("sms");
    let dead = s.put(job("call"));
    s.kill(kill_resting(by_id(dead))).expect("dead");
    let ready = s.put(Put::new(topic("mail"), large));
    let delayed = s.put(Put { delay_ms: Some(60_000), ..job("mail") });
    s.maybe_reopen();
    let topics = topics_of(s, vec![dead, ready, leased, delayed, ready]);
    assert_eq!(topics, ["call", "mail", "sms", "mail", "mail"].map(|name| Ok(name.to_owned())));
}

fn an_unknown_id_has_none(s: &mut Subject) {
    let id = s.put(job("mail"));
    assert_eq!(topics_of(s, vec![JobId(0), id]), [Err(Code::NotFound), Ok("mail".to_owned())]);
    s.cancel(by_id(id)).expect("cancelled");
    // Where ids lead to topics, that of a job which is gone may be told.
    let gone = topics_of(s, vec![id]);
    assert!([Err(Code::NotFound), Ok("mail".to_owned())].contains(&gone[0]), "{gone:?}");
}

fn too_many_are_refused(s: &mut Subject) {
    let ids = vec![JobId(1); limits::BATCH_MAX + 1];
    refused(s.ask(Command::TopicsOf(ids)), Code::Invalid, &["4096"]);
}
