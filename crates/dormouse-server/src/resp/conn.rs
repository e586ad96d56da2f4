//! What a connection has set up, and how it does a command.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

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
use crate::pipeline::{Request, Turn};

/// Jobs that may be asked for in one turn: what comes of them is held until it is sent. Who asks
/// for more gets the rest in turns of their own.
const JOBS_PER_TURN: usize = 16;

/// What is remembered of a command until its outcome is there.
pub(crate) struct PendingReply {
    pub(super) command: CommandNo,
    /// What was spoken when it came; a HELLO may have come behind it.
    pub(super) version: Version,
    pub(super) kind: ReplyKind,
}

/// A connection.
pub(super) struct Conn {
    access: Access,
    pub(super) metrics: Arc<Metrics>,
    pub(super) id: u64,
    pub(super) name: Vec<u8>,
    pub(super) version: Version,
    /// Of the token that was shown.
    shown: Option<TokenHash>,
    grant: Option<Grant>,
    /// What the caller might do when the turn began: what was asked in it is judged by that.
    grant_before: Option<Grant>,
    /// Somebody else may be speaking from here on.
    pub(super) is_new_caller: bool,
    nobody: Grant,
    /// The topic named last: most connections name the same one again and again.
    topic: Option<TopicName>,
    /// Jobs asked for in this turn.
    jobs: usize,
    /// The command under way.
    command_no: CommandNo,
    pub(super) is_over: bool,
    /// A transaction was begun, which there are none of: nothing is done until it ends, or a part
    /// of it would be done and its client told that nothing was.
    in_transaction: bool,
}

impl Conn {
    pub(super) fn new(access: Access, metrics: Arc<Metrics>) -> Conn {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Conn {
            access,
            metrics,
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            name: Vec::new(),
            version: Version::Two,
            shown: None,
            grant: None,
            grant_before: None,
            is_new_caller: false,
            nobody: Grant::nobody(),
            topic: None,
            jobs: 0,
            command_no: CommandNo::UNKNOWN,
            is_over: false,
            in_transaction: false,
        }
    }

    /// A turn begins. The token is judged anew: it may have been revoked.
    pub(super) fn begin_turn(&mut self) {
        self.jobs = 0;
        self.is_new_caller = false;
        self.grant = self.access.grant_of(self.shown.as_ref());
        self.grant_before = self.grant.clone();
    }

    /// What the caller might do when the turn began.
    pub(super) fn grant_before(&self) -> &Grant {
        self.grant_before.as_ref().unwrap_or(&self.nobody)
    }

    /// What the caller may do.
    pub(super) fn grant(&self) -> &Grant {
        self.grant.as_ref().unwrap_or(&self.nobody)
    }

    /// Whether the caller has shown who they are, or need not.
    pub(super) fn is_known(&self) -> bool {
        self.grant.is_some()
    }

    /// Shows a token; without one, everything shown before is forgotten. Gives whether it is known.
    pub(super) fn show(&mut self, token: Option<(&TokenHash, &str)>) -> bool {
        let Some((hash, user)) = token else {
            self.shown = None;
            self.is_new_caller = true;
            self.grant = self.access.grant_of(None);
            return true;
        };
        let Some(grant) = self.access.grant_of(Some(hash)) else { return false };
        // Without tokens everybody is welcome under every name.
        if user != "default" && user != grant.name() && !self.access.is_open() {
            return false;
        }
        self.shown = Some(*hash);
        self.is_new_caller = true;
        self.grant = Some(grant);
        true
    }

    /// How much the caller may send at once.
    pub(super) fn bounds(&self) -> Bounds {
        if self.is_known() { Bounds::KNOWN } else { Bounds::GUEST }
    }

    /// Does one command, whose name is the first of its arguments.
    pub(super) fn command(&mut self, mut args: Args<'_>, turn: &mut Turn<PendingReply>) {
        // A line with nothing in it.
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

    /// Says no to a transaction, and to all that stands in it.
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

    /// Says why a command is not even read.
    pub(super) fn refuse_unread(&mut self, error: &Error, turn: &mut Turn<PendingReply>) {
        self.command_no = CommandNo::UNKNOWN;
        self.refuse(error, turn);
    }

    /// Says why a command is not done.
    pub(super) fn refuse(&mut self, error: &Error, turn: &mut Turn<PendingReply>) {
        self.metrics.resp(self.command_no.index(), Some(error.code));
        fault::write(&mut self.out(turn), error);
    }

    /// Says no in words that Redis has for it.
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

    /// Answers at once, with what needs no backend.
    pub(super) fn reply<'t>(&self, turn: &'t mut Turn<PendingReply>) -> Out<'t> {
        self.metrics.resp(self.command_no.index(), None);
        self.out(turn)
    }

    fn out<'t>(&self, turn: &'t mut Turn<PendingReply>) -> Out<'t> {
        Out::new(turn.reply_now(), self.version)
    }

    /// What to remember of the command under way.
    pub(super) fn pending(&self, kind: ReplyKind) -> PendingReply {
        PendingReply { command: self.command_no, version: self.version, kind }
    }

    /// A topic, if the caller may do this there.
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

    /// A job by its id, or by `topic KEY key`; by key, if the caller may do this in its topic.
    /// Behind it only these options stand.
    pub(super) fn target(
        &mut self,
        verb: Verb,
        options: &[&'static str],
        args: &mut Args<'_>,
    ) -> Result<Target, Error> {
        let mut ahead = args.clone();
        let first = ahead.must("id")?;
        if !ahead.take("KEY") {
            // What else stands behind a topic was meant for a key.
            let is_stray = |word: &&[u8]| !options.iter().any(|option| is(word, option));
            let stray = ahead.peek().filter(is_stray);
            return args.id().map(Target::Id).map_err(|_| self.no_id(first, stray));
        }
        let topic = self.topic(verb, first)?;
        let key = ahead.bytes("KEY")?;
        *args = ahead;
        Ok(Target::Key { topic, key })
    }

    /// Says what to write instead of this, which is no id.
    fn no_id(&self, first: &[u8], stray: Option<&[u8]>) -> Error {
        let first = shown(first);
        let (name, usage) = self.command_no.spec().map_or(("", ""), |spec| (spec.name, spec.usage));
        let fix = match stray.map(shown) {
            Some(key) => format!("to name a job by its key write {name} {first} KEY {key}"),
            None => format!("write {name} {usage}"),
        };
        Error::invalid(format!("id {first} is not a number; {fix}"))
    }

    /// Asks the backend, if the caller may do this with the jobs of these ids.
    pub(super) fn send(
        &mut self,
        turn: &mut Turn<PendingReply>,
        command: impl Into<Command>,
        check: Option<(Verb, Vec<JobId>)>,
        kind: ReplyKind,
    ) {
        turn.send(Request::checked(command, check, self.pending(kind)));
    }

    /// As `send`, for what is answered with so many jobs, and bodies may be large.
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

    /// As `send`, for what may wait, or whose answer decides what is asked next.
    pub(super) fn send_last(
        &mut self,
        turn: &mut Turn<PendingReply>,
        command: impl Into<Command>,
        kind: ReplyKind,
    ) {
        turn.send_last(Request::new(command, self.pending(kind)));
    }
}

/// The check that a command on this job needs.
pub(super) fn check_of(verb: Verb, target: &Target) -> Option<(Verb, Vec<JobId>)> {
    match target {
        Target::Id(id) => Some((verb, vec![*id])),
        // It was checked when its topic was read.
        Target::Key { .. } => None,
    }
}
