"""Takes jobs as slots become free, with a long poll on a connection of its own."""

from __future__ import annotations

import asyncio
import time
from typing import Any, Callable

from .._call import AnswerLost, Call
from ..errors import DormouseError
from ..jobs import LeasedJob
from .line import Line, first_of

#: Verdicts that may wait to be told before no more jobs are taken.
UNTOLD_MAX = 5000

#: Called with a job and the monotonic time at which it was asked for.
Start = Callable[[LeasedJob, float], None]


class Fetcher:
    """Asks for as many jobs as there are free slots, and no more."""

    def __init__(
        self, line: Line, topics: list[str], slots: int, wait: float, ttr: int | str | None
    ) -> None:
        self._line = line
        self._fields: dict[str, Any] = {"topics": topics}
        if ttr is not None:
            self._fields["ttr"] = ttr
        self._wait = wait
        self._free = slots
        self._slots = slots
        self._change = asyncio.Event()
        self._stop = asyncio.Event()

    @property
    def is_idle(self) -> bool:
        """Whether no handler runs."""
        return self._free == self._slots

    def free(self) -> None:
        """Give a slot back."""
        self._free += 1
        self._change.set()

    async def until_idle(self, seconds: float, unless: asyncio.Event) -> bool:
        """Wait until no handler runs, at most so long or until the event; tell whether it is so."""
        until = time.monotonic() + seconds
        while not self.is_idle and not unless.is_set():
            left = until - time.monotonic()
            if left <= 0:
                break
            self._change.clear()
            await first_of(self._change, unless, seconds=left)
        return self.is_idle

    def stop(self) -> None:
        """End the poll at once."""
        self._stop.set()
        self._change.set()
        self._line.hang_up()

    async def run(self, start: Start, *, untold: Callable[[], int], drain: bool) -> None:
        """Fetch until it is stopped; with `drain` until no job is due and none runs."""
        wait = 0.0 if drain else self._wait
        while not self._stop.is_set():
            if self._free == 0 or untold() > UNTOLD_MAX:
                self._change.clear()
                # What else it waits for, verdicts to be told, has no event.
                await first_of(self._change, seconds=0.05 if self._free else None)
                continue
            fields = {**self._fields, "max": self._free, "wait": int(wait * 1000)}
            call = Call("POST", "/v1/reserve", fields, wait=wait)
            sent_at = time.monotonic()
            is_quiet = self.is_idle and untold() == 0
            try:
                answer = await self._line.ask(call)
            except (AnswerLost, DormouseError) as error:
                if self._stop.is_set():
                    return
                delay = self._line.trouble("the poll for jobs", error)
                await first_of(self._stop, seconds=delay)
                continue
            jobs: Any = answer["jobs"]
            for raw in jobs:
                self._free -= 1
                start(LeasedJob(raw), sent_at)
            if drain and not jobs:
                if is_quiet:
                    return
                self._change.clear()
                await first_of(self._change, seconds=0.02)
