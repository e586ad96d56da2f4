//! Opens one connection: address, TLS, greeting and token. It blocks, within its timeout for each
//! address and once more for handshake and greeting, and so runs on a thread that may.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use dormouse_core::error::{Code, Error};

use crate::codec::{Scanner, Value};
use crate::deadline::Deadline;
use crate::limits::{ADDRESSES_MAX, GREETING_BYTES_MAX};
use crate::options::{ConnectOptions, bounded};
use crate::stream::Stream;
#[cfg(feature = "tls")]
use crate::tls::{self, Trust};
use crate::url::ServerUrl;

/// Why a server cannot be used. `unavailable` passes, other codes do not.
#[derive(Clone, Debug)]
pub(crate) struct Refusal {
    pub(crate) code: Code,
    pub(crate) text: String,
}

impl Refusal {
    fn passing(text: impl Into<String>) -> Refusal {
        Refusal { code: Code::Unavailable, text: text.into() }
    }
}

/// Everything that opening a connection needs.
pub(crate) struct Connector {
    urls: Vec<ServerUrl>,
    token: Option<String>,
    timeout: Duration,
    #[cfg(feature = "tls")]
    trust: Option<Trust>,
}

impl Connector {
    pub(crate) fn new(urls: Vec<ServerUrl>, options: &ConnectOptions) -> Result<Connector, Error> {
        let is_tls = urls.iter().any(|url| url.is_tls);
        #[cfg(not(feature = "tls"))]
        if is_tls {
            return Err(Error::invalid(
                "dormouses:// needs TLS, which this program was built without; enable the feature \
                 tls of the crate, or give dormouse://",
            ));
        }
        Ok(Connector {
            urls,
            token: options.token.as_ref().map(|token| token.0.clone()),
            timeout: bounded(options.connect_timeout).max(Duration::from_millis(1)),
            #[cfg(feature = "tls")]
            trust: is_tls.then(|| Trust::new(options.ca_file.as_deref())).transpose()?,
        })
    }

    /// Opens a connection to the first server that takes one, beginning with the given one. Gives
    /// its index, too. Ends before the next address once nobody wants it any more.
    pub(crate) fn open_any(
        &self,
        first: usize,
        is_wanted: &dyn Fn() -> bool,
    ) -> Result<(Stream, usize), Error> {
        let mut refusals = Vec::new();
        for step in 0..self.urls.len() {
            let index = (first + step) % self.urls.len();
            match self.open(&self.urls[index], is_wanted) {
                Ok(stream) => return Ok((stream, index)),
                Err(refusal) => refusals.push((&self.urls[index], refusal)),
            }
        }
        // What does not pass decides: waiting for the others would hide it.
        let lasting = refusals.iter().map(|(_, refusal)| refusal.code);
        let code =
            lasting.reduce(|code, other| if code == Code::Unavailable { other } else { code });
        let tried: Vec<String> =
            refusals.iter().map(|(url, refusal)| format!("{url}: {}", refusal.text)).collect();
        let tried = tried.join("; ");
        Err(match code.unwrap_or(Code::Unavailable) {
            Code::Unavailable => Error::unavailable(format!(
                "no server can be reached ({tried}); start one with `dormouse serve`, or check the \
                 URL"
            )),
            code => Error::new(code, tried),
        })
    }

    /// All servers, as texts name them.
    pub(crate) fn urls(&self) -> String {
        self.urls.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
    }

    /// The server of this index, as texts name it.
    pub(crate) fn url(&self, index: usize) -> String {
        self.urls.get(index).map(ToString::to_string).unwrap_or_default()
    }

    fn open(&self, url: &ServerUrl, is_wanted: &dyn Fn() -> bool) -> Result<Stream, Refusal> {
        let connected = self.connect(url, is_wanted);
        let socket = connected.map_err(|error| Refusal::passing(error.to_string()))?;
        let until = Instant::now() + self.timeout;
        socket.set_nodelay(true).map_err(|error| Refusal::passing(error.to_string()))?;
        let mut words: Vec<&str> = vec!["HELLO", "3"];
        let token = url.token.as_deref().or(self.token.as_deref());
        if let Some(token) = token {
            words.extend(["AUTH", url.user.as_deref().unwrap_or("default"), token]);
        }
        let hello = encode(&words);
        #[cfg(feature = "tls")]
        if url.is_tls {
            return self.open_tls(url, socket, &hello, until);
        }
        greet(&mut Deadline { socket: &socket, until }, &hello)?;
        Stream::plain(socket).map_err(|error| Refusal::passing(error.to_string()))
    }

