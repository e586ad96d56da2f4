//! Who may do what. One function decides for every protocol: [`Grant::check`].
//!
//! A caller shows a token; its SHA-256 is looked up in the table, and the entry's scopes are what
//! the caller may do. Only hashes are kept, so a leaked configuration opens nothing. Looking up a
//! hash needs no constant time: to learn a hash byte by byte does not help to find its token.

mod jobs;
mod scope;
mod verb;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use dormouse_core::error::{Code, Error};
use dormouse_core::topic::TopicName;
use sha2::{Digest, Sha256};

pub(crate) use jobs::{NO_JOB, mask_absent};
pub use scope::{Scope, ScopeError};
use verb::Verbs;
pub use verb::{UnknownVerb, Verb};

/// SHA-256 of a token.
pub type TokenHash = [u8; 32];

/// The hash under which a token is kept.
pub fn hash_token(token: &str) -> TokenHash {
    Sha256::digest(token.as_bytes()).into()
}

/// One token of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenEntry {
    /// What people call it; stands in messages.
    pub name: String,
    /// Its hash; the token itself is known to its owner only.
    pub hash: TokenHash,
    /// What it allows.
    pub scopes: Vec<Scope>,
}

/// Why a table cannot be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AccessError {
    /// No token at all: that would lock everybody out.
    #[error("no token is configured, so nobody could do anything")]
    NoToken,
    /// A token without a name.
    #[error("a token has no name")]
    NoName,
    /// Two tokens of one name.
    #[error("two tokens are called `{0}`; give each its own name")]
    SameName(String),
    /// One token twice.
    #[error("tokens `{0}` and `{1}` are the same token; make a new one for each")]
    SameToken(String, String),
    /// A token that allows nothing.
    #[error("token `{0}` has no scopes, so it allows nothing; `*:*` allows everything")]
    NoScopes(String),
}

/// The table of tokens. Clones share it, so a table that is replaced is replaced everywhere.
#[derive(Clone, Debug)]
pub struct Access {
    table: Arc<RwLock<Table>>,
}

#[derive(Clone, Debug)]
enum Table {
    Open(Grant),
    Tokens(HashMap<TokenHash, Grant>),
}

impl Table {
    fn new(tokens: Vec<TokenEntry>) -> Result<Table, AccessError> {
        if tokens.is_empty() {
            return Err(AccessError::NoToken);
        }
        let mut grants: HashMap<TokenHash, Grant> = HashMap::with_capacity(tokens.len());
        for TokenEntry { name, hash, scopes } in tokens {
            if name.is_empty() {
                return Err(AccessError::NoName);
            }
            if scopes.is_empty() {
                return Err(AccessError::NoScopes(name));
            }
            if grants.values().any(|grant| grant.name() == name) {
                return Err(AccessError::SameName(name));
            }
            if let Some(other) = grants.get(&hash) {
                return Err(AccessError::SameToken(other.name().to_owned(), name));
            }
            grants.insert(hash, Grant::new(name, scopes));
        }
        Ok(Table::Tokens(grants))
    }
}

impl Access {
    /// No token is configured: everybody may do everything.
    pub fn open() -> Access {
        let everybody = Grant::new("everybody".to_owned(), vec![Scope::everything()]);
        Access::of(Table::Open(everybody))
    }

    /// Only who shows one of these tokens may do what it allows.
    pub fn new(tokens: Vec<TokenEntry>) -> Result<Access, AccessError> {
        Table::new(tokens).map(Access::of)
    }

    fn of(table: Table) -> Access {
        Access { table: Arc::new(RwLock::new(table)) }
    }

    /// Takes over the other's table, in all clones of this one. What was granted before stays
    /// granted to who holds it: a request, or an open stream.
    pub fn replace(&self, other: &Access) {
        let table = other.read(Table::clone);
        *self.table.write().unwrap_or_else(PoisonError::into_inner) = table;
    }

    /// Whether everybody may do everything.
    pub fn is_open(&self) -> bool {
        self.read(|table| matches!(table, Table::Open(_)))
    }

    /// What the caller who shows this token may do; `unauthorized` if that is nothing. The token is
    /// the text after `Bearer `, or what another protocol has in its place.
    pub fn grant(&self, bearer: Option<&str>) -> Result<Grant, Error> {
        let unauthorized = |text: &'static str| Error::new(Code::Unauthorized, text);
        self.read(|table| match (table, bearer) {
            (Table::Open(grant), _) => Ok(grant.clone()),
            (Table::Tokens(_), None) => Err(unauthorized(
                "this server wants an access token, and none was shown; send it as \
                     `Authorization: Bearer TOKEN`",
            )),
            (Table::Tokens(grants), Some(token)) => {
                grants.get(&hash_token(token)).cloned().ok_or_else(|| {
                    unauthorized("the access token is not known here; it may have been replaced")
                })
            }
        })
    }

