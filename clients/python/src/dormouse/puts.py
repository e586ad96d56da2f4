"""Puts: what a job is put with, and what became of it."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ._answer import Answer, maybe_text, maybe_when, text, truth
from .errors import DormouseError, from_problem
from .times import Instant, Span, instant, span

#: What a job carries: text, bytes, nothing, or anything that JSON can express.
Body = Any


class Backoff(dict[str, Any]):
    """How long a job waits after failed attempts."""

    @classmethod
    def fixed(cls, wait: Span, *, jitter: float | None = None) -> Backoff:
        """Wait the same each time."""
        return cls({"fixed": span(wait, "wait")})._with(jitter)

    @classmethod
    def exponential(
        cls, base: Span, *, factor: int = 2, cap: Span = "10m", jitter: float | None = None
    ) -> Backoff:
        """Wait `base`, then `factor` times as long each time, at most `cap`."""
        fields = {"base": span(base, "base"), "factor": factor, "cap": span(cap, "cap")}
        return cls({"exponential": fields})._with(jitter)

    @classmethod
    def list(cls, *waits: Span, jitter: float | None = None) -> Backoff:
        """Wait these spans, then the last one again."""
        return cls({"list": [span(wait, "wait") for wait in waits]})._with(jitter)

    def _with(self, jitter: float | None) -> Backoff:
        if jitter is not None:
            self["jitter"] = jitter
        return self


@dataclass
class Put:
    """A job to put. What is not given is the topic's default, or the server's.

    `more` is sent as it is: options of a server that is newer than this client.
    """

    body: Body = None
    delay: Span | None = None
    at: Instant | None = None
    key: str | None = None
    on_conflict: str | None = None
    key_ttl: Span | None = None
    priority: int | None = None
    ttr: Span | None = None
    attempts_max: int | None = None
    backoff: Mapping[str, Any] | None = None
    headers: Mapping[str, str] | None = None
    expires_after: Span | None = None
    group: str | None = None
    more: Mapping[str, Any] | None = None

    def fields(self) -> dict[str, Any]:
        """Give the fields as the server reads them."""
        fields = body_fields(self.body)
        for name in ("delay", "key_ttl", "ttr", "expires_after"):
            value = getattr(self, name)
            if value is not None:
                fields[name] = span(value, name)
        if self.at is not None:
            fields["at"] = instant(self.at, "at")
        for name in ("key", "on_conflict", "priority", "attempts_max", "group"):
            value = getattr(self, name)
            if value is not None:
                fields[name] = value
        if self.backoff is not None:
            fields["backoff"] = dict(self.backoff)
        if self.headers:
            fields["headers"] = dict(self.headers)
        if self.more:
            fields.update(self.more)
        return fields


def body_fields(body: Body) -> dict[str, Any]:
    """Choose the field of a body: `text`, `base64`, `body`, or none."""
    if body is None:
        return {}
    if isinstance(body, str):
        return {"text": body}
    if isinstance(body, (bytes, bytearray, memoryview)):
        return {"base64": base64.b64encode(body).decode("ascii")}
    return {"body": body}


class PutResult(Answer):
    """What became of a put."""

    __slots__ = ("repeated",)

    #: The job's id; of a failed item the id of the job in the way, or empty.
    code = text("code")
    #: `delayed`, `ready`, ...; none if only the key is held.
    state = maybe_text("state")
    due_at = maybe_when("due_at")
    #: A job with this key was there, and stays as it is.
    duplicate = truth("duplicate")

    def __init__(self, raw: Mapping[str, Any], *, repeated: bool = False) -> None:
        super().__init__(raw)
        #: The put was sent again because an answer was lost: a `duplicate` may be your own job.
        self.repeated = repeated

    @property
    def id(self) -> str:
        """The id of the job."""
        return str(self.raw.get("id", ""))

    @property
    def error(self) -> DormouseError | None:
        """Why this job of a `put_many` was refused."""
        return from_problem(self.raw) if "detail" in self.raw else None
