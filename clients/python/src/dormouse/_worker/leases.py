"""Prolongs the leases of running jobs at a third of their ttr, many in one request."""

from __future__ import annotations

import asyncio
import math
import time
from typing import Any, Callable

from .._call import AnswerLost, Call
from ..errors import DormouseError
from .line import Line, first_of
from .running import Running

TOKENS_MAX = 1000
#: No time-out of an extend is shorter, however short the ttr.
TIMEOUT_SECONDS_MIN = 0.5

#: Called when a lease is lost, with the reason.
Lost = Callable[[Running, str], None]


class Leases:
    """The jobs whose handlers run, by their tokens."""

    def __init__(self, line: Line, lost: Lost) -> None:
        self._line = line
        self._lost = lost
        self._running: dict[str, Running] = {}
        self._wake = asyncio.Event()
        self._wake_at = math.inf

    def add(self, running: Running) -> None:
        """Keep this lease from ending."""
        self._running[running.token] = running
        if running.extend_at < self._wake_at:
            self._wake_at = running.extend_at
            self._wake.set()

    def remove(self, running: Running) -> None:
        """Let this lease end."""
        self._running.pop(running.token, None)

    async def run(self) -> None:
        """Prolong leases as their time comes."""
        while True:
            self._wake.clear()
            now = time.monotonic()
            due = [running for running in self._running.values() if running.extend_at <= now]
            if due:
                await self._extend(due[:TOKENS_MAX])
                continue
            times = [running.extend_at for running in self._running.values()]
            self._wake_at = min(times, default=math.inf)
            left = None if self._wake_at == math.inf else self._wake_at - now
            await first_of(self._wake, seconds=left)

    async def _extend(self, due: list[Running]) -> None:
        call = Call("POST", "/v1/extend", {"tokens": [running.token for running in due]})
        sent_at = time.monotonic()
        shortest = min(running.ttr for running in due)
        try:
            answer = await self._line.ask(call, max(shortest / 3, TIMEOUT_SECONDS_MIN))
        except (AnswerLost, DormouseError) as error:
            # A lease that runs out meanwhile is not lost: its token is good until another takes it.
            delay = self._line.trouble(str(call), error)
            for running in due:
                running.extend_at = time.monotonic() + delay
            return
        results: Any = answer["results"]
        for running, result in zip(due, results):
            if "expires_at" in result:
                running.prolonged(sent_at)
            elif result.get("retryable"):
                running.extend_at = time.monotonic() + 0.1
            elif not running.ended:
                self._lost(running, str(result.get("detail", result.get("code"))))
