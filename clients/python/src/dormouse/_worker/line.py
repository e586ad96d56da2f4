"""A line to the servers for one purpose: tries one after another, and never gives up in silence."""

from __future__ import annotations

import asyncio
import time

from .._address import Address
from .._async._io import Connection, connect
from .._call import AnswerLost, Backoff, Call, notify, read_answer
from .._settings import Settings
from ..errors import Busy, DormouseError, TooSlow, Unavailable, Unconfirmed, Unreachable
from ..hooks import RetryNotice


class Line:
    """One connection, opened again when it breaks, at the next server if there are several."""

    def __init__(self, settings: Settings, retry_for: float | None = None) -> None:
        self._settings = settings
        self._retry_for = retry_for
        self._index = 0
        self._connection: Connection | None = None
        self._backoff = Backoff()
        self._attempt = 1
        self._good_at = time.monotonic()
        self._is_hung_up = False

    @property
    def address(self) -> Address:
        """The server that is asked next."""
        return self._settings.addresses[self._index]

    async def ask(self, call: Call, timeout: float | None = None) -> dict[str, object]:
        """Send a call once; raise `AnswerLost` or an error if that fails."""
        timeout = self._settings.timeout if timeout is None else timeout
        if self._connection is None or not self._connection.is_open:
            self._connection = None
            self._connection = await connect(self.address, timeout)
        if self._is_hung_up:
            raise AnswerLost("nothing more is asked")
        answer: dict[str, object] = read_answer(await self._connection.exchange(call, timeout))
        self._backoff.reset()
        self._attempt = 1
        self._good_at = time.monotonic()
        return answer

    def trouble(self, what: str, error: Exception) -> float:
        """Take a failure: give the seconds until the next try, or raise what cannot be mended."""
        passing = (AnswerLost, Unreachable, Busy, Unavailable, TooSlow, Unconfirmed)
        if not isinstance(error, passing):
            raise error
        silent_for = time.monotonic() - self._good_at
        if self._retry_for is not None and silent_for > self._retry_for:
            raise Unreachable(
                f"no server has answered for {silent_for:.0f} s (retry_for is "
                f"{self._retry_for:g} s); the last: {error}",
                retryable=True,
            ) from error
        if self._connection is not None and not isinstance(error, DormouseError):
            self._connection.close()
        self._attempt += 1
        self._index = (self._index + 1) % len(self._settings.addresses)
        if len(self._settings.addresses) > 1:
            self.close()
        delay = self._backoff.next()
        if isinstance(error, DormouseError) and error.retry_after is not None:
            delay = max(delay, error.retry_after)
        notify(self._settings, RetryNotice(what, self.address.url, error, self._attempt, delay))
        return delay

    def hang_up(self) -> None:
        """End a wait of the server at once; an answer on its way still arrives."""
        self._is_hung_up = True
        if self._connection is not None:
            self._connection.hang_up()

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None


async def first_of(*events: asyncio.Event, seconds: float | None) -> None:
    """Wait for the first of these events, at most so long."""
    waiters = [asyncio.ensure_future(event.wait()) for event in events]
    try:
        await asyncio.wait(waiters, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for waiter in waiters:
            waiter.cancel()
