"""A worker that writes down what it does: `python -m tests.chaos_worker URL TOPIC FILE`."""

from __future__ import annotations

import asyncio
import json
import random
import sys
import time
from typing import Any

from dormouse import Hooks, LeasedJob, Worker


class History(Hooks):
    """Writes a line for each thing that happens, at once."""

    def __init__(self, path: str) -> None:
        self._file = open(path, "w", buffering=1, encoding="utf-8")  # noqa: SIM115

    def write(self, what: str, job: LeasedJob, **more: Any) -> None:
        line = {"what": what, "at": time.time(), "id": job.id, "token": job.token, **more}
        self._file.write(json.dumps(line) + "\n")

    def on_end(self, job: LeasedJob, how: str, seconds: float) -> None:
        self.write("end", job, how=how)

    def on_told(self, job: LeasedJob, how: str, code: str) -> None:
        self.write("told", job, verb=how, code=code)


def main() -> None:
    """Work until SIGTERM."""
    url, topic, path = sys.argv[1:]
    history = History(path)
    worker = Worker(url, concurrency=8, wait="5s", hooks=history)

    @worker.handle(topic)
    async def handler(job: LeasedJob) -> None:
        ends = job.expires_at.timestamp()
        history.write("start", job, number=job.json(), attempt=job.attempt, ends=ends)
        await asyncio.sleep(random.uniform(0, 0.05))

    print(worker.run(), flush=True)


if __name__ == "__main__":
    main()
