"""Threads for handlers that are plain functions.

They are daemons: a handler that hangs must not keep the process from ending.
"""

from __future__ import annotations

import queue
import threading
from typing import Callable


class Threads:
    """Runs functions on at most so many threads, started as they are needed."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._tasks: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._started = 0
        self._idle = threading.Semaphore(0)

    def submit(self, run: Callable[[], None]) -> None:
        """Run a function soon."""
        self._tasks.put(run)
        if not self._idle.acquire(blocking=False) and self._started < self._most:
            self._started += 1
            name = f"dormouse-worker-{self._started}"
            threading.Thread(target=self._work, name=name, daemon=True).start()

    def _work(self) -> None:
        while True:
            run = self._tasks.get()
            if run is None:
                return
            run()
            self._idle.release()

    def close(self) -> None:
        """End the threads that are idle, and the others when they are."""
        for _ in range(self._started):
            self._tasks.put(None)
