"""Runs handlers for jobs: one run of a worker, from its start to its drained end."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import Any, Callable

from .._settings import Settings
from ..hooks import Hooks, enter_job, log
from ..jobs import LeasedJob
from ..outcome import Outcome, Release, Retry
from .fetcher import Fetcher
from .leases import Leases
from .line import Line
from .outbox import Outbox
from .running import Running, Verdict, chain_of, verdict_of
from .threads import Threads

#: A function of a job, plain or async.
Handler = Callable[[LeasedJob], Any]

#: The codes of a lease that has ended as told.
HEARD = ("done", "retry", "dead", "gone")
#: How long a poll may take to end after it was hung up.
HANG_UP_SECONDS = 1.0
#: How long a stop tells verdicts, after its grace.
LAST_WORDS_SECONDS = 10.0
#: The same if it was cancelled: whoever does that does not want to wait.
CANCELLED_SECONDS = 2.0


@dataclass
class Tally:
    """The totals of a worker's jobs by how they ended."""

    #: Acked.
    done: int = 0
    #: Nacked, to be tried again.
    failed: int = 0
    #: Killed, or failed on their last attempt.
    dead: int = 0
    #: Given back unspent.
    released: int = 0
    #: Cancelled, taken by another worker, or the server did not hear of their end.
    lost: int = 0


@dataclass
class Plan:
    """What a worker was told to do."""

    handlers: dict[str, tuple[Handler, bool]]
    concurrency: int
    wait: float
    ttr: int | str | None
    timeout: float | None
    grace: float
    retry_for: float | None
    tell_for: float
    hooks: Hooks


