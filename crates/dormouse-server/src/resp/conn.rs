//! The state of a connection, and how it runs a command.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use dormouse_core::command::Command;
use dormouse_core::error::{Code, Error};
use dormouse_core::job::JobId;
use dormouse_core::op::Target;
use dormouse_core::topic::TopicName;

use super::args::{Args, is, shown, text};
use super::decode::Bounds;
use super::encode::{Out, Version};
use super::fault::{self, ERR};
use super::spec::{CommandNo, CommandSpec, Kind, nearest};
use super::verb::ReplyKind;
use crate::access::{Access, Grant, TokenHash, Verb};
use crate::metrics::Metrics;
use crate::pipeline::{Request, Standing, Turn};
use crate::visitor::{LastCaller, Visitor};

/// The number of jobs that the replies of one turn may hold: they stay in memory until they are
/// sent. A request above it ends its turn.
const JOBS_PER_TURN: usize = 16;

/// What is remembered of a command until its reply arrives.
pub(crate) struct PendingReply {
    pub(super) command: CommandNo,
    /// The version when it arrived; a HELLO may follow in the same turn.
    pub(super) version: Version,
    pub(super) kind: ReplyKind,
}

/// The state of a connection.
pub(super) struct Conn {
    access: Access,
    pub(super) metrics: Arc<Metrics>,
    visitor: Arc<Visitor>,
    pub(super) id: u64,
    pub(super) name: Vec<u8>,
    pub(super) version: Version,
    /// The hash of the token that the caller presented.
    shown: Option<TokenHash>,
    grant: Option<Grant>,
    /// The version of `access` that `grant` is from; `None` if it was never read.
    grant_version: Option<u64>,
    /// The caller's rights when the turn began, by which its requests are checked.
    grant_before: Option<Grant>,
    /// The rest of the input may come from another caller.
    pub(super) is_new_caller: bool,
    /// A token was refused: how long the answer has to wait.
    pub(super) delay: Option<Duration>,
    nobody: Grant,
    /// The topic named last: most connections use one topic.
    topic: Option<TopicName>,
    /// Jobs requested in this turn.
    jobs: usize,
    /// The command that is being run.
    command_no: CommandNo,
    pub(super) is_over: bool,
    /// MULTI was refused: everything up to EXEC is refused, too, or a part of the transaction would
    /// be done though its client was told that nothing was.
    in_transaction: bool,
}

impl Conn {
    pub(super) fn new(access: Access, metrics: Arc<Metrics>, visitor: Arc<Visitor>) -> Conn {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Conn {
            access,
            metrics,
            visitor,
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            name: Vec::new(),
            version: Version::Two,
            shown: None,
            grant: None,
            grant_version: None,
            grant_before: None,
            is_new_caller: false,
            delay: None,
            nobody: Grant::nobody(),
            topic: None,
            jobs: 0,
            command_no: CommandNo::UNKNOWN,
            is_over: false,
            in_transaction: false,
        }
    }

    /// Begins a turn. If the tokens have changed, this one is checked again: it may have been
    /// revoked.
    pub(super) fn begin_turn(&mut self) {
        self.jobs = 0;
        // Before the table is read: if it changes meanwhile, the next turn reads it again.
        let version = Some(self.access.version());
        if version == self.grant_version && !self.is_new_caller {
            return;
        }
        self.is_new_caller = false;
        self.grant_version = version;
        self.grant = self.access.grant_of(self.shown.as_ref());
        self.grant_before = self.grant.clone();
    }

    /// The caller's rights when the turn began.
    pub(super) fn grant_before(&self) -> &Grant {
        self.grant_before.as_ref().unwrap_or(&self.nobody)
    }

    /// The caller's rights.
    pub(super) fn grant(&self) -> &Grant {
        self.grant.as_ref().unwrap_or(&self.nobody)
    }

    /// Whether the caller is authenticated, or need not be.
    pub(super) fn is_known(&self) -> bool {
        self.grant.is_some()
    }

    /// What has become of the rights by which the last turn was read.
    pub(super) fn standing(&self) -> Standing {
        if self.grant_version == Some(self.access.version()) {
            let is_gone = self.shown.is_some() && self.grant.is_none();
            return if is_gone { Standing::Gone } else { Standing::Same };
        }
        match (&self.grant, self.access.grant_of(self.shown.as_ref())) {
            (Some(grant), Some(present)) if present.is(grant) => Standing::Same,
            (None, None) if self.shown.is_none() => Standing::Same,
            (_, None) if self.shown.is_some() => Standing::Gone,
            _ => Standing::Changed,
        }
    }

