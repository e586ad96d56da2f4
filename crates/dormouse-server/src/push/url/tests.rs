//! Hostile and harmless URLs.

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

const HOSTILE: &[(&str, &[&str])] = &[
    (
        "scheme",
        &[
            "",
            "x",
            "/",
            "//x",
            "//example.com/",
            "///example.com/",
            "example.com",
            "example.com/hook",
            "ftp://example.com/",
            "file:///etc/passwd",
            "file://localhost/etc/passwd",
            "gopher://127.0.0.1:6379/_FLUSHALL",
            "dict://127.0.0.1:11211/",
            "ldap://127.0.0.1/",
            "ws://example.com/",
            "wss://example.com/",
            "data:text/plain,x",
            "javascript:alert(1)",
            "jar:http://example.com!/",
            "redis://127.0.0.1/",
            "unix:/var/run/docker.sock",
            "http",
            "http:",
            "http:/",
            "http:example.com",
            "http:127.0.0.1",
            "https:example.com/",
            "https:/example.com/",
            "http:x",
            "HTTP://example.com/",
            "HTTPS://example.com/",
            "Https://example.com/",
            "hTTpS://example.com/",
            "httpss://example.com/",
            "https2://example.com/",
            ":https://example.com/",
            "url:https://example.com/",
            "view-source:https://example.com/",
        ],
    ),
    (
        "characters",
        &[
            " https://example.com/",
            "https://example.com/ ",
            "https://exam ple.com/",
            "https://example.com/a b",
            "https://example.com/\t",
            "ht\ttps://example.com/",
            "https://exa\tmple.com/",
            "https://example.com/\r\nx: y",
            "https://example.com\r\n/",
            "https://example.com/\n",
            "https://example.com/\0",
            "https://exam\0ple.com/",
            "https://example.com/\u{7f}",
            "\u{1}https://example.com/",
            "https:\\\\example.com\\",
            "https://example.com\\@127.0.0.1/",
            "https://127.0.0.1\\.example.com/",
            "https://example.com/a\\b",
            "https:/\\example.com/",
            "https://１２７.0.0.1/",
            "https://①②⑦.⓪.⓪.①/",
            "https://127。0。0。1/",
            "https://example。com/",
            "https://exämple.com/",
            "https://ｅxample.com/",
            "https://example.com\u{200b}/",
            "https://exam\u{ad}ple.com/",
            "https://\u{202e}example.com/",
            "https://example.com/ü",
            "\u{feff}https://example.com/",
            "https://ⓔxample.com/",
            "https://example.com:8\u{661}/",
        ],
    ),
    ("fragment", &["https://example.com/#", "https://example.com/a#b", "https://a.b#@c.d/"]),
    (
        "userinfo",
        &[
            "https://user@example.com/",
            "https://user:secret@example.com/",
            "https://@example.com/",
            "https://:@example.com/",
            "https://example.com@127.0.0.1/",
            "https://example.com:443@127.0.0.1/",
            "https://a@b@example.com/",
            "https://%40@example.com/",
            "https://[::1]@example.com/",
        ],
    ),
    (
        "host",
        &[
            "https://",
            "https:///",
            "https:///example.com/",
            "https://?x",
            "https://:443/",
            "https://:8443/",
            "https://127.1/",
            "https://127.0.1/",
            "https://127/",
            "https://0/",
            "https://0x7f.1/",
            "https://0x7f000001/",
            "https://0X7F.0.0.1/",
            "https://0x/",
            "https://2130706433/",
            "https://017700000001/",
            "https://0177.0.0.1/",
            "https://0177.0.0.01/",
            "https://127.0.0.01/",
            "https://127.00.0.1/",
            "https://127.0.0.1./",
            "https://127.0.0.0x1/",
            "https://2852039166/",
            "https://0xa9fea9fe/",
            "https://0251.0376.0251.0376/",
            "https://169.254.43518/",
            "https://256.0.0.1/",
            "https://1.2.3.4.5/",
            "https://4294967296/",
            "https://1.2.3.256/",
            "https://a.1/",
            "https://example.0x1/",
            "https://..1/",
            "https://%31%32%37.0.0.1/",
            "https://127.0.0.1%00.example.com/",
            "https://example%2ecom/",
            "https://%65xample.com/",
            "https://example.com%2f@x/",
        ],
    ),
    (
        "host",
        &[
            "https://[::1/",
            "https://::1/",
            "https://[]/",
            "https://[::1]x/",
            "https://[::1]]/",
            "https://[[::1]]/",
            "https://[127.0.0.1]/",
            "https://[::ffff:127.0.0.1]/",
            "https://[::ffff:7f00:1]/",
            "https://[::ffff:a9fe:a9fe]/",
            "https://[0:0:0:0:0:0:0:1]/",
            "https://[::0001]/",
            "https://[2001:DB8::1]/",
            "https://[2001:db8:0::1]/",
            "https://[fe80::1%25eth0]/",
            "https://[fe80::1%eth0]/",
            "https://[v1.x]/",
            "https://[::1].example.com/",
            "https://2001:db8::1/",
            "https://example.com:80:80/",
        ],
    ),
    (
        "host",
        &[
            "https://Example.com/",
            "https://EXAMPLE.COM/",
            "https://example.com./",
            "https://example..com/",
            "https://.example.com/",
            "https://./",
            "https://-example.com/",
            "https://example-.com/",
            "https://exam+ple.com/",
            "https://exam,ple.com/",
            "https://exam;ple.com/",
            "https://exam!ple.com/",
            "https://exam~ple.com/",
            "https://example.com&x/",
            "https://*.example.com/",
            "https://{host}/",
            "https://$HOST/",
            "https://\"example.com\"/",
            "https://<example.com>/",
            "https://example.com|x/",
            "https://example.com^x/",
            "https://`x`/",
            "https://(x)/",
        ],
    ),
    (
        "port",
        &[
            "https://example.com:/",
            "https://example.com:0/",
            "https://example.com:00/",
            "https://example.com:70000/",
            "https://example.com:65536/",
            "https://example.com:-1/",
            "https://example.com:+443/",
            "https://example.com:0443/",
            "https://example.com:08443/",
            "https://example.com:443/",
            "http://example.com:80/",
            "https://example.com:8443x/",
            "https://example.com:0x1bb/",
            "https://example.com:https/",
            "https://example.com:4 43/x",
            "https://[2606:4700::1]:443/",
            "https://[2606:4700::1]:/",
        ],
    ),
    (
        "path",
        &[
            "https://example.com",
            "https://example.com?x",
            "https://example.com:8443",
            "https://example.com/.",
            "https://example.com/..",
            "https://example.com/a/../b",
            "https://example.com/./a",
            "https://example.com/%2e%2e/a",
            "https://example.com/%2E./a",
            "https://example.com/.%2e?x",
            "https://example.com/a/%2e",
            "https://example.com/%",
            "https://example.com/%4",
            "https://example.com/%zz",
            "https://example.com/<a>",
            "https://example.com/\"",
            "https://example.com/{a}",
            "https://example.com/a|b",
            "https://example.com/a^b",
            "https://example.com/`a`",
            "https://example.com/[a]",
        ],
    ),
    (
        "query",
        &[
            "https://example.com/?<",
            "https://example.com/?a=%",
            "https://example.com/?a=%g1",
            "https://example.com/?'",
            "https://example.com/?a=[1]",
            "https://example.com/?\"",
            "https://example.com/?a={b}",
        ],
    ),
];

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
