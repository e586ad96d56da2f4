"""What a program can see of its clients and workers: subclass `Hooks` and override.

All events are also lines of the logger `dormouse`.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from .jobs import LeasedJob

#: The logger of this package.
log = logging.getLogger("dormouse")

_current: ContextVar[LeasedJob | None] = ContextVar("dormouse_current_job", default=None)


@dataclass(frozen=True)
class RetryNotice:
    """A request failed and will be sent again."""

    #: `POST /v1/ack`, ...
    what: str
    #: Where it failed.
    url: str
    error: Exception
    #: The number of the next try; 2 is the first repeat.
    attempt: int
    #: Seconds until then.
    delay: float


class Hooks:
    """Does nothing; a program overrides what it wants to know.

    The hooks of a worker run on its event loop: they must not block. An error in a hook is logged,
    and the job goes on.
    """

    def on_retry(self, notice: RetryNotice) -> None:
        """Called before a client or worker waits to try again."""

    def on_end(self, job: LeasedJob, how: str, seconds: float) -> None:
        """Called when a handler's job has ended here, before the server is told.

        `how` is `done`, `failed`, `dead`, `released` or `lost`.
        """

    def on_told(self, job: LeasedJob, how: str, code: str) -> None:
        """Called when the server has answered: `done`, `retry`, `dead`, `gone`, `lease_lost`."""

    def around(self, job: LeasedJob) -> AbstractContextManager[Any]:  # noqa: ARG002
        """Give a context in which the handler runs: a span of a trace."""
        return nullcontext()

    def trace_headers(self) -> Mapping[str, str]:
        """Give the headers of a put that carry its trace.

        Unless overridden they are those of the job whose handler puts: a trace goes on.
        """
        job = _current.get()
        if job is None:
            return {}
        headers = job.headers
        return {name: headers[name] for name in ("traceparent", "tracestate") if name in headers}


def current_job() -> LeasedJob | None:
    """Give the job whose handler is running here."""
    return _current.get()


def enter_job(job: LeasedJob) -> None:
    """Make this the job whose handler runs, in the handler's own context."""
    _current.set(job)
