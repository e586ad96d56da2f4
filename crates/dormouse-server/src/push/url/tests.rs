//! Hostile and harmless URLs.

use super::hostile::HOSTILE;
use super::*;

/// The part that is refused.
fn refused(text: &str) -> String {
    match PushUrl::parse(text) {
        Ok(url) => panic!("{text:?} is accepted as {url:?}"),
        Err(error) => {
            let text = error.text.strip_prefix("url: ").unwrap();
            text.split(':').next().unwrap().to_owned()
        }
    }
}

#[test]
fn hostile_urls_are_refused_by_the_part_that_is_wrong() {
    let mut count = 0;
    for (part, texts) in HOSTILE {
        for text in *texts {
            // Where two parts are wrong, the first that is looked at is named.
            let found = refused(text);
            let is_first = ["characters", "userinfo"].contains(&&*found);
            assert!(found == *part || is_first, "{text:?}: {found} instead of {part}");
            count += 1;
        }
    }
    assert!(count >= 150, "only {count} entries");
    assert_eq!(refused(&format!("https://example.com/{}", "a".repeat(2_048))), "length");
    assert_eq!(refused(&format!("https://{}.com/", "a".repeat(64))), "host");
    assert_eq!(refused(&format!("https://{}com/", "a.".repeat(130))), "host");
}

#[test]
fn the_error_gives_the_normal_form() {
    let check = |text: &str, expected: &str| {
        let error = PushUrl::parse(text).unwrap_err();
        assert!(error.text.contains(expected), "{text}: {}", error.text);
    };
    check("https://127.1/", "`127.0.0.1`");
    check("https://0x7f.1/", "`127.0.0.1`");
    check("https://2130706433/", "`127.0.0.1`");
    check("https://017700000001/", "`127.0.0.1`");
    check("https://0xa9fea9fe/", "`169.254.169.254`");
    check("https://[::ffff:7f00:1]/", "`127.0.0.1`");
    check("https://[2001:DB8:0::1]/", "`[2001:db8::1]`");
    check("https://Example.COM/", "`example.com`");
    check("https://example.com./", "`example.com`");
    check("https://example.com:08443/", "`8443`");
    check("HTTPS://example.com/", "`https://`");
    check("https://example.com/{", "`%7B`");
}

#[test]
fn normal_urls_are_taken_apart() {
    let check = |text: &str, origin: &str, host: &str, port: u16, path: &str| {
        let url = PushUrl::parse(text).unwrap();
        let shown = match url.host() {
            Host::Name(name) => name.to_string(),
            Host::Ip(address) => address.to_string(),
        };
        assert_eq!(
            (url.origin(), &*shown, url.port(), url.path_and_query()),
            (origin, host, port, path)
        );
        assert_eq!(url.as_str(), text);
    };
    check("https://example.com/", "https://example.com", "example.com", 443, "/");
    check("http://a-b_c.d:8080/x?y=1&z", "http://a-b_c.d:8080", "a-b_c.d", 8080, "/x?y=1&z");
    check("https://1.1.1.1/", "https://1.1.1.1", "1.1.1.1", 443, "/");
    check("https://[2606:4700::1]:8443/", "https://[2606:4700::1]:8443", "2606:4700::1", 8443, "/");
    check(
        "https://xn--exmple-cua.com/%C3%BC",
        "https://xn--exmple-cua.com",
        "xn--exmple-cua.com",
        443,
        "/%C3%BC",
    );
    check("https://1a.example/...", "https://1a.example", "1a.example", 443, "/...");
}

#[test]
fn patterns_match_whole_labels_and_segments() {
    let check = |pattern: &str, url: &str, expected: bool| {
        let (pattern, url) = (UrlPattern::parse(pattern).unwrap(), PushUrl::parse(url).unwrap());
        assert_eq!(pattern.matches(&url), expected, "{pattern} {url}");
    };
    check("https://example.com/", "https://example.com/any?x", true);
    check("https://example.com/", "http://example.com/", false);
    check("https://example.com/", "https://example.com:8443/", false);
    check("https://example.com:8443/", "https://example.com:8443/", true);
    check("https://example.com/hooks", "https://example.com/hooks", true);
    check("https://example.com/hooks", "https://example.com/hooks/1", true);
    check("https://example.com/hooks", "https://example.com/hooks?1", true);
    check("https://example.com/hooks", "https://example.com/hooksmith", false);
    check("https://example.com/hooks/", "https://example.com/hooks", false);
    check("https://*.example.com/", "https://a.example.com/", true);
    check("https://*.example.com/", "https://a.b.example.com/", true);
    check("https://*.example.com/", "https://example.com/", false);
    check("https://*.example.com/", "https://badexample.com/", false);
    check("https://*.example.com/", "https://example.com.evil.org/", false);
    check("https://1.1.1.1/", "https://1.1.1.1/x", true);
    for text in [
        "https://*/",
        "https://*.com/",
        "https://*.1.1.1.1/",
        "https://a.*.com/",
        "*",
        "https://example.com",
        "https://example.com/?x",
        "https://ex*mple.com/",
        "https://*.*.example.com/",
        "https://*.[::1]/",
    ] {
        assert!(UrlPattern::parse(text).is_err(), "{text}");
    }
    assert_eq!(UrlPattern::parse("https://*.a.b/c").unwrap().to_string(), "https://*.a.b/c");
}
