"""How a handler ends its job: it returns `Done`, or raises one of the others.

A handler that returns nothing acks its job, too. One that raises any other error nacks it, with the
error's text, and the job is retried after its backoff.
"""

from __future__ import annotations

from .puts import Body, Put
from .times import Span, span


class Done:
    """Done, and these jobs come next: the ack and the puts happen together, or not at all.

    A handler returns it: `return Done().put("mails", {"to": "you"})`. The puts need no key of their
    own, because an ack happens once.
    """

    def __init__(self) -> None:
        #: Topics and the jobs that are put into them.
        self.puts: list[tuple[str, Put]] = []

    def put(self, topic: str, job: Put | Body = None) -> Done:
        """Add a job: a body, or `Put(body, delay=..., key=...)`. At most 100 of them."""
        self.puts.append((topic, job if isinstance(job, Put) else Put(job)))
        return self


class Outcome(Exception):
    """The base of what a handler raises to end its job; not an error of its own."""


def _check(after: Span | None) -> None:
    """Refuse a bad span here, in the handler, where its traceback names the line."""
    if after is not None:
        span(after, "after")


class Retry(Outcome):
    """Failed: try again after `after`, or after the job's backoff. The attempt is spent."""

    def __init__(
        self, after: Span | None = None, reason: str = "", *, priority: int | None = None
    ) -> None:
        super().__init__(reason or "the handler asked for a retry")
        _check(after)
        self.after = after
        self.priority = priority


class Kill(Outcome):
    """Failed for good: the job is dead at once, and the reason is kept with it."""

    def __init__(self, reason: str = "the handler gave up on it") -> None:
        super().__init__(reason)


class Release(Outcome):
    """Not tried: the job is given back, and the attempt is not spent."""

    def __init__(self, after: Span | None = None, *, priority: int | None = None) -> None:
        super().__init__("the handler gave it back")
        _check(after)
        self.after = after
        self.priority = priority


class BadBody(Kill, ValueError):
    """The body is not what the handler wants to read. Trying again would not help: a kill."""
