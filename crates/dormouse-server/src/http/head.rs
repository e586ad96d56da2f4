//! What the head of a request must be, beyond what hyper demands.

use hyper::header::{HOST, TRANSFER_ENCODING};
use hyper::{Request, StatusCode, Version};

use super::problem::Problem;
use crate::limits::HTTP_HEAD_BYTES_MAX;

/// Refuses a head that is too large, or that two readers could understand differently.
/// `is_strict`: each of its lines ended with CR LF.
pub(super) fn check<B>(request: &Request<B>, is_strict: bool) -> Result<(), Problem> {
    if !is_strict {
        return Err(Problem::malformed("end each line of the head with CR LF, not with LF alone"));
    }
    let bytes = bytes_of(request);
    if bytes > HTTP_HEAD_BYTES_MAX {
        let text = format!(
            "the request's line and headers have {bytes} bytes; send at most {HTTP_HEAD_BYTES_MAX}"
        );
        let status = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
        return Err(Problem::new(status, "too_large", text));
    }
    let mut hosts = request.headers().get_all(HOST).iter();
    match (hosts.next(), hosts.next()) {
        (Some(host), None) => {
            let named = request.uri().authority().map(|authority| authority.as_str().as_bytes());
            if named.is_some_and(|named| !named.eq_ignore_ascii_case(host.as_bytes())) {
                return Err(Problem::malformed("the Host header differs from the request's line"));
            }
        }
        (None, _) if request.version() < Version::HTTP_11 => {}
        _ => return Err(Problem::malformed("send exactly one Host header")),
    }
    let mut codings = request.headers().get_all(TRANSFER_ENCODING).iter();
    if codings.any(|coding| !coding.as_bytes().eq_ignore_ascii_case(b"chunked")) {
        return Err(Problem::malformed("send the body plain or chunked, in no other encoding"));
    }
    Ok(())
}

/// The bytes of a head as clients write it. hyper's own limit is that of a buffer, which may hold
/// more.
fn bytes_of<B>(request: &Request<B>) -> usize {
    let uri = request.uri();
    let path = uri.path_and_query().map_or(0, |path| path.as_str().len());
    let authority = uri.authority().map_or(0, |authority| authority.as_str().len());
    let line = request.method().as_str().len() + authority + path + "  HTTP/1.1\r\n".len();
    let header_bytes = |name: usize, value: usize| name + ": ".len() + value + "\r\n".len();
    let headers = request.headers().iter();
    let headers = headers.map(|(name, value)| header_bytes(name.as_str().len(), value.len()));
    line + headers.sum::<usize>() + "\r\n".len()
}

/// Looks for lines of a head that end with LF alone, while the head arrives. hyper takes them for
/// lines; a proxy may not, and see another request than this server.
#[derive(Clone, Copy, Debug)]
pub(super) struct LineScan {
    last: u8,
    /// The line that arrives has no byte yet.
    is_empty_line: bool,
    /// The request's line has begun: lines before it may be empty.
    has_begun: bool,
    is_over: bool,
    has_bare_lf: bool,
}

impl LineScan {
    /// Before a head. Its first bytes may have arrived with the request before it.
    pub(super) const NEW: LineScan = LineScan {
        last: b'\r',
        is_empty_line: true,
        has_begun: false,
        is_over: false,
        has_bare_lf: false,
    };

    /// More of the head has arrived, and perhaps something after it.
    pub(super) fn feed(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            if self.is_over {
                return;
            }
            match byte {
                b'\n' => {
                    self.has_bare_lf |= self.last != b'\r';
                    self.is_over = self.is_empty_line && self.has_begun;
                    self.is_empty_line = true;
                }
                b'\r' => {}
                _ => (self.is_empty_line, self.has_begun) = (false, true),
            }
            self.last = byte;
        }
    }

    pub(super) fn is_strict(&self) -> bool {
        !self.has_bare_lf
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_ends_with_cr_lf() {
        let check = |head: &[u8], is_strict: bool| {
            // However it arrives.
            for at in 0..=head.len() {
                let mut scan = LineScan::NEW;
                scan.feed(&head[..at]);
                scan.feed(&head[at..]);
                assert_eq!(scan.is_strict(), is_strict, "{head:?} in two at {at}");
            }
        };
        check(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", true);
        check(b"\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n{\n}\n", true);
        check(b"POST / HTTP/1.1\r\nHost: a\r\n\r\n\n\n", true);
        check(b"GET / HTTP/1.1\nHost: a\r\n\r\n", false);
        check(b"GET / HTTP/1.1\r\nHost: a\n\r\n", false);
        check(b"GET / HTTP/1.1\r\nHost: a\r\n\n", false);
        check(b"GET / HTTP/1.1\r\nHost: a\n\nGET", false);
    }

    fn check(version: Version, uri: &str, headers: &[(&str, &str)], status: u16) {
        let mut request = Request::builder().version(version).uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let checked = super::check(&request.body(()).unwrap(), true);
        let found = checked.map_or_else(|problem| problem.status().as_u16(), |()| 200);
        assert_eq!(found, status, "{uri} {headers:?}");
    }

    #[test]
    fn a_head_has_one_meaning() {
        let (old, new) = (Version::HTTP_10, Version::HTTP_11);
        check(new, "/", &[("host", "a")], 200);
        check(new, "/", &[], 400);
        check(old, "/", &[], 200);
        for version in [old, new] {
            check(version, "/", &[("host", "a"), ("host", "b")], 400);
            check(version, "/", &[("host", "a"), ("host", "a")], 400);
        }
        check(new, "http://A/x", &[("host", "a")], 200);
        check(new, "http://b/x", &[("host", "a")], 400);
        check(new, "/", &[("host", "a"), ("transfer-encoding", "Chunked")], 200);
        check(new, "/", &[("host", "a"), ("transfer-encoding", "gzip, chunked")], 400);
        check(
            new,
            "/",
            &[("host", "a"), ("transfer-encoding", "gzip"), ("transfer-encoding", "chunked")],
            400,
        );
    }

    #[test]
    fn a_head_is_bounded() {
        // "GET / HTTP/1.1", "host: a", "x: ..." and an empty line.
        let rest = 16 + 9 + 5 + 2;
        let value = "x".repeat(HTTP_HEAD_BYTES_MAX - rest);
        check(Version::HTTP_11, "/", &[("host", "a"), ("x", &value)], 200);
        check(Version::HTTP_11, "/", &[("host", "a"), ("x", &(value + "x"))], 431);
    }
}