class Engine:
    """One run of a worker."""

    def __init__(self, settings: Settings, plan: Plan) -> None:
        self._plan = plan
        self.tally = Tally()
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        self._stop_now = asyncio.Event()
        self._running: dict[str, Running] = {}
        self._threads = Threads(plan.concurrency)
        self._lines = [Line(settings, plan.retry_for), Line(settings), Line(settings)]
        topics = list(plan.handlers)
        self._fetcher = Fetcher(self._lines[0], topics, plan.concurrency, plan.wait, plan.ttr)
        self._leases = Leases(self._lines[1], self._lose)
        self._outbox = Outbox(self._lines[2], self._told)

    def stop(self) -> None:
        """Take no more jobs and end when the running ones have; a second time, at once."""
        if self._stop.is_set():
            self._stop_now.set()
        self._stop.set()
        self._fetcher.stop()

    async def run(self, *, drain: bool) -> Tally:
        """Work until stopped; raise what cannot be mended, after the running jobs have ended."""
        fetching = self._loop.create_task(
            self._fetcher.run(self._start, untold=lambda: len(self._outbox), drain=drain)
        )
        helpers = [
            self._loop.create_task(self._leases.run()),
            self._loop.create_task(self._outbox.run()),
        ]
        try:
            stop = self._loop.create_task(self._stop.wait())
            await asyncio.wait({stop, fetching, *helpers}, return_when=asyncio.FIRST_COMPLETED)
            stop.cancel()
            await self._wind_down(fetching, is_telling=not helpers[1].done())
        except asyncio.CancelledError:
            fetching.cancel()
            self._give_back_all("the worker was cancelled")
            await self._outbox.until_empty(CANCELLED_SECONDS)
            raise
        finally:
            for task in (fetching, *helpers):
                task.cancel()
            ended = await asyncio.gather(fetching, *helpers, return_exceptions=True)
            for line in self._lines:
                line.close()
            self._threads.close()
        for error in ended:
            if isinstance(error, Exception):
                raise error
        return self.tally

    async def _wind_down(self, fetching: asyncio.Task[None], *, is_telling: bool) -> None:
        self._stop.set()
        self._fetcher.stop()
        await asyncio.wait({fetching}, timeout=HANG_UP_SECONDS)
        fetching.cancel()
        if not await self._fetcher.until_idle(self._plan.grace, self._stop_now):
            self._give_back_all("the worker stops")
        unheard = await self._outbox.until_empty(LAST_WORDS_SECONDS if is_telling else 0.0)
        if unheard:
            log.error("stopped, and the server has not heard of the end of %d jobs", unheard)

    def _give_back_all(self, reason: str) -> None:
        for running in list(self._running.values()):
            self._end(running, verdict_of(running.job, Release()))
            running.lose(reason)

    def _start(self, job: LeasedJob, reserved_at: float) -> None:
        running = Running(job, reserved_at)
        handler, is_async = self._plan.handlers[job.topic]
        self._running[running.token] = running
        if self._stop.is_set():
            self._end(running, verdict_of(job, Release()))
            self._fetcher.free()
            return
        self._leases.add(running)
        if is_async:
            running.task = self._loop.create_task(self._run_async(running, handler))
        else:
            self._threads.submit(lambda: self._run_in_thread(running, handler))
        if self._plan.timeout is not None:
            running.timer = self._loop.call_later(self._plan.timeout, self._time_out, running)

    async def _run_async(self, running: Running, handler: Handler) -> None:
        failure: BaseException | None = None
        chain: bytes | None = None
        try:
            enter_job(running.job)
            with self._plan.hooks.around(running.job):
                result = handler(running.job)
                if result is not None:
                    result = await result
                chain = chain_of(running.job, result, self._plan.hooks)
        except (Exception, asyncio.CancelledError) as error:
            failure = error
        self._finish(running, failure, chain)

    def _run_in_thread(self, running: Running, handler: Handler) -> None:
        failure: BaseException | None = None
        chain: bytes | None = None
        try:
            enter_job(running.job)
            with self._plan.hooks.around(running.job):
                chain = chain_of(running.job, handler(running.job), self._plan.hooks)
        except BaseException as error:  # also SystemExit ends only the job
            failure = error
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._finish, running, failure, chain)

    def _finish(self, running: Running, failure: BaseException | None, chain: bytes | None) -> None:
        """End a job whose handler has ended, and free its slot."""
        if not running.ended:
            if failure is not None and not isinstance(failure, Outcome):
                log.warning("job %s of %s failed", running.job.id, running.job.topic,
                            exc_info=failure)  # fmt: skip
            self._end(running, verdict_of(running.job, failure, chain))
        self._fetcher.free()

    def _time_out(self, running: Running) -> None:
        """End a job whose handler takes too long; its slot is free when the handler returns."""
        if running.ended:
            return
        seconds = self._plan.timeout
        log.warning("job %s of %s timed out after %s s", running.job.id, running.job.topic, seconds)
        self._end(running, verdict_of(running.job, Retry(None, f"timed out after {seconds:g} s")))
        running.lose("it took too long")

    def _lose(self, running: Running, reason: str) -> None:
        log.warning("job %s of %s is lost: %s", running.job.id, running.job.topic, reason)
        self._end(running, None)
        self.tally.lost += 1
        running.lose(reason)

    def _end(self, running: Running, verdict: Verdict | None) -> None:
        """End a job once; without a verdict there is nobody to tell."""
        running.ended = True
        self._running.pop(running.token, None)
        self._leases.remove(running)
        if running.timer is not None:
            running.timer.cancel()
        how = {"ack": "done", "nack": "failed", "kill": "dead", "release": "released"}
        self._hook(
            self._plan.hooks.on_end,
            running.job,
            how[verdict.verb] if verdict else "lost",
            time.monotonic() - running.started,
        )
        if verdict is not None:
            verdict.give_up_at = running.lease_end + self._plan.tell_for
            self._outbox.add(verdict)

    def _told(self, verdict: Verdict, code: str) -> None:
        tally = self.tally
        # A verdict that was told twice may have ended the lease the first time.
        is_heard = code in HEARD or (code == "lease_lost" and verdict.is_repeat)
        if not is_heard:
            tally.lost += 1
            log.warning("job %s of %s: its %s changed nothing: %s", verdict.job.id,
                        verdict.job.topic, verdict.verb, code)  # fmt: skip
        elif verdict.verb == "ack":
            tally.done += 1
        elif verdict.verb == "release":
            tally.released += 1
        elif verdict.verb == "kill" or code == "dead":
            tally.dead += 1
        else:
            tally.failed += 1
        self._hook(self._plan.hooks.on_told, verdict.job, verdict.verb, code)

    @staticmethod
    def _hook(hook: Callable[..., None], *arguments: object) -> None:
        try:
            hook(*arguments)
        except Exception:
            log.exception("a hook raised")
