"""Connections of asyncio."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import AsyncIterator
from typing import cast

from .._address import Address
from .._call import AnswerLost, Call
from .._http import ChunkReader, Response, ResponseReader, not_http, read_status
from .._settings import Settings
from ..errors import Closed, DormouseError, Unreachable

#: Connections that were idle longer are not used again: the server closes them after 75 s.
IDLE_SECONDS_MAX = 60.0

sleep = asyncio.sleep


class Connection(asyncio.Protocol):
    """One connection, with one request at a time."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self.idle_since = 0.0
        self.is_open = False
        self._reader = ResponseReader()
        self._answer: asyncio.Future[Response] | None = None
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self._transport = cast(asyncio.Transport, transport)
        self.is_open = True

    def data_received(self, data: bytes) -> None:
        """Collect the response."""
        try:
            response = self._reader.feed(data)
        except (DormouseError, ValueError) as error:
            self._fail(error if isinstance(error, DormouseError) else not_http(data))
            return
        if response is None:
            return
        if not response.keeps:
            self.close()
        answer, self._answer = self._answer, None
        if answer is not None and not answer.done():
            answer.set_result(response)

    def eof_received(self) -> None:
        """Do not use it again: the server closes it."""
        self.is_open = False

    def connection_lost(self, exc: Exception | None) -> None:
        """Fail the request that waits."""
        self._fail(AnswerLost(f"{self.address.url} closed the connection ({exc or 'no reason'})"))

    def _fail(self, error: Exception) -> None:
        self.close()
        answer, self._answer = self._answer, None
        if answer is not None and not answer.done():
            answer.set_exception(error)

    async def exchange(self, call: Call, timeout: float) -> Response:
        """Send a request and wait for its response; the time-out does not count its `wait`."""
        if not self.is_open or self._transport is None:
            raise Unreachable(f"the connection to {self.address.url} is closed", retryable=True)
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Response] = loop.create_future()
        self._answer = answer
        self._transport.write(call.write(self.address))
        limit = timeout + call.wait
        timer = loop.call_later(
            limit, self._fail, AnswerLost(f"{self.address.url} did not answer in {limit:g} s")
        )
        try:
            return await answer
        except asyncio.CancelledError:
            self.close()
            raise
        finally:
            timer.cancel()

    def hang_up(self) -> None:
        """Say that nothing more will be asked, so that the server ends a wait at once.

        A response that is already on its way still arrives.
        """
        transport = self._transport
        if transport is None or not self.is_open:
            return
        if transport.can_write_eof():
            transport.write_eof()
        else:
            self._fail(AnswerLost("the wait was ended from this side"))

    def close(self) -> None:
        """Close it at once."""
        self.is_open = False
        if self._transport is not None:
            self._transport.abort()


async def connect(address: Address, timeout: float) -> Connection:
    """Open a connection."""
    loop = asyncio.get_running_loop()
    opening = loop.create_connection(
        lambda: Connection(address), address.host, address.port, ssl=address.tls
    )
    try:
        transport, connection = await asyncio.wait_for(opening, timeout)
    except asyncio.TimeoutError:
        raise unreachable(address, f"no connection in {timeout:g} s") from None
    except OSError as error:
        raise unreachable(address, error) from None
    raw = transport.get_extra_info("socket")
    if raw is not None:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    return connection


def unreachable(address: Address, why: object) -> Unreachable:
    """Make the error for a server that cannot be reached."""
    return Unreachable(
        f"cannot connect to {address.url}: {why}; "
        "is the URL right, and does `dormouse serve` run there?",
        retryable=True,
    )


class Pool:
    """Connections that are used again."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._idle: dict[str, list[Connection]] = {}
        self._permits: asyncio.Semaphore | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closed = False

    async def exchange(self, address: Address, call: Call) -> Response:
        """Send a call over a connection of its own."""
        loop = asyncio.get_running_loop()
        if loop is not self._loop or self._permits is None:
            # A client may outlive an event loop; connections do not.
            self._loop = loop
            self._permits = asyncio.Semaphore(self._settings.connections)
            self._idle = {}
        async with self._permits:
            connection = self._take(address)
            if connection is None:
                connection = await connect(address, self._settings.timeout)
            response = await connection.exchange(call, self._settings.timeout)
            self._give_back(connection)
            return response

    def _take(self, address: Address) -> Connection | None:
        if self._closed:
            raise Closed("the client is closed; make a new one")
        idle = self._idle.get(address.url)
        while idle:
            connection = idle.pop()
            fresh = time.monotonic() - connection.idle_since < IDLE_SECONDS_MAX
            if connection.is_open and fresh:
                return connection
            connection.close()
        return None

    def _give_back(self, connection: Connection) -> None:
        if connection.is_open and not self._closed:
            connection.idle_since = time.monotonic()
            self._idle.setdefault(connection.address.url, []).append(connection)
        else:
            connection.close()

    async def close(self) -> None:
        """Close all connections."""
        self._closed = True
        for idle in self._idle.values():
            for connection in idle:
                connection.close()
        self._idle.clear()


class Stream:
    """A response that does not end, on a connection of its own."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self.status = 0
        self.head = b""

    async def pieces(self, silence: float) -> AsyncIterator[bytes]:
        """Give the content piece by piece; a silence of so many seconds ends it."""
        chunks = ChunkReader()
        while not chunks.ended:
            try:
                data = await asyncio.wait_for(self._reader.read(65536), silence)
            except (asyncio.TimeoutError, OSError) as error:
                raise AnswerLost(f"the stream broke: {error or 'silence'}") from None
            if not data:
                raise AnswerLost("the server closed the stream")
            yield chunks.feed(data)

    async def rest(self) -> Response:
        """Read a response that is no stream, such as a problem."""
        parser = ResponseReader()
        response = parser.feed(self.head + b"\r\n\r\n")
        while response is None:
            data = await asyncio.wait_for(self._reader.read(65536), 10)
            if not data:
                raise AnswerLost("the server closed the connection")
            response = parser.feed(data)
        return response

    async def close(self) -> None:
        """Close it at once."""
        self._writer.close()


async def open_stream(address: Address, call: Call, timeout: float) -> Stream:
    """Send a call and read the head of its response."""
    opening = asyncio.open_connection(address.host, address.port, ssl=address.tls)
    try:
        reader, writer = await asyncio.wait_for(opening, timeout)
    except (asyncio.TimeoutError, OSError) as error:
        raise unreachable(address, error or f"no connection in {timeout:g} s") from None
    stream = Stream(reader, writer)
    try:
        writer.write(call.write(address))
        head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), timeout)
    except (asyncio.TimeoutError, asyncio.IncompleteReadError, OSError) as error:
        await stream.close()
        raise AnswerLost(f"{address.url} did not answer: {error!r}") from None
    stream.head, stream.status = head[:-4], read_status(head)
    return stream
