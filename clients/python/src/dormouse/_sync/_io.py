"""Connections of threads."""

from __future__ import annotations

import contextlib
import select
import socket
import threading
import time
from collections.abc import Iterator

from .._address import Address
from .._call import AnswerLost, Call
from .._http import ChunkReader, Response, ResponseReader, not_http, read_status
from .._settings import Settings
from ..errors import Closed, DormouseError, Unreachable

#: Connections that were idle longer are not used again: the server closes them after 75 s.
IDLE_SECONDS_MAX = 60.0

sleep = time.sleep


class Connection:
    """One connection, with one request at a time."""

    def __init__(self, address: Address, raw: socket.socket) -> None:
        self.address = address
        self.idle_since = 0.0
        self.is_open = True
        self._socket = raw
        self._reader = ResponseReader()

    def exchange(self, call: Call, timeout: float) -> Response:
        """Send a request and wait for its response; the time-out does not count its `wait`."""
        limit = timeout + call.wait
        until = time.monotonic() + limit
        try:
            self._socket.settimeout(limit)
            self._socket.sendall(call.write(self.address))
            while True:
                response = self._reader.feed(self._receive(until))
                if response is not None:
                    break
        except socket.timeout:
            self.close()
            raise AnswerLost(f"{self.address.url} did not answer in {limit:g} s") from None
        except OSError as error:
            self.close()
            raise AnswerLost(f"{self.address.url} closed the connection ({error})") from None
        except ValueError:
            self.close()
            raise not_http(b"") from None
        except BaseException:
            # A signal's error leaves a response behind that is not the next request's.
            self.close()
            raise
        if not response.keeps:
            self.close()
        return response

    def _receive(self, until: float) -> bytes:
        left = until - time.monotonic()
        if left <= 0:
            raise socket.timeout
        self._socket.settimeout(left)
        data = self._socket.recv(65536)
        if not data:
            raise ConnectionError("no reason")
        return data

    def is_stale(self) -> bool:
        """Whether the server has closed it meanwhile: nothing else can have come."""
        if not hasattr(select, "poll"):
            return bool(select.select([self._socket], [], [], 0)[0])
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        return bool(poll.poll(0))

    def close(self) -> None:
        """Close it at once."""
        self.is_open = False
        with contextlib.suppress(OSError):
            self._socket.close()


def connect_socket(address: Address, timeout: float) -> socket.socket:
    """Open a socket, with TLS if the URL says so."""
    try:
        raw = socket.create_connection((address.host, address.port), timeout)
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if address.tls is not None:
            return address.tls.wrap_socket(raw, server_hostname=address.host)
    except socket.timeout:
        raise unreachable(address, f"no connection in {timeout:g} s") from None
    except OSError as error:
        raise unreachable(address, error) from None
    return raw


def connect(address: Address, timeout: float) -> Connection:
    """Open a connection."""
    return Connection(address, connect_socket(address, timeout))


def unreachable(address: Address, why: object) -> Unreachable:
    """Make the error for a server that cannot be reached."""
    return Unreachable(
        f"cannot connect to {address.url}: {why}; "
        "is the URL right, and does `dormouse serve` run there?",
        retryable=True,
    )


class Pool:
    """Connections that are used again, by any thread."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._idle: dict[str, list[Connection]] = {}
        self._permits = threading.BoundedSemaphore(settings.connections)
        self._lock = threading.Lock()
        self._closed = False

    def exchange(self, address: Address, call: Call) -> Response:
        """Send a call over a connection of its own."""
        with self._permits:
            connection = self._take(address) or connect(address, self._settings.timeout)
            response = connection.exchange(call, self._settings.timeout)
            self._give_back(connection)
            return response

    def _take(self, address: Address) -> Connection | None:
        if self._closed:
            raise Closed("the client is closed; make a new one")
        with self._lock:
            idle = self._idle.get(address.url)
            while idle:
                connection = idle.pop()
                is_fresh = time.monotonic() - connection.idle_since < IDLE_SECONDS_MAX
                if is_fresh and not connection.is_stale():
                    return connection
                connection.close()
        return None

    def _give_back(self, connection: Connection) -> None:
        if not connection.is_open:
            return
        connection.idle_since = time.monotonic()
        with self._lock:
            if not self._closed:
                self._idle.setdefault(connection.address.url, []).append(connection)
                return
        connection.close()

    def close(self) -> None:
        """Close all connections that are idle; those in use are closed after their answer."""
        with self._lock:
            self._closed = True
            for idle in self._idle.values():
                for connection in idle:
                    connection.close()
            self._idle.clear()


class Stream:
    """A response that does not end, on a connection of its own."""

    def __init__(self, raw: socket.socket) -> None:
        self._socket = raw
        self._early = b""
        self.status = 0
        self.head = b""

    def read_head(self) -> None:
        """Read the head; what comes with it belongs to the body."""
        data = b""
        while b"\r\n\r\n" not in data:
            more = self._socket.recv(65536)
            if not more:
                raise ConnectionError("closed")
            data += more
        self.head, _, self._early = data.partition(b"\r\n\r\n")
        self.status = read_status(self.head)

    def pieces(self, silence: float) -> Iterator[bytes]:
        """Give the content piece by piece; a silence of so many seconds ends it."""
        chunks = ChunkReader()
        self._socket.settimeout(silence)
        if self._early:
            yield chunks.feed(self._early)
        while not chunks.ended:
            try:
                data = self._socket.recv(65536)
            except OSError as error:
                raise AnswerLost(f"the stream broke: {error}") from None
            if not data:
                raise AnswerLost("the server closed the stream")
            yield chunks.feed(data)

    def rest(self) -> Response:
        """Read a response that is no stream, such as a problem."""
        parser = ResponseReader()
        response = parser.feed(self.head + b"\r\n\r\n" + self._early)
        while response is None:
            data = self._socket.recv(65536)
            if not data:
                raise AnswerLost("the server closed the connection")
            response = parser.feed(data)
        return response

    def close(self) -> None:
        """Close it at once."""
        with contextlib.suppress(OSError):
            self._socket.close()


def open_stream(address: Address, call: Call, timeout: float) -> Stream:
    """Send a call and read the head of its response."""
    stream = Stream(connect_socket(address, timeout))
    try:
        stream._socket.sendall(call.write(address))
        stream.read_head()
    except (OSError, DormouseError) as error:
        stream.close()
        if isinstance(error, DormouseError):
            raise
        raise AnswerLost(f"{address.url} did not answer: {error!r}") from None
    return stream
