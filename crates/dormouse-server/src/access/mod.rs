//! Access rights. One function decides for all protocols: [`Grant::check`].
//!
//! A caller sends a token; its SHA-256 is looked up in the table, and the scopes of the entry are
//! the caller's rights. Only hashes are stored, so a leaked configuration gives no access. The
//! lookup need not take constant time: knowing a hash byte by byte does not help to find its token.

mod jobs;
mod refusals;
mod scope;
mod ttr;
mod verb;

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use dormouse_core::error::{Code, Error};
use dormouse_core::topic::TopicName;
use sha2::{Digest, Sha256};
use tokio::sync::watch;

use crate::holder::Holder;
use crate::limits::TTR_MS_MAX_DEFAULT;
use crate::visitor::{LastCaller, Visitor};

pub(crate) use jobs::{NO_JOB, mask_absent};
use refusals::Refusals;
pub use scope::{Scope, ScopeError};
use verb::Verbs;
pub use verb::{UnknownVerb, Verb};

/// SHA-256 of a token.
pub type TokenHash = [u8; 32];

/// The hash under which a token is stored.
pub fn hash_token(token: &str) -> TokenHash {
    Sha256::digest(token.as_bytes()).into()
}

/// One token of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenEntry {
    /// The name in error texts; unique in the table.
    pub name: String,
    /// Its hash; the token itself is not stored.
    pub hash: TokenHash,
    /// The verbs and topics it allows; at least one.
    pub scopes: Vec<Scope>,
}

/// Why a table of tokens is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AccessError {
    /// No token at all: nobody could do anything.
    #[error("no token is configured, so nobody could do anything")]
    NoToken,
    /// A token without a name.
    #[error("a token has no name")]
    NoName,
    /// Two tokens with the same name.
    #[error("two tokens are called `{0}`; give each its own name")]
    SameName(String),
    /// The same token twice.
    #[error("tokens `{0}` and `{1}` are the same token; make a new one for each")]
    SameToken(String, String),
    /// A token that allows nothing.
    #[error("token `{0}` has no scopes, so it allows nothing; `*:*` allows everything")]
    NoScopes(String),
}

/// The table of tokens. Clones share it.
#[derive(Clone)]
pub struct Access {
    shared: Arc<Shared>,
}

struct Shared {
    table: RwLock<Table>,
    /// Grows after each change of the table, so that a connection need not read an unchanged one.
    version: AtomicU64,
    /// Tells those who wait that the table has changed.
    changes: watch::Sender<()>,
    refusals: Refusals,
    /// The longest ttr of callers who are not operators.
    ttr_ms_max: AtomicI64,
}

#[derive(Clone, Debug)]
enum Table {
    Open(Grant),
    Tokens(HashMap<TokenHash, Grant>),
}

impl Table {
    /// Takes over the grants of an older table that are the same in this one, so that those who
    /// have one can tell that it is still good; and the holders of all names, because what they
    /// hold does not end.
    fn keep_equal(&mut self, older: &Table) {
        match (self, older) {
            (Table::Open(grant), Table::Open(old)) => *grant = old.clone(),
            (Table::Tokens(grants), Table::Tokens(old)) => {
                let by_name: HashMap<&str, &Grant> =
                    old.values().map(|old| (old.name(), old)).collect();
                for (hash, grant) in grants {
                    match old.get(hash) {
                        Some(old) if old.is_equal(grant) => *grant = old.clone(),
                        _ => {
                            let named = by_name.get(grant.name());
                            named.inspect(|old| *grant = grant.with_holder_of(old));
                        }
                    }
                }
            }
            _ => {}
        }
    }

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
            grants.insert(hash, Grant::new(name, Some(hash), scopes));
        }
        Ok(Table::Tokens(grants))
    }
}

impl Access {
    /// No token is configured: everybody may do everything.
    pub fn open() -> Access {
        let everybody = Grant::new("everybody".to_owned(), None, vec![Scope::everything()]);
        Access::of(Table::Open(everybody))
    }

    /// A caller needs one of these tokens, and may do what it allows.
    pub fn new(tokens: Vec<TokenEntry>) -> Result<Access, AccessError> {
        Table::new(tokens).map(Access::of)
    }

    fn of(table: Table) -> Access {
        let (table, version) = (RwLock::new(table), AtomicU64::new(0));
        let (changes, refusals) = (watch::Sender::new(()), Refusals::new());
        let ttr_ms_max = AtomicI64::new(TTR_MS_MAX_DEFAULT);
        Access { shared: Arc::new(Shared { table, version, changes, refusals, ttr_ms_max }) }
    }

    /// Replaces the table by the other's, in all clones of this one. What waits with the rights of
    /// a token that is gone or allows something else ends; other tokens are not disturbed.
    pub fn replace(&self, other: &Access) {
        let mut table = other.read(Table::clone);
        let mut current = self.shared.table.write().unwrap_or_else(PoisonError::into_inner);
        table.keep_equal(&current);
        *current = table;
        drop(current);
        // After the change: who sees the new number reads the new table.
        self.shared.version.fetch_add(1, Ordering::Release);
        self.shared.changes.send_replace(());
    }

