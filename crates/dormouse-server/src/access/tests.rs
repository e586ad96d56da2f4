//! The table: every verb, every kind of scope, allowed and forbidden.

use super::*;

fn entry(name: &str, token: &str, scopes: &[&str]) -> TokenEntry {
    let scopes = scopes.iter().map(|scope| scope.parse().unwrap()).collect();
    TokenEntry { name: name.to_owned(), hash: hash_token(token), scopes }
}

fn granted(scopes: &[&str]) -> Grant {
    let access = Access::new(vec![entry("it", "secret", scopes)]).unwrap();
    access.grant(Some("secret")).unwrap()
}

const PRODUCER: &str = "put get cancel reschedule schedule";
const CONSUMER: &str = "reserve ack nack release extend kill get";
const VIEWER: &str = "get list stats forecast events metrics";
const OPERATOR: &str = "get list stats forecast events metrics \
    set_topic pause resume purge revive kick kill cancel reschedule schedule break_lock \
    push inspect";
const ADMIN: &str = "put reserve ack nack release extend kill cancel reschedule get list stats \
    forecast set_topic pause resume purge revive kick lock break_lock events metrics backup \
    advance schedule push inspect";

#[test]
fn every_verb_on_every_kind_of_scope() {
    // The verbs of a scope, and what they are spelled out.
    let mut sets = vec![
        ("*", ADMIN),
        ("admin", ADMIN),
        ("producer", PRODUCER),
        ("consumer", CONSUMER),
        ("viewer", VIEWER),
        ("operator", OPERATOR),
        ("put,ack", "put ack"),
        ("lock, viewer", "lock get list stats forecast events metrics"),
    ];
    sets.extend(Verb::ALL.map(|verb| (verb.as_str(), verb.as_str())));
    // The topics of a scope, some topics, and whether each is among them.
    type Cases<'a> = &'a [(&'a str, bool)];
    let places: [(&str, bool, Cases<'_>); 4] = [
        ("*", true, &[("orders", true), ("orders.eu", true), ("", true), ("a:b", true)]),
        ("orders", false, &[("orders", true), ("orders.eu", false), ("order", false), ("", false)]),
        (
            "orders.*",
            false,
            &[("orders.", true), ("orders.eu", true), ("orders", false), ("Orders.eu", false)],
        ),
        ("a:b*", false, &[("a:b", true), ("a:bc", true), ("a", false), ("a:", false)]),
    ];
    for (words, spelled) in sets {
        for (topics, all, cases) in &places {
            let scope = format!("{words}:{topics}");
            let grant = granted(&[&scope]);
            for verb in Verb::ALL {
                let listed = spelled.split_whitespace().any(|word| word == verb.as_str());
                assert_eq!(grant.may_somewhere(verb), listed, "{scope} {verb}");
                assert_eq!(grant.covers_all(verb), listed && *all, "{scope} {verb}");
                assert_eq!(grant.check_verb(verb).is_ok(), listed && *all, "{scope} {verb}");
                for (topic, inside) in *cases {
                    let allowed = grant.check(verb, topic).is_ok();
                    assert_eq!(allowed, listed && *inside, "{scope} {verb} {topic}");
                }
            }
        }
    }
}

#[test]
fn scopes_of_one_token_add_up_but_do_not_mix() {
    let grant = granted(&["producer:in.*", "consumer:out", "stats:*"]);
    let check = |verb, topic, allowed| {
        assert_eq!(grant.check(verb, topic).is_ok(), allowed, "{verb} {topic}");
    };
    check(Verb::Put, "in.a", true);
    check(Verb::Put, "out", false);
    check(Verb::Reserve, "out", true);
    check(Verb::Reserve, "in.a", false);
    check(Verb::Get, "in.a", true);
    check(Verb::Get, "out", true);
    check(Verb::Get, "other", false);
    check(Verb::Stats, "other", true);
    assert!(grant.covers_all(Verb::Stats));
    assert!(!grant.covers_all(Verb::Get));
    assert!(!grant.may_somewhere(Verb::Purge));
}

#[test]
fn without_tokens_everything_is_allowed() {
    let access = Access::open();
    assert!(access.is_open());
    for bearer in [None, Some("anything")] {
        let grant = access.grant(bearer).unwrap();
        assert!(Verb::ALL.into_iter().all(|verb| grant.check(verb, "x").is_ok()));
        assert!(Verb::ALL.into_iter().all(|verb| grant.check_verb(verb).is_ok()));
    }
}

#[test]
fn only_known_tokens_have_rights() {
    let tokens = vec![entry("one", "s1", &["put:*"]), entry("two", "s2", &["ack:*"])];
    let access = Access::new(tokens).unwrap();
    assert!(!access.is_open());
    for bearer in [None, Some(""), Some("s"), Some("s1 "), Some("S1"), Some("one")] {
        assert_eq!(access.grant(bearer).unwrap_err().code, Code::Unauthorized, "{bearer:?}");
    }
    assert_eq!(access.grant(Some("s1")).unwrap().name(), "one");
    assert_eq!(access.grant(Some("s2")).unwrap().name(), "two");
    // The hash is no token.
    let shown: String = hash_token("s1").iter().map(|byte| format!("{byte:02x}")).collect();
    assert!(access.grant(Some(&shown)).is_err());
}

#[test]
fn a_refusal_names_the_allowed_scopes() {
    let grant = granted(&["producer:orders.*", "stats:*"]);
    let check = |result: Result<(), Error>, text: &str| {
        let error = result.unwrap_err();
        assert_eq!(error.code, Code::Forbidden);
        assert_eq!(error.text, text);
    };
    let allows = "it allows `producer:orders.*`, `stats:*`";
    let text = format!("token `it` does not allow `purge` on topic `orders.eu`; {allows}");
    check(grant.check(Verb::Purge, "orders.eu"), &text);
    let text = format!("token `it` does not allow `lock` on lock `l`; {allows}");
    check(grant.check(Verb::Lock, "l"), &text);
    let text = format!("token `it` does not allow `backup` on all topics; {allows}");
    check(grant.check_verb(Verb::Backup), &text);
}

#[test]
fn an_invalid_table_is_refused() {
    let check = |tokens: Vec<TokenEntry>, expected| {
        assert_eq!(Access::new(tokens).unwrap_err(), expected);
    };
    let all = &["*:*"];
    check(vec![], AccessError::NoToken);
    check(vec![entry("", "x", all)], AccessError::NoName);
    check(vec![entry("a", "x", &[])], AccessError::NoScopes("a".to_owned()));
    let same = vec![entry("a", "x", all), entry("a", "y", all)];
    check(same, AccessError::SameName("a".to_owned()));
    let same = vec![entry("a", "x", all), entry("b", "x", all)];
    check(same, AccessError::SameToken("a".to_owned(), "b".to_owned()));
}

#[test]
fn a_replaced_table_is_used_by_every_clone() {
    let access = Access::open();
    let clone = access.clone();
    let old = clone.grant(None).unwrap();
    access.replace(&Access::new(vec![entry("a", "x", &["put:*"])]).unwrap());
    assert!(!clone.is_open());
    assert!(clone.grant(None).is_err());
    assert_eq!(clone.grant(Some("x")).unwrap().name(), "a");
    assert!(old.check(Verb::Purge, "x").is_ok());
}

#[test]
fn a_holder_is_known_by_the_name_of_its_token() {
    let holder =
        |access: &Access, token| access.grant(Some(token)).unwrap().holder().map(Holder::id);
    let access =
        Access::new(vec![entry("a", "x", &["put:*"]), entry("b", "y", &["put:*"])]).unwrap();
    let (a, b) = (holder(&access, "x"), holder(&access, "y"));
    assert!(a.is_some() && b.is_some() && a != b);
    // Another secret, other rights; a name that was not there; all as it was.
    let after = [entry("a", "z", &["get:*"]), entry("c", "y", &["put:*"])];
    access.replace(&Access::new(after.to_vec()).unwrap());
    assert_eq!(holder(&access, "z"), a);
    let c = holder(&access, "y");
    assert!(c != a && c != b);
    access.replace(&Access::new(after.to_vec()).unwrap());
    assert_eq!([holder(&access, "z"), holder(&access, "y")], [a, c]);
    // Protocols without tokens are one holder where others are some.
    assert!(access.grant_of_protocol("p").holder().is_some());
    assert!(Access::open().grant_of_protocol("p").holder().is_none());
    assert_eq!(holder(&Access::open(), "x"), None);
}

#[test]
fn a_hash_is_sha_256() {
    let shown: String = hash_token("abc").iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(shown, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

#[test]
fn a_walk_skips_to_the_next_allowed_scope() {
    let grant = granted(&["list:m.*", "list:c", "put:a*", "list:-*", "list:n o*"]);
    let check = |after: &str, expected: Option<&str>| {
        assert_eq!(grant.skip_to(Verb::List, after), expected, "{after}");
    };
    check("", Some("c"));
    check("bz", Some("c"));
    check("c", Some("m."));
    check("m", Some("m."));
    check("m.", Some("m."));
    check("m.7", Some("m.7"));
    check("m/", None);
    assert_eq!(granted(&["list:*"]).skip_to(Verb::List, ""), Some(""));
}

#[tokio::test]
async fn only_what_has_changed_is_outdated() {
    let before = [("kept", "*:a"), ("changed", "*:a"), ("renamed", "*:a"), ("gone", "*:a")];
    let table = |tokens: &[(&str, &str, &str)]| {
        let entries = tokens.iter().map(|(name, token, scope)| entry(name, token, &[scope]));
        Access::new(entries.collect()).unwrap()
    };
    let access = table(&before.map(|(name, scope)| (name, name, scope)));
    let grants = before.map(|(name, _)| access.grant(Some(name)).unwrap());
    let codes = |access: &Access| grants.each_ref().map(|grant| access.judge(grant).err());
    assert_eq!(codes(&access), [None, None, None, None]);
    let [kept, changed, .., gone] = &grants;
    let both = async { tokio::join!(access.outdated(changed), access.outdated(gone)) };
    let replace = async {
        let after =
            [("kept", "kept", "*:a"), ("changed", "changed", "*:b"), ("new", "renamed", "*:a")];
        access.replace(&table(&after));
    };
    let ((changed, gone), ()) = tokio::join!(both, replace);
    assert_eq!((changed.code, gone.code), (Code::Unavailable, Code::Unauthorized));
    let codes = codes(&access).map(|error| error.map(|error| error.code));
    assert_eq!(
        codes,
        [None, Some(Code::Unavailable), Some(Code::Unavailable), Some(Code::Unauthorized)]
    );
    assert!(access.renew(kept).unwrap().is(kept));
    // Without tokens, too.
    let open = Access::open();
    let everybody = open.grant(None).unwrap();
    open.replace(&Access::open());
    assert_eq!(open.judge(&everybody), Ok(()));
    open.replace(&access);
    assert_eq!(open.judge(&everybody).unwrap_err().code, Code::Unauthorized);
}
