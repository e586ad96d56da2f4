"""Calls of the API, and what may be done about one that fails."""

from __future__ import annotations

import enum
import json
import random
import time
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from ._address import Address
from ._http import Response, write_body, write_request
from ._settings import Settings
from .errors import (
    BadAnswer,
    Busy,
    Conflict,
    DormouseError,
    LeaseLost,
    NotFound,
    TooSlow,
    Unavailable,
    Unconfirmed,
    Unreachable,
    from_problem,
)
from .hooks import RetryNotice, log

BACKOFF_FIRST_SECONDS = 0.1
BACKOFF_MAX_SECONDS = 5.0


class Repeat(enum.Enum):
    """Whether a request may be sent again when its answer was lost."""

    #: The second answer is as good as the first.
    SAFE = enum.auto()
    #: It may; but if the second is refused, the first may have been the reason.
    CHECKED = enum.auto()
    #: It would do the thing twice.
    NEVER = enum.auto()


class AnswerLost(Exception):
    """The request was sent, at least in part, and the answer did not come."""


@dataclass
class Call:
    """One request of the API."""

    method: str
    target: str
    body: Any = None
    repeat: Repeat = Repeat.SAFE
    #: Seconds that the server may wait before it answers.
    wait: float = 0.0

    def __str__(self) -> str:
        return f"{self.method} {self.target}"

    def write(self, address: Address) -> bytes:
        """Write the request for one server."""
        body = None
        if self.body is not None:
            body = self.body if isinstance(self.body, bytes) else write_body(self.body)
        return write_request(self.method, address.base + self.target, address.headers, body)


def with_query(target: str, **parameters: str | int | bool | None) -> str:
    """Add the parameters that are given."""
    given = {
        name.rstrip("_"): str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in parameters.items()
        if value is not None
    }
    return f"{target}?{urlencode(given)}" if given else target


def read_answer(response: Response) -> Any:
    """Read the JSON of a response, or raise its problem."""
    try:
        answer = json.loads(response.body) if response.body else {}
    except ValueError:
        if response.status in (502, 503, 504):
            raise AnswerLost(f"a proxy answered with status {response.status}") from None
        raise BadAnswer(
            f"status {response.status} with a body that is no JSON: {response.body[:60]!r}; "
            "is the URL that of a Dormouse server, and does a proxy answer in its place?",
            status=response.status,
        ) from None
    # The answer to a list of one item has the status of that item.
    if response.status < 300 or (isinstance(answer, dict) and "results" in answer):
        return answer
    if not isinstance(answer, dict) or "code" not in answer:
        raise BadAnswer(
            f"status {response.status} without a code: {response.body[:60]!r}; "
            "is the URL that of a Dormouse server?",
            status=response.status,
        )
    after = response.header("retry-after")
    raise from_problem(
        answer,
        status=response.status,
        retry_after=float(after) if after is not None and after.isdigit() else None,
    )


class Backoff:
    """Waits between tries: twice as long each time, a random part of it."""

    def __init__(self) -> None:
        self._ceiling = BACKOFF_FIRST_SECONDS

    def next(self) -> float:
        """Give the seconds until the next try."""
        delay = self._ceiling * random.uniform(0.5, 1)
        self._ceiling = min(self._ceiling * 2, BACKOFF_MAX_SECONDS)
        return delay

    def reset(self) -> None:
        """Begin again: the last try succeeded."""
        self._ceiling = BACKOFF_FIRST_SECONDS


class Trial:
    """The tries of one call: where to send it, and whether to send it once more."""

    def __init__(self, settings: Settings, call: Call, first: int = 0) -> None:
        self._settings = settings
        self._call = call
        self._backoff = Backoff()
        self._started = time.monotonic()
        self._attempt = 1
        #: The index of the server that is tried.
        self.index = first
        #: Whether an answer was lost: the request may have been carried out.
        self.lost = False

    @property
    def address(self) -> Address:
        """The server for this try."""
        return self._settings.addresses[self.index]

    def failed(self, error: Exception) -> float:
        """Take the failure of a try; give the seconds until the next, or raise the error."""
        after: float | None = None
        if isinstance(error, (AnswerLost, Unconfirmed)):
            if self._call.repeat is Repeat.NEVER:
                raise self._unconfirmed(error) from error
            self.lost = True
        elif isinstance(error, (Busy, Unavailable, TooSlow)):
            after = error.retry_after
        elif not isinstance(error, Unreachable):
            raise self._refused(error)
        self._attempt += 1
        self.index = (self.index + 1) % len(self._settings.addresses)
        # A server that was not tried yet is asked at once.
        delay = 0.0
        if self._attempt > len(self._settings.addresses):
            delay = max(self._backoff.next(), after or 0.0)
        if time.monotonic() + delay > self._started + self._settings.retry_for:
            raise self._given_up(error) from error
        notify(
            self._settings,
            RetryNotice(str(self._call), self.address.url, error, self._attempt, delay),
        )
        return delay

    def _refused(self, error: Exception) -> Exception:
        is_own_doing = isinstance(error, (NotFound, Conflict, LeaseLost))
        if self.lost and self._call.repeat is Repeat.CHECKED and is_own_doing:
            return self._unconfirmed(error)
        return error

    def _given_up(self, error: Exception) -> Exception:
        if (self.lost and self._call.repeat is not Repeat.SAFE) or isinstance(error, Unconfirmed):
            return self._unconfirmed(error)
        if isinstance(error, DormouseError) and not self.lost:
            return error
        return Unreachable(
            f"{self._call} got no answer in {self._settings.retry_for:g} s and "
            f"{self._attempt - 1} tries; the last: {error}",
            retryable=True,
        )

    def _unconfirmed(self, error: Exception) -> Unconfirmed:
        raw = error.raw if isinstance(error, DormouseError) else {}
        return Unconfirmed(
            f"{self._call} was sent and its answer lost, so it may or may not have happened "
            f"(the last: {error}); look at what is there before you do it again",
            id=raw.get("id"),
            retryable=True,
        )


def notify(settings: Settings, notice: RetryNotice) -> None:
    """Tell that something is tried again: never in silence."""
    log.warning(
        "%s failed: %s; try %d at %s in %.2f s",
        notice.what, notice.error, notice.attempt, notice.url, notice.delay,
    )  # fmt: skip
    try:
        settings.hooks.on_retry(notice)
    except Exception:
        log.exception("the hook on_retry raised")