    /// Changes when the table has changed.
    pub(crate) fn changes(&self) -> watch::Receiver<()> {
        self.shared.changes.subscribe()
    }

    /// The present rights of the token that gave these; `None` if it is gone.
    pub(crate) fn renew(&self, grant: &Grant) -> Option<Grant> {
        self.grant_of(grant.inner.hash.as_ref())
    }

    /// Whether these are still the rights of their token.
    pub(crate) fn judge(&self, grant: &Grant) -> Result<(), Error> {
        match self.renew(grant) {
            Some(present) if present.is(grant) => Ok(()),
            Some(_) => Err(Error::unavailable("the token's rights have changed; try again")),
            None => Err(Error::new(Code::Unauthorized, "the access token was withdrawn")),
        }
    }

    /// Resolves when these are no longer the rights of their token.
    pub(crate) async fn outdated(&self, grant: &Grant) -> Error {
        let mut changes = self.changes();
        loop {
            if let Err(error) = self.judge(grant) {
                return error;
            }
            // It cannot fail: the sender is in `shared`.
            let _ = changes.changed().await;
        }
    }

    /// The grant of all clients of a protocol that has no tokens: everything. Where others need a
    /// token, what these hold together counts as if it were one token's.
    pub(crate) fn grant_of_protocol(&self, name: &str) -> Grant {
        let grant = Grant::new(name.to_owned(), None, vec![Scope::everything()]);
        if self.is_open() {
            return grant;
        }
        let holder = Holder::new(&grant.inner.name);
        grant.with_holder(holder)
    }

    /// While this is what it was before a call of `grant_of`, that call's result is still right.
    pub(crate) fn version(&self) -> u64 {
        self.shared.version.load(Ordering::Acquire)
    }

    /// Whether everybody may do everything.
    pub fn is_open(&self) -> bool {
        self.read(|table| matches!(table, Table::Open(_)))
    }

    /// The rights of a caller with this token; `unauthorized` if it is unknown, or missing where
    /// one is needed. Over HTTP the token is the text after `Bearer `.
    pub fn grant(&self, bearer: Option<&str>) -> Result<Grant, Error> {
        let unauthorized = |text: &'static str| Error::new(Code::Unauthorized, text);
        self.read(|table| match (table, bearer) {
            (Table::Open(grant), _) => Ok(grant.clone()),
            (Table::Tokens(_), None) => Err(unauthorized(
                "this server requires an access token, and none was sent; send it as \
                     `Authorization: Bearer TOKEN`",
            )),
            (Table::Tokens(grants), Some(token)) => {
                grants.get(&hash_token(token)).cloned().ok_or_else(|| {
                    unauthorized("the access token is not known here; it may have been replaced")
                })
            }
        })
    }

    /// The rights of a caller with the token of this hash, or without one; `None` = no rights.
    pub(crate) fn grant_of(&self, shown: Option<&TokenHash>) -> Option<Grant> {
        self.read(|table| match table {
            Table::Open(grant) => Some(grant.clone()),
            Table::Tokens(grants) => grants.get(shown?).cloned(),
        })
    }

    /// Notes that a client's token was refused; returns how long its answer has to wait.
    pub(crate) fn refused(&self, client: &Visitor) -> Duration {
        self.shared.refusals.note(client)
    }

