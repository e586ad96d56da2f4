"""A worker: takes jobs as they become due and runs a function for each."""

from __future__ import annotations

import asyncio
import inspect
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Callable, TypeVar

from ._async.client import AsyncClient
from ._settings import Settings
from ._sync.client import Client
from ._worker.engine import Engine, Handler, Plan, Tally
from .errors import Invalid
from .hooks import Hooks
from .times import Span, seconds, span

H = TypeVar("H", bound=Handler)


class Worker:
    """Takes jobs as they become due and runs a handler for each.

    - A handler that returns acks its job. `Retry`, `Kill` and `Release` say the rest; any other
      error nacks it, with the error's text.
    - The lease is prolonged at a third of its ttr for as long as the handler runs. If it is lost
      all the same (the job was cancelled, or the process stood still for too long) `job.lost` is
      set; an `async` handler is cancelled.
    - Acks and nacks are told until the server has heard them, many in one request.
    - SIGTERM, SIGINT or `stop()` ends the poll at once and waits for the handlers; a second one,
      or the end of the `grace`, gives their jobs back with no attempt spent.

    Args:
        client: a client, or the URL of the server, or several. The worker has its own connections.
        concurrency: how many handlers run at the same time; plain functions on threads.
        timeout: how long a handler may run. Then its job is nacked and `job.lost` is set.
        ttr: the duration of leases, instead of each job's own.
        wait: how long one poll waits for a job.
        grace: how long a stop waits for handlers.
        retry_for: after how long without any answer `run` raises `Unreachable`; without it the
            worker tries for ever, and logs each try.
        tell_for: how long after the end of a lease its ack is still told. The token may be good
            for as long as no other worker has the job.
        hooks: what your program wants to hear of; else those of the client.
    """

    def __init__(
        self,
        client: Client | AsyncClient | str | Sequence[str] | None = None,
        *,
        concurrency: int = 10,
        timeout: Span | None = None,
        ttr: Span | None = None,
        wait: Span = "30s",
        grace: Span = "30s",
        retry_for: Span | None = None,
        tell_for: Span = "10m",
        hooks: Hooks | None = None,
    ) -> None:
        if concurrency < 1:
            raise Invalid(f"concurrency is {concurrency}; it must be at least 1")
        settings = client.settings if isinstance(client, (Client, AsyncClient)) else None
        self._settings: Settings = settings or Client(client).settings  # type: ignore[arg-type]
        self._plan = Plan(
            handlers={},
            concurrency=concurrency,
            wait=seconds(wait, "wait"),
            ttr=None if ttr is None else span(ttr, "ttr"),
            timeout=None if timeout is None else seconds(timeout, "timeout"),
            grace=seconds(grace, "grace"),
            retry_for=None if retry_for is None else seconds(retry_for, "retry_for"),
            tell_for=seconds(tell_for, "tell_for"),
            hooks=hooks or self._settings.hooks,
        )
        self._lock = threading.Lock()
        self._engine: tuple[Engine, asyncio.AbstractEventLoop] | None = None
        self._is_stopped = False

    def handle(self, *topics: str) -> Callable[[H], H]:
        """Run the decorated function, plain or `async`, for each job of these topics."""
        if not topics:
            raise Invalid('name the topics of a handler: @worker.handle("orders")')

        def register(handler: H) -> H:
            for topic in topics:
                if topic in self._plan.handlers:
                    raise Invalid(f"topic {topic} has a handler already; a topic has one")
                self._plan.handlers[topic] = (handler, _is_async(handler))
            return handler

        return register

    def run(self, *, drain: bool = False) -> Tally:
        """Work until SIGTERM, SIGINT or `stop()`; give the totals.

        With `drain` it ends when no job is due and none runs. Signals are taken only in the main
        thread of a program.
        """
        return asyncio.run(self.run_async(drain=drain))

    async def run_async(self, *, drain: bool = False, signals: bool = True) -> Tally:
        """Do the same in an event loop that runs already."""
        if not self._plan.handlers:
            raise Invalid('the worker has no handler; add one with @worker.handle("topic")')
        loop = asyncio.get_running_loop()
        engine = Engine(self._settings, self._plan)
        with self._lock:
            self._engine = (engine, loop)
            if self._is_stopped:
                engine.stop()
        try:
            with _signals(loop, engine, signals):
                return await engine.run(drain=drain)
        finally:
            with self._lock:
                self._engine = None

    def stop(self) -> None:
        """Stop it, from any thread; a second time, at once."""
        with self._lock:
            self._is_stopped = True
            if self._engine is not None:
                engine, loop = self._engine
                loop.call_soon_threadsafe(engine.stop)


def _is_async(handler: Handler) -> bool:
    call = getattr(handler, "__call__", handler)  # noqa: B004 - objects with an async __call__
    return inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(call)


@contextmanager
def _signals(loop: asyncio.AbstractEventLoop, engine: Engine, wanted: bool) -> Iterator[None]:
    """Stop the engine at a signal; only the main thread can."""
    numbers = (signal.SIGTERM, signal.SIGINT)
    if not wanted or threading.current_thread() is not threading.main_thread():
        yield
        return
    before = [signal.getsignal(number) for number in numbers]
    for number in numbers:
        loop.add_signal_handler(number, engine.stop)
    try:
        yield
    finally:
        for number, handler in zip(numbers, before):
            loop.remove_signal_handler(number)
            signal.signal(number, handler)


__all__ = ["Tally", "Worker"]