    /// Authenticates by a token; without one, resets. False if the token is unknown.
    pub(super) fn authenticate(&mut self, token: Option<(&TokenHash, &str)>) -> bool {
        let Some((hash, user)) = token else {
            self.shown = None;
            self.is_new_caller = true;
            self.grant = self.access.grant_of(None);
            self.visitor.note_caller(LastCaller::default());
            return true;
        };
        let Some(grant) = self.access.grant_of(Some(hash)) else { return false };
        // Without tokens, every name is accepted.
        if user != "default" && user != grant.name() && !self.access.is_open() {
            return false;
        }
        self.shown = Some(*hash);
        self.is_new_caller = true;
        self.visitor.note_caller(grant.caller());
        self.grant = Some(grant);
        true
    }

    /// Notes that a token was refused: who guesses waits for the answer.
    pub(super) fn token_refused(&mut self) {
        self.delay = Some(self.access.refused(&self.visitor));
    }

    pub(super) fn bounds(&self) -> Bounds {
        if self.is_known() { Bounds::KNOWN } else { Bounds::GUEST }
    }

    /// Runs one command; its name is the first argument.
    pub(super) fn command(&mut self, mut args: Args<'_>, turn: &mut Turn<PendingReply>) {
        // An empty line.
        let Some(name) = args.next() else { return };
        if self.is_known() && self.refuse_transaction(name, turn) {
            return;
        }
        let Some(no) = CommandNo::find(name) else { return self.refuse_unknown(name, turn) };
        let Some(spec) = no.spec() else { return };
        self.command_no = no;
        if let Err(error) = self.run(spec, &mut args, turn) {
            self.refuse(&error, turn);
        }
    }

    fn run(
        &mut self,
        spec: &CommandSpec,
        args: &mut Args<'_>,
        turn: &mut Turn<PendingReply>,
    ) -> Result<(), Error> {
        if !self.is_known() && spec.kind != Kind::NoAuth {
            let text = "Authentication required; send AUTH with your access token first";
            return Err(Error::new(Code::Unauthorized, text));
        }
        if !(spec.min..=spec.max).contains(&args.len()) {
            let CommandSpec { name, usage, .. } = spec;
            let text = format!("wrong number of arguments; write {name} {usage}");
            return Err(Error::invalid(text));
        }
        (spec.run)(self, args, turn)
    }

    /// Refuses a transaction, and every command in it.
    fn refuse_transaction(&mut self, name: &[u8], turn: &mut Turn<PendingReply>) -> bool {
        let begins = is(name, "MULTI");
        let ends = is(name, "EXEC") || is(name, "DISCARD");
        let leaves = is(name, "QUIT") || is(name, "RESET");
        if leaves {
            self.in_transaction = false;
        }
        if !(begins || ends || self.in_transaction) {
            return false;
        }
        self.in_transaction = !ends;
        self.command_no = CommandNo::UNKNOWN;
        let text = "there are no transactions, so nothing is done between MULTI and EXEC; send \
                    the same commands as a plain pipeline";
        self.decline(turn, ERR, text);
        true
    }

    fn refuse_unknown(&mut self, name: &[u8], turn: &mut Turn<PendingReply>) {
        self.command_no = CommandNo::UNKNOWN;
        if !self.is_known() {
            let text = "Authentication required; send AUTH with your access token first";
            return self.refuse(&Error::new(Code::Unauthorized, text), turn);
        }
        let name = shown(name);
        let name = name.trim_matches('"');
        let text = match nearest(name) {
            Some(meant) => format!("unknown command '{name}'; did you mean '{meant}'?"),
            None => format!("unknown command '{name}'; COMMAND DOCS lists the commands"),
        };
        self.decline(turn, ERR, &text);
    }

    /// Refuses a command that was not decoded.
    pub(super) fn refuse_unread(&mut self, error: &Error, turn: &mut Turn<PendingReply>) {
        self.command_no = CommandNo::UNKNOWN;
        self.refuse(error, turn);
    }

    /// Refuses a command with an error.
    pub(super) fn refuse(&mut self, error: &Error, turn: &mut Turn<PendingReply>) {
        self.metrics.resp(self.command_no.index(), Some(error.code));
        fault::write(&mut self.out(turn), error);
    }

    /// Refuses a command with an error that Redis has.
    pub(super) fn decline(&self, turn: &mut Turn<PendingReply>, word: &str, text: &str) {
        self.decline_as(turn, Code::Invalid, word, text);
    }

