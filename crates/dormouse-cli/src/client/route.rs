//! Address and headers of the server, for `bench`, which opens its own connections.

use super::Client;
use crate::exit::Failure;

/// Where to connect, and the start of every request.
#[derive(Clone)]
pub(crate) struct Route {
    pub(crate) host: String,
    pub(crate) port: u16,
    prefix: String,
    headers: String,
}

impl Route {
    /// The head of a request, up to and without the headers of its body.
    pub(crate) fn head(&self, method: &str, path: &str) -> String {
        format!("{method} {}{path} HTTP/1.1\r\n{}", self.prefix, self.headers)
    }
}

impl Client {
    /// The route to this client's server, which must not use TLS.
    pub(crate) fn route(&self) -> Result<Route, Failure> {
        let url = &self.url;
        if url.is_tls {
            return Err(Failure::usage(format!("{url}: this speaks only plain http")));
        }
        let text = |value: &hyper::header::HeaderValue| match value.to_str() {
            Ok(text) => Ok(text.to_owned()),
            Err(_) => Err(Failure::usage("host and token have only visible ASCII characters")),
        };
        let mut headers = format!("host: {}\r\n", text(&url.authority)?);
        if let Some(authorization) = &self.authorization {
            headers.push_str(&format!("authorization: {}\r\n", text(authorization)?));
        }
        let (host, prefix) = (url.host.clone(), url.prefix.clone());
        Ok(Route { host, port: url.port, prefix, headers })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Global;
    use crate::output::Output;

    fn route(url: &str, token: Option<&str>) -> Result<Route, Failure> {
        let token = token.map(str::to_owned);
        let global = Global {
            url: url.into(),
            token,
            token_file: None,
            ca_file: None,
            output: Output::Table,
        };
        global.client()?.route()
    }

    #[test]
    fn a_request_begins_with_the_route() {
        let check = |url: &str, token, expected: &str| {
            let route = route(url, token).unwrap();
            assert_eq!(route.head("GET", "/v1/stats"), expected);
        };
        let plain = "GET /v1/stats HTTP/1.1\r\nhost: localhost:7788\r\n";
        check("http://localhost:7788", None, plain);
        check("http://localhost:7788/", None, plain);
        let full = "GET /q/v1/stats HTTP/1.1\r\nhost: [::1]\r\nauthorization: Bearer s3\r\n";
        check("http://[::1]/q", Some("s3"), full);
    }

    #[test]
    fn a_route_has_no_tls() {
        let failure = route("https://localhost", None).err().unwrap();
        assert_eq!(failure.status(), 2, "{}", failure.text());
    }
}
