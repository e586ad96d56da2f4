"""Puts of many tasks that go together in one request.

A put is sent at once while at most one request of its topic is under way. The others wait for an
answer and then go together, so they cost one request and one sync of the server's disk. Nobody
waits longer than that request takes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any, Callable

from .._address import path
from .._call import Call
from .._http import write_body
from ..errors import DormouseError, Invalid, TooLarge, from_problem

REQUESTS_MAX = 2
ITEMS_MAX = 500
BYTES_MAX = 1024 * 1024

Send = Callable[[Call], Awaitable[tuple[Any, bool]]]
Told = asyncio.Future[tuple[Any, bool]]


class _Topic:
    """The puts of one topic that wait."""

    __slots__ = ("requests", "waiting")

    def __init__(self) -> None:
        self.waiting: list[tuple[bytes, Told]] = []
        self.requests = 0


class JointPuts:
    """Collects puts by topic."""

    def __init__(self) -> None:
        self._topics: dict[str, _Topic] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop: asyncio.AbstractEventLoop | None = None

    async def put(self, send: Send, topic: str, fields: dict[str, Any]) -> tuple[Any, bool]:
        """Put a job that may be sent twice, perhaps together with others."""
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            # What an event loop that has ended left behind is nobody's any more.
            self._loop, self._topics = loop, {}
        told: Told = loop.create_future()
        group = self._topics.get(topic)
        if group is None:
            group = self._topics[topic] = _Topic()
        group.waiting.append((write_body(fields), told))
        # A request that starts now also takes what other tasks put before it runs.
        if group.requests < min(REQUESTS_MAX, len(group.waiting)):
            group.requests += 1
            task = loop.create_task(self._send_all(send, topic, group))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return await told

    async def _send_all(self, send: Send, topic: str, group: _Topic) -> None:
        try:
            while group.waiting:
                puts = _take(group)
                try:
                    await _send(send, path("topics", topic, "jobs"), puts)
                except BaseException as error:
                    # Whatever went wrong, nobody may wait for ever.
                    for _, told in puts:
                        _fail(told, _copy(error))
                    if not isinstance(error, Exception):
                        raise
        finally:
            group.requests -= 1
            if not group.requests and not group.waiting:
                self._topics.pop(topic, None)


def _take(group: _Topic) -> list[tuple[bytes, Told]]:
    """Take what goes into one request; a put whose caller has gone is not sent."""
    taken: list[tuple[bytes, Told]] = []
    size = 0
    for count, (body, told) in enumerate(group.waiting):
        size += len(body)
        if count == ITEMS_MAX or (taken and size > BYTES_MAX):
            group.waiting = group.waiting[count:]
            return taken
        if not told.done():
            taken.append((body, told))
    group.waiting = []
    return taken


async def _send(send: Send, target: str, puts: list[tuple[bytes, Told]]) -> None:
    if len(puts) <= 1:
        return await _send_each(send, target, puts)
    body = b"[" + b",".join([body for body, _ in puts]) + b"]"
    try:
        answer, lost = await send(Call("POST", target, body))
    except (Invalid, TooLarge):
        # One of them cannot be read, and the server refuses all: let each have its own answer.
        return await _send_each(send, target, puts)
    again = []
    for put, result in zip(puts, answer["results"]):
        if result.get("retryable"):
            again.append(put)
        elif "detail" in result:
            _fail(put[1], from_problem(result))
        elif not put[1].done():
            put[1].set_result((result, lost))
    return await _send_each(send, target, again)


async def _send_each(send: Send, target: str, puts: list[tuple[bytes, Told]]) -> None:
    for body, told in puts:
        try:
            result = await send(Call("POST", target, body))
        except Exception as error:
            _fail(told, error)
        else:
            if not told.done():
                told.set_result(result)


def _fail(told: Told, error: BaseException) -> None:
    if not told.done():
        told.set_exception(error)


def _copy(error: BaseException) -> BaseException:
    """Give each caller an error of its own: a traceback belongs to one."""
    if isinstance(error, asyncio.CancelledError):
        return DormouseError("the put was given up because the event loop ends")
    if not isinstance(error, DormouseError):
        return error
    return type(error)(
        error.detail,
        status=error.status,
        retryable=error.retryable,
        id=error.id,
        state=error.state,
        retry_after=error.retry_after,
        raw=error.raw,
    )