    fn read<T>(&self, look: impl FnOnce(&Table) -> T) -> T {
        look(&self.shared.table.read().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The rights of one caller. Cheap to clone.
#[derive(Clone)]
pub struct Grant {
    inner: Arc<Inner>,
}

#[derive(Clone)]
struct Inner {
    name: Arc<str>,
    /// The token's; `None` if there is none.
    hash: Option<TokenHash>,
    scopes: Vec<Scope>,
    /// Verbs that are allowed on every topic.
    everywhere: Verbs,
    /// Verbs that are allowed on at least one topic.
    somewhere: Verbs,
    /// For whom leases and locks count; `None` where nobody needs a token: what all hold together
    /// is no share of anybody.
    holder: Option<Holder>,
}

impl Grant {
    fn new(name: String, hash: Option<TokenHash>, scopes: Vec<Scope>) -> Grant {
        let union = |all: Verbs, scope: &Scope| all.with(scope.verbs());
        let everywhere = scopes.iter().filter(|s| s.is_for_all_topics()).fold(Verbs::NONE, union);
        let somewhere = scopes.iter().fold(Verbs::NONE, union);
        let name = name.into();
        let holder = hash.and_then(|_| Holder::new(&name));
        Grant { inner: Arc::new(Inner { name, hash, scopes, everywhere, somewhere, holder }) }
    }

    /// These rights, with what is held under another grant of the same token.
    fn with_holder_of(&self, other: &Grant) -> Grant {
        self.with_holder(other.inner.holder.clone())
    }

    fn with_holder(&self, holder: Option<Holder>) -> Grant {
        Grant { inner: Arc::new(Inner { holder, ..(*self.inner).clone() }) }
    }

    /// For whom leases and locks count that are taken with these rights.
    pub(crate) fn holder(&self) -> Option<&Holder> {
        self.inner.holder.as_ref()
    }

    /// The grant of a caller without a token where one is needed: no rights.
    pub(crate) fn nobody() -> Grant {
        Grant::new("nobody".to_owned(), None, Vec::new())
    }

    /// Whether this is that grant, and not one that replaced it.
    pub(crate) fn is(&self, other: &Grant) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }

    fn is_equal(&self, other: &Grant) -> bool {
        self.inner.name == other.inner.name && self.inner.scopes == other.inner.scopes
    }

    /// The name of the token.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// Its scopes as they were written.
    pub(crate) fn scopes(&self) -> Vec<String> {
        self.inner.scopes.iter().map(Scope::to_string).collect()
    }

    /// The name of the token, if there is one.
    pub(crate) fn token_name(&self) -> Option<Arc<str>> {
        self.inner.hash.map(|_| Arc::clone(&self.inner.name))
    }

    /// Who this is, for the list of connections and the audit.
    pub(crate) fn caller(&self) -> LastCaller {
        let is_operator = self.may_somewhere(Verb::SetTopic);
        LastCaller { token: self.token_name(), is_operator }
    }

    /// Whether the verb is allowed on this topic (for `Lock` and `BreakLock`: with the lock of this
    /// name); if not, `forbidden`.
    pub fn check(&self, verb: Verb, topic: &str) -> Result<(), Error> {
        let what = if matches!(verb, Verb::Lock | Verb::BreakLock) { "lock" } else { "topic" };
        let forbidden = || self.forbidden(verb, &format!("{what} `{topic}`"));
        self.allows(verb, topic).then_some(()).ok_or_else(forbidden)
    }

    /// As `check`, without an error text.
    pub fn allows(&self, verb: Verb, topic: &str) -> bool {
        self.covers_all(verb) || self.inner.scopes.iter().any(|scope| scope.allows(verb, topic))
    }

    /// A refusal about a lock. Its name and owner are all that a release needs, so the owner is
    /// told only to those who may list: everybody else with the right to lock must know it.
    pub(crate) fn lock_refusal(&self, name: &str, refusal: Error) -> Error {
        if self.allows(Verb::List, name) { refusal } else { without_owner(name, refusal) }
    }

    /// Whether the verb is allowed without a topic, or for all topics together: only if it is
    /// allowed on every topic.
    pub fn check_verb(&self, verb: Verb) -> Result<(), Error> {
        self.covers_all(verb).then_some(()).ok_or_else(|| self.forbidden(verb, "all topics"))
    }

    /// Whether the verb is allowed on some topic: who has it nowhere need not be asked where.
    pub(crate) fn check_somewhere(&self, verb: Verb) -> Result<(), Error> {
        if self.may_somewhere(verb) { Ok(()) } else { self.check_verb(verb) }
    }

    /// Whether the verb is allowed on every topic, so that a job's topic need not be looked up.
    pub fn covers_all(&self, verb: Verb) -> bool {
        self.inner.everywhere.has(verb)
    }

    /// Whether the verb is allowed on some topic. If not, a job's topic need not be looked up.
    pub fn may_somewhere(&self, verb: Verb) -> bool {
        self.inner.somewhere.has(verb)
    }

    /// Where a walk over topics in the order of names that has reached `after` (a name, or empty)
    /// finds the next topic that the verb is allowed on: behind `after`, if that is returned; else
    /// not before the returned name. `None` = there is none.
    pub(crate) fn skip_to<'a>(&'a self, verb: Verb, after: &'a str) -> Option<&'a str> {
        let places = self.inner.scopes.iter().filter_map(|scope| scope.skip_to(verb, after));
        // A prefix that is not a valid name is not the beginning of one either.
        places.filter(|place| *place == after || TopicName::new(place).is_ok()).min()
    }

    fn forbidden(&self, verb: Verb, place: &str) -> Error {
        let Inner { name, scopes, .. } = &*self.inner;
        let scopes: Vec<String> = scopes.iter().map(|scope| format!("`{scope}`")).collect();
        let scopes = scopes.join(", ");
        let text = format!("token `{name}` does not allow `{verb}` on {place}; it allows {scopes}");
        Error::new(Code::Forbidden, text)
    }
}

/// A refusal about a lock as those read it who must not learn its owner.
pub(crate) fn without_owner(name: &str, refusal: Error) -> Error {
    if refusal.code != Code::Conflict {
        return refusal;
    }
    let text = format!(
        "lock {name:?} is held by another owner; only that owner may renew or release it, others \
         can wait for it"
    );
    Error::new(Code::Conflict, text)
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.read(|table| table.fmt(f))
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
