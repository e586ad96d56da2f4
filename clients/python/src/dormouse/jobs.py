"""Jobs and leases, as the server answers them."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Mapping
from typing import Any, Union

from ._answer import (
    Answer,
    answers,
    duration,
    items,
    mapping,
    maybe_text,
    maybe_when,
    number,
    text,
    when,
)
from .errors import DormouseError, Invalid, from_problem
from .outcome import BadBody
from .puts import PutResult


class _WithBody(Answer):
    """A job with its body."""

    __slots__ = ()

    topic = text("topic")
    id = text("id")
    key = maybe_text("key")
    due_at = when("due_at")
    put_at = when("put_at")
    priority = number("priority")
    ttr = duration("ttr_ms")
    headers = mapping("headers")
    #: What the topic's limits of groups are counted by.
    group = maybe_text("group")
    #: The schedule whose tick put the job, if one did.
    schedule = maybe_text("schedule")
    tick = maybe_when("tick")

    @property
    def is_json(self) -> bool:
        """Whether the job was put with a JSON value."""
        return "body" in self.raw

    def json(self) -> Any:
        """Read the body as JSON.

        Raises:
            BadBody: it is not JSON. In a handler this kills the job.
        """
        if "body" in self.raw:
            return self.raw["body"]
        try:
            return json.loads(self.bytes())
        except ValueError as error:
            raise BadBody(f"the body is not JSON: {error}") from None

    def text(self) -> str:
        """Read the body as text; a JSON value is written as JSON.

        Raises:
            BadBody: it is not UTF-8. In a handler this kills the job.
        """
        if "text" in self.raw:
            return str(self.raw["text"])
        try:
            return self.bytes().decode("utf-8")
        except UnicodeDecodeError as error:
            raise BadBody(f"the body is not UTF-8: {error}") from None

    def bytes(self) -> bytes:
        """Give the body as bytes; a JSON value is written as JSON."""
        if "base64" in self.raw:
            return base64.b64decode(self.raw["base64"])
        if "text" in self.raw:
            return str(self.raw["text"]).encode("utf-8")
        if "body" in self.raw:
            return json.dumps(self.raw["body"], ensure_ascii=False).encode("utf-8")
        return b""


class Job(_WithBody):
    """A job as `get` and `list` show it."""

    __slots__ = ()

    #: `delayed`, `ready`, `leased`, `dead` or `done`.
    state = text("state")
    #: The limit of the topic that keeps a ready job from being taken now.
    held_by = maybe_text("held_by")
    attempts = number("attempts", 0)
    attempts_max = number("attempts_max", 0)
    key_ttl = duration("key_ttl_ms")
    error = maybe_text("error")
    reserves = number("reserves", 0)
    expiries = number("expiries", 0)
    releases = number("releases", 0)
    kills = number("kills", 0)
    kicks = number("kicks", 0)


class LeasedJob(_WithBody):
    """A job that this process has reserved, and the signal that it has lost it."""

    __slots__ = ("lost", "lost_reason")

    #: The proof of this lease.
    token = text("token")
    #: 1 at the first try.
    attempt = number("attempt")
    late_ms = number("late_ms", 0)
    expires_at = when("expires_at")
    #: Ticks before this one that got no job.
    ticks_missed = number("ticks_missed", 0)

    def __init__(self, raw: Mapping[str, Any]) -> None:
        super().__init__(raw)
        #: Set by a worker when the job is no longer ours: stop, and change nothing more.
        self.lost = threading.Event()
        #: Why, once `lost` is set.
        self.lost_reason = ""

    @property
    def fence(self) -> int:
        """A number that grows with each lease of the job: stores can refuse older ones."""
        return int(self.token.rpartition(".")[2])

    @property
    def traceparent(self) -> str | None:
        """The W3C trace context of the put."""
        return self.headers.get("traceparent")

    @property
    def tracestate(self) -> str | None:
        """The W3C trace state of the put."""
        return self.headers.get("tracestate")


#: A lease, by its job or by its token.
Lease = Union[LeasedJob, str]


def token_of(lease: Lease) -> str:
    """Give the token of a lease."""
    if isinstance(lease, LeasedJob):
        return lease.token
    if isinstance(lease, str):
        return lease
    raise Invalid(f"{lease!r} is no lease; give a job from reserve, or its token")


class Change(Answer):
    """What became of a waiting job, and what it was before."""

    __slots__ = ()

    id = text("id")
    #: `cancelled`, `rescheduled` or `revived`.
    code = text("code")
    #: The state before: `delayed` or `ready` is in time; `leased` means that a worker had it.
    was = text("was")
    due_at = maybe_when("due_at")


class Ending(Answer):
    """What became of a lease."""

    __slots__ = ()

    #: `done`, `retry`, `dead`, or `gone` if the job does not exist any more.
    code = text("code")
    token = maybe_text("token")
    #: Of a nack: when the job is tried again.
    due_at = maybe_when("due_at")
    #: Of an extend: the new end of the lease.
    expires_at = maybe_when("expires_at")
    #: Of an ack with puts: what became of each; empty if the job was gone.
    put = answers("put", PutResult)

    @property
    def error(self) -> DormouseError | None:
        """Why this one of several was refused."""
        return from_problem(self.raw) if "detail" in self.raw else None


class JobPage(Answer):
    """Some jobs of a topic, and where the next ones begin."""

    __slots__ = ()

    cursor = maybe_text("cursor")
    _jobs = items("jobs")

    @property
    def jobs(self) -> list[Job]:
        """The jobs of this page."""
        return [Job(job) for job in self._jobs]
