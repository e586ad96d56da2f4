//! Random URLs.

use dormouse_fuzz::{Target, fuzz};
use hyper::Uri;
use url::Url;

use super::{PushUrl, UrlPattern};

const TARGET: Target<'_> = Target {
    name: "push_url",
    home: env!("CARGO_MANIFEST_DIR"),
    seeds: &[
        b"https://example.com/",
        b"http://a-b_c.d.example:8080/hooks/1?a=b&c=%C3%BC",
        b"https://93.184.216.34:8443/x;y=1/(z)",
        b"https://[2606:4700::1111]:8443/",
        b"https://*.example.com/prefix/",
    ],
    words: &[
        b"://",
        b"//",
        b"/",
        b"\\",
        b"@",
        b":",
        b":443",
        b":80",
        b":0",
        b"?",
        b"#",
        b"%",
        b"%2e",
        b"%2F",
        b"..",
        b".",
        b"[",
        b"]",
        b"::",
        b"::ffff:",
        b"127.1",
        b"0x7f",
        b"0177",
        b"*.",
        b"xn--",
        b"-",
        b"_",
        b"\t",
        b"\r\n",
        b"\0",
        b"\xc3\xa9",
        b"http",
        b"https",
        b"'",
        b"|",
        b"A",
    ],
    // The URL, and an error text that may have all of it twice.
    held_bytes_max: |bytes| (16 << 10) + 64 * bytes as u64,
};

/// Parsers that correct what they read find nothing to correct in what is accepted here, and read
/// the same host and port.
#[test]
fn fuzz_push_url() {
    fuzz(&TARGET, |input| {
        let text = input.text();
        let _ = UrlPattern::parse(&text).map(|pattern| pattern.to_string());
        let Ok(url) = PushUrl::parse(&text) else { return };
        assert!(url.path_and_query().parse::<Uri>().is_ok(), "{text:?}");
        // It also refuses names with `xn--` that stand for nothing.
        let Ok(other) = Url::parse(&text) else {
            return assert!(text.contains("xn--"), "{text:?}");
        };
        assert_eq!(other.as_str(), text);
        assert_eq!(other.port_or_known_default(), Some(url.port()));
        assert_eq!(other.host_str(), Some(host_text(&url).as_str()));
    });
}

fn host_text(url: &PushUrl) -> String {
    match url.host() {
        super::Host::Name(name) => name.to_string(),
        super::Host::Ip(address) if address.is_ipv6() => format!("[{address}]"),
        super::Host::Ip(address) => address.to_string(),
    }
}