    fn connect(&self, url: &ServerUrl, is_wanted: &dyn Fn() -> bool) -> io::Result<TcpStream> {
        let unwanted = || io::Error::other("the queue was closed");
        if !is_wanted() {
            return Err(unwanted());
        }
        let mut last = io::Error::new(io::ErrorKind::NotFound, "its name has no address");
        let addresses = (url.host.as_str(), url.port).to_socket_addrs()?;
        for address in addresses.take(ADDRESSES_MAX) {
            if !is_wanted() {
                return Err(unwanted());
            }
            match TcpStream::connect_timeout(&address, self.timeout) {
                Ok(socket) => return Ok(socket),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    #[cfg(feature = "tls")]
    fn open_tls(
        &self,
        url: &ServerUrl,
        socket: TcpStream,
        hello: &[u8],
        until: Instant,
    ) -> Result<Stream, Refusal> {
        let deadline = Deadline { socket: &socket, until };
        let Some(trust) = &self.trust else { return Err(Refusal::passing("TLS is not set up")) };
        let session = trust
            .handshake(&url.host, deadline)
            .map_err(|error| Refusal::passing(tls::refused(&error)))?;
        greet(&mut tls::Blocking { session: &session, socket: deadline }, hello)?;
        Stream::encrypted(socket, session).map_err(|error| Refusal::passing(error.to_string()))
    }
}

/// A few words as a command.
fn encode(words: &[&str]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend_from_slice(format!("${}\r\n{word}\r\n", word.len()).as_bytes());
    }
    bytes
}

/// Sends the greeting, and checks who answers.
fn greet(stream: &mut (impl Read + Write), hello: &[u8]) -> Result<(), Refusal> {
    let sent = stream.write_all(hello).and_then(|()| stream.flush());
    sent.map_err(|error| Refusal::passing(format!("it takes no greeting: {error}")))?;
    let (mut scanner, mut input, mut portion) = (Scanner::default(), Vec::new(), [0; 4_096]);
    let end = loop {
        let read = stream.read(&mut portion).map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                Refusal::passing("it took the connection and does not answer")
            }
            _ => Refusal::passing(format!("it does not answer the greeting: {error}")),
        })?;
        if read == 0 {
            return Err(Refusal::passing("it closed the connection without an answer"));
        }
        input.extend_from_slice(&portion[..read]);
        match scanner.next(&input) {
            Ok(None) if input.len() > GREETING_BYTES_MAX => {
                let said = format!("its greeting has more than {GREETING_BYTES_MAX} bytes");
                return Err(another_protocol(&said));
            }
            Ok(None) => {}
            Ok(Some(end)) => break end,
            // A record of TLS begins so.
            Err(_) if matches!(input.first(), Some(0x15 | 0x16)) => {
                let text = "it speaks TLS; write dormouses:// in the URL".to_owned();
                return Err(Refusal { code: Code::Invalid, text });
            }
            Err(garbage) => return Err(another_protocol(&garbage.0)),
        }
    };
    match Value::parse(&input[..end]) {
        Some(Value::List(fields)) if is_dormouse(&fields) => Ok(()),
        Some(Value::Error(text)) => Err(refused(text)),
        _ => Err(another_protocol("it says nothing of dormouse")),
    }
}

fn is_dormouse(fields: &[Value<'_>]) -> bool {
    fields.chunks(2).any(|pair| pair == [Value::Text(b"server"), Value::Text(b"dormouse")])
}

fn another_protocol(said: &str) -> Refusal {
    let text = format!(
        "this is another server, or another port of it ({said}); give the address that `dormouse \
         serve --resp` has, 7789 unless set"
    );
    Refusal { code: Code::Invalid, text }
}

/// The greeting was answered with an error.
fn refused(text: &str) -> Refusal {
    match text.split_once(' ') {
        Some(("NOAUTH", _)) => Refusal {
            code: Code::Unauthorized,
            text: "it wants an access token; give one as dormouse://token@host or as an option"
                .to_owned(),
        },
        Some(("WRONGPASS", why)) => {
            Refusal { code: Code::Unauthorized, text: format!("it does not take the token: {why}") }
        }
        _ => Refusal::passing(format!("it refuses the connection: {text}")),
    }
}