    /// What the caller may do who has shown the token of this hash, or none; `None` = nothing.
    /// Cheap enough to be asked again and again: a revoked token must be of no use any more.
    pub(crate) fn grant_of(&self, shown: Option<&TokenHash>) -> Option<Grant> {
        self.read(|table| match table {
            Table::Open(grant) => Some(grant.clone()),
            Table::Tokens(grants) => grants.get(shown?).cloned(),
        })
    }

    fn read<T>(&self, look: impl FnOnce(&Table) -> T) -> T {
        look(&self.table.read().unwrap_or_else(PoisonError::into_inner))
    }
}

/// What one caller may do; cheap to clone.
#[derive(Clone)]
pub struct Grant {
    inner: Arc<Allowed>,
}

struct Allowed {
    name: String,
    scopes: Vec<Scope>,
    /// On every topic.
    everywhere: Verbs,
    /// On one topic at least.
    somewhere: Verbs,
}

impl Grant {
    fn new(name: String, scopes: Vec<Scope>) -> Grant {
        let union = |all: Verbs, scope: &Scope| all.with(scope.verbs());
        let everywhere = scopes.iter().filter(|s| s.is_for_all_topics()).fold(Verbs::NONE, union);
        let somewhere = scopes.iter().fold(Verbs::NONE, union);
        Grant { inner: Arc::new(Allowed { name, scopes, everywhere, somewhere }) }
    }

    /// Of who has shown nothing, where something is wanted.
    pub(crate) fn nobody() -> Grant {
        Grant::new("nobody".to_owned(), Vec::new())
    }

    /// What people call the token.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// Whether this may be done on this topic (for `Lock`: with the lock of this name).
    pub fn check(&self, verb: Verb, topic: &str) -> Result<(), Error> {
        let what = if verb == Verb::Lock { "lock" } else { "topic" };
        let forbidden = || self.forbidden(verb, &format!("{what} `{topic}`"));
        self.allows(verb, topic).then_some(()).ok_or_else(forbidden)
    }

    /// As `check`, where a no is not worth a text.
    pub fn allows(&self, verb: Verb, topic: &str) -> bool {
        self.covers_all(verb) || self.inner.scopes.iter().any(|scope| scope.allows(verb, topic))
    }

    /// Whether this may be done without naming a topic, or over all of them: only if it may be
    /// done on every topic.
    pub fn check_verb(&self, verb: Verb) -> Result<(), Error> {
        self.covers_all(verb).then_some(()).ok_or_else(|| self.forbidden(verb, "all topics"))
    }

    /// Whether this may be done on every topic, so that nobody needs to look up a job's.
    pub fn covers_all(&self, verb: Verb) -> bool {
        self.inner.everywhere.has(verb)
    }

    /// Whether this may be done on some topic: what is forbidden everywhere need not be looked at.
    pub fn may_somewhere(&self, verb: Verb) -> bool {
        self.inner.somewhere.has(verb)
    }

    /// Where topics on which this may be done go on behind a place in the order of names, which is
    /// a name or nothing: there, or at the name this gives; `None` = nowhere.
    pub(crate) fn goes_on<'a>(&'a self, verb: Verb, after: &'a str) -> Option<&'a str> {
        let places = self.inner.scopes.iter().filter_map(|scope| scope.goes_on(verb, after));
        // What cannot be a topic's name is not the beginning of one either.
        places.filter(|place| *place == after || TopicName::new(place).is_ok()).min()
    }

    fn forbidden(&self, verb: Verb, place: &str) -> Error {
        let Allowed { name, scopes, .. } = &*self.inner;
        let scopes: Vec<String> = scopes.iter().map(|scope| format!("`{scope}`")).collect();
        let scopes = scopes.join(", ");
        let text = format!("token `{name}` does not allow `{verb}` on {place}; it allows {scopes}");
        Error::new(Code::Forbidden, text)
    }
}

impl fmt::Debug for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scopes: Vec<String> = self.inner.scopes.iter().map(Scope::to_string).collect();
        f.debug_struct("Grant").field("name", &self.inner.name).field("scopes", &scopes).finish()
    }
}

#[cfg(test)]
mod tests;
