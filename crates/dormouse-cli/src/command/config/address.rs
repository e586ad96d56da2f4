//! Checks of the addresses: who could reach them, and with which tokens.

use std::net::SocketAddr;

use dormouse_server::BeanstalkAddr;

use super::settings::Settings;

/// As it is written in a file.
pub(crate) fn shown(addr: &BeanstalkAddr) -> String {
    match addr {
        BeanstalkAddr::Tcp(addr) => addr.to_string(),
        BeanstalkAddr::Unix(path) => format!("unix:{}", path.display()),
    }
}

impl Settings {
    /// At least one protocol is on, no address is used twice, and none is open to everybody.
    pub(super) fn verify_addresses(&self) -> Result<(), String> {
        if self.http.is_none() && self.resp.is_none() && self.beanstalk.is_none() {
            return Err("`http`, `resp` and `beanstalk` are off, so nothing would be served; \
                        give an address, as in http = \"127.0.0.1:7788\""
                .to_owned());
        }
        self.verify_distinct()?;
        self.verify_tokens()?;
        self.verify_beanstalk()
    }

    /// Addresses by the name of their key.
    fn addresses(&self) -> impl Iterator<Item = (&'static str, SocketAddr)> {
        let all = [("http", self.http), ("resp", self.resp), ("beanstalk", self.beanstalk_tcp())];
        all.into_iter().filter_map(|(name, addr)| Some((name, addr?)))
    }

    fn beanstalk_tcp(&self) -> Option<SocketAddr> {
        match self.beanstalk {
            Some(BeanstalkAddr::Tcp(addr)) => Some(addr),
            Some(BeanstalkAddr::Unix(_)) | None => None,
        }
    }

    /// Two protocols at one address would fail with "address in use", and the user would look for
    /// another process.
    fn verify_distinct(&self) -> Result<(), String> {
        for (index, (name, addr)) in self.addresses().enumerate() {
            let mut before = self.addresses().take(index);
            if let Some((other, _)) = before.find(|&(_, known)| known == addr && addr.port() != 0) {
                return Err(format!(
                    "`{other}` and `{name}` are both {addr}; give each a port of its own"
                ));
            }
        }
        Ok(())
    }

    /// Without tokens, every client that reaches the address may do everything.
    fn verify_tokens(&self) -> Result<(), String> {
        if !self.tokens.is_empty() || self.insecure {
            return Ok(());
        }
        // A token would not help there.
        let can_ask = |name: &str| name != "beanstalk";
        let mut wrong = self.addresses().filter(|(name, addr)| is_open(addr) && can_ask(name));
        let Some((name, addr)) = wrong.next() else { return Ok(()) };
        Err(format!(
            "`{name}` is {addr}, which others can reach, and no token is configured: everybody \
             could do everything. Make a token with `dormouse config token` and put it into the \
             configuration file, or serve on 127.0.0.1 only, or accept the risk with --insecure"
        ))
    }

    /// beanstalkd's protocol has no place for a token. Who has configured some expects them to be
    /// asked for, so that nothing said about the other protocols opens this one.
    fn verify_beanstalk(&self) -> Result<(), String> {
        let Some(addr) = self.beanstalk_tcp().filter(is_open) else { return Ok(()) };
        if self.beanstalk_open || self.insecure && self.tokens.is_empty() {
            return Ok(());
        }
        Err(format!(
            "`beanstalk` is {addr}, which others can reach, and beanstalkd's protocol knows no \
             tokens: everybody could do everything. Serve it on 127.0.0.1 or unix:PATH only, or \
             accept the risk with --beanstalk-open"
        ))
    }

    /// Warnings about settings that are allowed but risky.
    pub(super) fn address_warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        for (name, addr) in self.addresses().filter(|(_, addr)| is_open(addr)) {
            if self.tokens.is_empty() || name == "beanstalk" {
                warnings.push(format!(
                    "insecure: everybody who reaches this server on {addr} ({name}) may do \
                     everything"
                ));
            } else if self.tls_cert.is_none() {
                warnings.push(format!(
                    "tokens travel unencrypted to {addr} ({name}); set tls.cert and tls.key, or \
                     put a proxy that does TLS in front"
                ));
            }
        }
        let loopback = |addr: &&BeanstalkAddr| !matches!(addr, BeanstalkAddr::Tcp(a) if is_open(a));
        if let Some(addr) = self.beanstalk.as_ref().filter(loopback)
            && !self.tokens.is_empty()
        {
            let addr = shown(addr);
            let text = format!("beanstalk asks for no token: who reaches {addr} may do everything");
            warnings.push(text);
        }
        warnings
    }
}

