"""The errors of the client, one type per code of the server.

Every error is a `DormouseError`. Its text says what was wrong, the limit, and the fix.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar


class DormouseError(Exception):
    """A request was refused, or it is not known what became of it."""

    code: ClassVar[str] = "error"

    def __init__(
        self,
        detail: str,
        *,
        status: int = 0,
        retryable: bool = False,
        id: str | None = None,
        state: str | None = None,
        retry_after: float | None = None,
        raw: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(detail)
        #: What was wrong, the limit, the fix.
        self.detail = detail
        #: The status of the answer; 0 if there was none.
        self.status = status
        #: Whether the same request may succeed later.
        self.retryable = retryable
        #: The id of the job that is in the way, if there is one.
        self.id = id
        #: The state of that job.
        self.state = state
        #: After how many seconds the server wants to be asked again.
        self.retry_after = retry_after
        #: The whole answer of the server.
        self.raw: Mapping[str, Any] = raw or {}

    def __str__(self) -> str:
        return f"{self.raw.get('code', self.code)}: {self.detail}"


class Invalid(DormouseError):
    """The request is malformed, or beyond a limit."""

    code = "invalid"


class Unauthorized(DormouseError):
    """The server wants a token, or does not know this one."""

    code = "unauthorized"


class Forbidden(DormouseError):
    """The token does not allow this verb on this topic."""

    code = "forbidden"


class NotFound(DormouseError):
    """There is no such job, topic, schedule, lock or path."""

    code = "not_found"


class NotAllowed(DormouseError):
    """The path does not have this method: the server is older or newer than the client."""

    code = "not_allowed"


class TooSlow(DormouseError):
    """The request arrived too slowly; it was not carried out."""

    code = "timeout"


class Conflict(DormouseError):
    """The job's state, a taken key, or a held lock forbids it."""

    code = "conflict"


class LeaseLost(DormouseError):
    """The lease of this token has ended, and another worker has, or had, the job."""

    code = "lease_lost"


class TooLarge(DormouseError):
    """A body, or the whole request, is beyond its limit."""

    code = "too_large"


class Misdirected(DormouseError):
    """The `Host` of the URL is not a name of this server."""

    code = "misdirected"


class Busy(DormouseError):
    """The server has too much to do at once; nothing was changed."""

    code = "busy"


class Unavailable(DormouseError):
    """The server is stopping, or its store has stopped; nothing was changed."""

    code = "unavailable"


class Unconfirmed(DormouseError):
    """It may or may not have happened: the answer was lost."""

    code = "unconfirmed"


class Full(DormouseError):
    """There is no room for more jobs; all verbs except put still work."""

    code = "full"


class Unreachable(DormouseError):
    """No server answers at any of the URLs; the request was not carried out."""

    code = "unreachable"


class BadAnswer(DormouseError):
    """Something answered, but not as a Dormouse server does."""

    code = "bad_answer"


class Closed(DormouseError):
    """The client was closed before this call."""

    code = "closed"


class PutFailed(DormouseError):
    """Some jobs of a `put_many` were refused; `results` has the result of each, in order."""

    code = "put_failed"

    def __init__(self, detail: str, results: list[Any]) -> None:
        super().__init__(detail)
        #: A `PutResult` for each job; those that failed have an `error`.
        self.results = results


_TYPES: Mapping[str, type[DormouseError]] = {
    kind.code: kind
    for kind in (
        Invalid, Unauthorized, Forbidden, NotFound, NotAllowed, TooSlow, Conflict, LeaseLost,
        TooLarge, Misdirected, Busy, Unavailable, Unconfirmed, Full,
    )
}  # fmt: skip


def from_problem(
    problem: Mapping[str, Any], *, status: int = 0, retry_after: float | None = None
) -> DormouseError:
    """Make the error for a problem, or for an item of `results` that failed.

    A code that this client does not know, of a newer server, is a plain `DormouseError`.
    """
    kind = _TYPES.get(str(problem.get("code")), DormouseError)
    detail = str(problem.get("detail") or problem.get("title") or "the server gave no reason")
    if kind is Unauthorized:
        detail += " (give the client a token: token=..., or the environment's DORMOUSE_TOKEN)"
    return kind(
        detail,
        status=int(problem.get("status", status)),
        retryable=bool(problem.get("retryable", False)),
        id=problem.get("id"),
        state=problem.get("state"),
        retry_after=retry_after,
        raw=problem,
    )
