//! `dormouse config token`: a new token, shown once, and the table that lets it in.

use std::fs::File;
use std::io::{self, Read as _};

use dormouse_server::access::{Scope, hash_token};

use super::keys::quoted;
use crate::Global;
use crate::exit::Failure;
use crate::output::{self, Output};

/// Marks a token that is found in a log or a repository.
const PREFIX: &str = "dormouse_";

/// Make a new token for the configuration file
#[derive(clap::Args)]
#[command(after_help = "\
The token is shown this once, on stderr; what goes to stdout is for the configuration file, and
has its hash only. Give the token to clients as DORMOUSE_TOKEN, or in the header
`Authorization: Bearer <token>`.

Examples:
  dormouse config token --name shop --scope 'producer:orders.*' >> dormouse.toml
  dormouse config token --name ops --scope 'operator:*' --scope 'lock:*'")]
pub(crate) struct Args {
    /// The name of its holder
    #[arg(long, default_value = "new")]
    name: String,
    /// A permission, as <verbs>:<topics>; can be repeated
    #[arg(long = "scope", value_name = "SCOPE", default_value = "*:*")]
    scopes: Vec<Scope>,
}

impl Args {
    pub(super) fn run(self, global: &Global) -> Result<(), Failure> {
        let token = random_token()
            .map_err(|error| Failure::new(format!("cannot read random bytes: {error}")))?;
        let stanza = self.stanza(&token);
        if global.output == Output::Json {
            let pair = serde_json::json!({ "token": token, "config": stanza });
            return output::print_line(&pair.to_string());
        }
        // Only the table is printed to stdout: `>> dormouse.toml` must not store the secret.
        output::say(&format!("the token, shown this once: {token}"));
        output::print(format!("\n{stanza}").as_bytes())
    }

    fn stanza(&self, token: &str) -> String {
        let scopes: Vec<String> =
            self.scopes.iter().map(|scope| quoted(&scope.to_string())).collect();
        format!(
            "[[tokens]]\nname = {}\ntoken_sha256 = \"{}\"\nscopes = [{}]\n",
            quoted(&self.name),
            hex(&hash_token(token)),
            scopes.join(", "),
        )
    }
}

/// 256 bits of the operating system.
fn random_token() -> io::Result<String> {
    let mut bytes = [0; 32];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(format!("{PREFIX}{}", hex(&bytes)))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use dormouse_server::access::Verb;

    use super::*;

    #[test]
    fn the_stanza_lets_the_token_in() {
        let token = random_token().unwrap();
        assert_eq!(token.len(), PREFIX.len() + 64);
        assert_ne!(token, random_token().unwrap());
        let scopes = vec!["put:a".parse().unwrap(), "ack:*".parse().unwrap()];
        let args = Args { name: "the \"shop\"".to_owned(), scopes };
        let text = args.stanza(&token);
        let contents = crate::command::config::file::parse("x".as_ref(), &text).unwrap();
        let entries: Vec<_> = contents.tokens.into_iter().map(|(entry, _)| entry).collect();
        let access = dormouse_server::access::Access::new(entries).unwrap();
        let grant = access.grant(Some(&token)).unwrap();
        assert_eq!(grant.name(), "the \"shop\"");
        assert!(grant.check(Verb::Put, "a").is_ok());
        assert!(grant.check(Verb::Put, "b").is_err());
        assert!(grant.covers_all(Verb::Ack));
    }
}