/// Whether others than this machine can reach it.
fn is_open(addr: &SocketAddr) -> bool {
    !addr.ip().to_canonical().is_loopback()
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use crate::command::config::flags::Flags;
    use crate::command::config::merge::Config;

    /// A file with a token in it.
    fn tokens() -> tempfile::NamedTempFile {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let hash = "00".repeat(32);
        writeln!(file, "[[tokens]]\nname = \"a\"\ntoken_sha256 = \"{hash}\"").unwrap();
        writeln!(file, "scopes = [\"put:*\"]").unwrap();
        file
    }

    /// The error or the warnings, without and with tokens.
    fn judge(flags: &[&str], has_tokens: bool) -> Result<Vec<String>, String> {
        let file = tokens();
        let config = ["--config", file.path().to_str().unwrap()];
        let all = if has_tokens { [flags, &config].concat() } else { flags.to_vec() };
        let config = Config::merge(&Flags::of(&all), &[]).map_err(|error| error.to_string())?;
        Ok(config.warnings())
    }

    #[test]
    fn without_tokens_only_loopback_is_served() {
        let check = |flags: &[&str], allowed: bool| {
            let result = judge(flags, false);
            assert_eq!(result.is_ok(), allowed, "{flags:?}");
            if let Err(error) = result {
                let fixes = match flags[0] {
                    "--beanstalk" => ["`beanstalk` is", "unix:PATH", "--beanstalk-open"],
                    _ => ["127.0.0.1", "dormouse config token", "--insecure"],
                };
                assert!(fixes.iter().all(|fix| error.contains(fix)), "{error}");
                assert!(error.contains(flags[0].trim_matches('-')), "{error}");
            }
        };
        for flag in ["--http", "--resp", "--beanstalk"] {
            check(&[flag, "127.0.0.1:1"], true);
            check(&[flag, "127.9.9.9:1"], true);
            check(&[flag, "[::1]:1"], true);
            check(&[flag, "[::ffff:127.0.0.1]:1"], true);
            check(&[flag, "0.0.0.0:1"], false);
            check(&[flag, "[::]:1"], false);
            check(&[flag, "192.0.2.1:1"], false);
            check(&[flag, "0.0.0.0:1", "--insecure"], true);
            check(&[flag, "0.0.0.0:1", "--insecure=false"], false);
            check(&[flag, "0.0.0.0:1", "--beanstalk-open"], flag == "--beanstalk");
        }
        check(&["--beanstalk", "unix:/x"], true);
        check(&["--beanstalk"], true);
    }

    #[test]
    fn tokens_allow_other_addresses() {
        let open = ["--beanstalk", "0.0.0.0:3"];
        for flags in [open.to_vec(), [&open[..], &["--insecure"]].concat()] {
            let error = judge(&flags, true).unwrap_err();
            for part in ["0.0.0.0:3", "knows no tokens", "unix:PATH", "--beanstalk-open"] {
                assert!(error.contains(part), "{error}");
            }
        }
        for addr in ["127.0.0.1:3", "unix:/x"] {
            let warnings = judge(&["--beanstalk", addr], true).unwrap();
            assert_eq!(warnings.len(), 1, "{warnings:?}");
            assert!(warnings[0].contains(&format!("who reaches {addr} may do everything")));
        }
        let warnings = judge(&["--beanstalk", "0.0.0.0:3", "--beanstalk-open"], true).unwrap();
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert!(warnings[0].contains("everybody who reaches this server on 0.0.0.0:3"));
        let warnings = judge(&["--http", "0.0.0.0:1", "--resp", "0.0.0.0:2"], true).unwrap();
        assert_eq!(warnings.len(), 2, "{warnings:?}");
        assert!(warnings.iter().all(|text| text.contains("unencrypted")), "{warnings:?}");
    }

    #[test]
    fn something_is_served_and_nothing_twice() {
        let error = judge(&["--http", "off", "--resp", "off"], false).unwrap_err();
        assert!(error.contains("nothing would be served"), "{error}");
        for other in [["--resp", "127.0.0.1:1"], ["--beanstalk", "unix:/x"]] {
            let flags = [&["--http", "off", "--resp", "off"], &other[..]].concat();
            assert_eq!(judge(&flags, false), Ok(Vec::new()), "{flags:?}");
        }
        let same = ["--resp", "127.0.0.1:1", "--beanstalk", "127.0.0.1:1"];
        let error = judge(&same, false).unwrap_err();
        assert!(error.contains("`resp` and `beanstalk` are both 127.0.0.1:1"), "{error}");
        let free = ["--http", "127.0.0.1:0", "--resp", "127.0.0.1:0"];
        assert!(judge(&free, false).is_ok());
    }
}
