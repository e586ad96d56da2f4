"""A job whose handler runs, and how its end is told."""

from __future__ import annotations

import asyncio
import inspect
import time
from dataclasses import dataclass, field
from typing import Any

from .._http import write_body
from .._puts import chain_fields
from ..hooks import Hooks
from ..jobs import LeasedJob
from ..outcome import Done, Kill, Outcome, Release, Retry
from ..times import span

#: The server keeps 1 KiB of an error's text.
ERROR_CHARS_MAX = 1000


@dataclass
class Verdict:
    """What the server is to be told about a lease."""

    job: LeasedJob
    #: `ack`, `nack`, `release` or `kill`.
    verb: str
    fields: dict[str, Any] = field(default_factory=dict)
    #: The request of an ack with puts, already written; such an ack goes alone.
    chain: bytes | None = None
    #: The monotonic time after which telling it makes no sense.
    give_up_at: float = 0.0
    #: Whether it was sent before and no answer came.
    is_repeat: bool = False


class Running:
    """A job in the hands of its handler."""

    __slots__ = (
        "ended", "extend_at", "job", "lease_end", "started", "task", "timer", "token", "ttr",
    )  # fmt: skip

    def __init__(self, job: LeasedJob, reserved_at: float) -> None:
        self.job = job
        self.token = job.token
        self.ttr = job.ttr.total_seconds()
        self.started = time.monotonic()
        self.ended = False
        self.task: asyncio.Task[None] | None = None
        self.timer: asyncio.TimerHandle | None = None
        self.extend_at = 0.0
        self.lease_end = 0.0
        self.prolonged(reserved_at)

    def prolonged(self, sent_at: float) -> None:
        """Count the lease from when it was asked for: it cannot end before."""
        self.lease_end = sent_at + self.ttr
        self.extend_at = sent_at + self.ttr / 3

    def lose(self, reason: str) -> None:
        """Tell the handler that the job is no longer its own."""
        self.job.lost_reason = reason
        self.job.lost.set()
        if self.task is not None:
            self.task.cancel()


def chain_of(job: LeasedJob, result: object, hooks: Hooks) -> bytes | None:
    """Read what a handler returned, where its trace still runs; raise what cannot be meant."""
    if isinstance(result, Outcome):
        raise result
    if inspect.isawaitable(result):
        raise TypeError("the handler returned an awaitable; declare it with `async def`")
    if not isinstance(result, Done) or not result.puts:
        return None
    return write_body({"token": job.token, **chain_fields(result, hooks)})


def verdict_of(job: LeasedJob, error: BaseException | None, chain: bytes | None = None) -> Verdict:
    """Judge a handler's end: what it returned or raised."""
    if error is None:
        return Verdict(job, "ack", chain=chain)
    if isinstance(error, Release):
        return Verdict(job, "release", _options(error))
    if isinstance(error, Kill):
        return Verdict(job, "kill", {"error": text_of(error)})
    if isinstance(error, Retry):
        return Verdict(job, "nack", {"error": text_of(error), **_options(error)})
    return Verdict(job, "nack", {"error": text_of(error)})


def _options(error: Retry | Release) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    if error.after is not None:
        fields["delay"] = span(error.after, "after")
    if error.priority is not None:
        fields["priority"] = error.priority
    return fields


def text_of(error: BaseException) -> str:
    """Give the text that is kept with the job."""
    text = str(error)
    if not isinstance(error, (Retry, Kill)):
        text = f"{type(error).__name__}: {text}" if text else type(error).__name__
    return text[:ERROR_CHARS_MAX].encode("utf-8", "replace").decode("utf-8")