    /// As `decline`, counted under this code.
    pub(super) fn decline_as(
        &self,
        turn: &mut Turn<PendingReply>,
        code: Code,
        word: &str,
        text: &str,
    ) {
        self.metrics.resp(self.command_no.index(), Some(code));
        self.out(turn).error(word, text);
    }

    /// The reply to a command that needs no backend.
    pub(super) fn reply<'t>(&self, turn: &'t mut Turn<PendingReply>) -> Out<'t> {
        self.metrics.resp(self.command_no.index(), None);
        self.out(turn)
    }

    fn out<'t>(&self, turn: &'t mut Turn<PendingReply>) -> Out<'t> {
        Out::new(turn.reply_now(), self.version)
    }

    /// What to remember of this command until its reply arrives.
    pub(super) fn pending(&self, kind: ReplyKind) -> PendingReply {
        PendingReply { command: self.command_no, version: self.version, kind }
    }

    /// Reads a topic, and checks that the caller has this right on it.
    pub(super) fn topic(&mut self, verb: Verb, name: &[u8]) -> Result<TopicName, Error> {
        let known = self.topic.as_ref().filter(|topic| topic.as_str().as_bytes() == name);
        let topic = match known {
            Some(topic) => topic.clone(),
            None => TopicName::new(text("topic", name)?)?,
        };
        self.grant().check(verb, topic.as_str())?;
        self.topic = Some(topic.clone());
        Ok(topic)
    }

    /// As [`Access::check_ttr`].
    pub(super) fn check_ttr(
        &self,
        field: &str,
        span_ms: Option<i64>,
        name: Option<&str>,
    ) -> Result<(), Error> {
        self.access.check_ttr(self.grant(), field, span_ms, name)
    }

    /// Reads a job's id, or `topic KEY key`; then also checks the caller's right on the topic.
    /// Only these options may follow.
    pub(super) fn target(
        &mut self,
        verb: Verb,
        options: &[&'static str],
        args: &mut Args<'_>,
    ) -> Result<Target, Error> {
        let mut ahead = args.clone();
        let first = ahead.must("id")?;
        if !ahead.take("KEY") {
            // Any other word behind a topic was meant as a key.
            let is_stray = |word: &&[u8]| !options.iter().any(|option| is(word, option));
            let stray = ahead.peek().filter(is_stray);
            return args.id().map(Target::Id).map_err(|_| self.no_id(first, stray));
        }
        let topic = self.topic(verb, first)?;
        let key = ahead.bytes("KEY")?;
        *args = ahead;
        Ok(Target::Key { topic, key })
    }

    /// The error for an argument that is no id: it says what to write instead.
    fn no_id(&self, first: &[u8], stray: Option<&[u8]>) -> Error {
        let first = shown(first);
        let (name, usage) = self.command_no.spec().map_or(("", ""), |spec| (spec.name, spec.usage));
        let fix = match stray.map(shown) {
            Some(key) => format!("to name a job by its key write {name} {first} KEY {key}"),
            None => format!("write {name} {usage}"),
        };
        Error::invalid(format!("id {first} is not a number; {fix}"))
    }

    /// Adds a request, to be refused unless the caller has this right on these jobs.
    pub(super) fn send(
        &mut self,
        turn: &mut Turn<PendingReply>,
        command: impl Into<Command>,
        check: Option<(Verb, Vec<JobId>)>,
        kind: ReplyKind,
    ) {
        turn.send(Request::checked(command, check, self.pending(kind)));
    }

    /// As `send`, for a reply with up to this number of jobs: their bodies may be large.
    pub(super) fn send_for_jobs(
        &mut self,
        turn: &mut Turn<PendingReply>,
        jobs: usize,
        command: impl Into<Command>,
        check: Option<(Verb, Vec<JobId>)>,
        kind: ReplyKind,
    ) {
        self.jobs = self.jobs.saturating_add(jobs);
        let request = Request::checked(command, check, self.pending(kind));
        if self.jobs < JOBS_PER_TURN { turn.send(request) } else { turn.send_last(request) }
    }

    /// As `send`, for a request that may wait, or whose reply leads to another.
    pub(super) fn send_last(
        &mut self,
        turn: &mut Turn<PendingReply>,
        command: impl Into<Command>,
        kind: ReplyKind,
    ) {
        turn.send_last(Request::new(command, self.pending(kind)));
    }
}

/// The check that a request for this job needs.
pub(super) fn check_of(verb: Verb, target: &Target) -> Option<(Verb, Vec<JobId>)> {
    match target {
        Target::Id(id) => Some((verb, vec![*id])),
        // The right was checked when the topic was read.
        Target::Key { .. } => None,
    }
}
