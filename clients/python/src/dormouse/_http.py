"""HTTP/1.1 as bytes: writes requests and reads responses, without any input or output.

The threads' and asyncio's connections share it. It knows what a Dormouse server sends: responses
with a `content-length`, and streams of events in chunks.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from .errors import BadAnswer, Invalid

#: The longest head of a response. A server's is some hundred bytes.
HEAD_BYTES_MAX = 64 * 1024


@dataclass
class Response:
    """A whole response."""

    status: int
    head: bytes
    body: bytes
    #: Whether the connection can be used again.
    keeps: bool

    def header(self, name: str) -> str | None:
        """Give the value of a header."""
        return find_header(self.head, name.encode("ascii"))


def find_header(head: bytes, name: bytes) -> str | None:
    """Find a header in a head; names are in lower case here."""
    at = head.lower().find(b"\r\n" + name + b":")
    if at < 0:
        return None
    start = at + len(name) + 3
    end = head.find(b"\r\n", start)
    return head[start : end if end >= 0 else len(head)].strip().decode("latin-1")


def write_body(value: Any) -> bytes:
    """Write a value as the JSON of a request."""
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode(
            "utf-8"
        )
    except (TypeError, ValueError) as error:
        raise Invalid(
            f"the request cannot be written as JSON: {error}; put bytes or str for such data"
        ) from None


def write_request(method: str, target: str, fixed: bytes, body: bytes | None) -> bytes:
    """Write a request; `fixed` are the headers that each request to this server has."""
    start = f"{method} {target} HTTP/1.1\r\n".encode("ascii")
    if body is None:
        return b"%b%b\r\n" % (start, fixed)
    return b"%b%bcontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b" % (
        start,
        fixed,
        len(body),
        body,
    )


class ResponseReader:
    """Collects the bytes of one response after another."""

    __slots__ = ("_buffer", "_end", "_head", "_keeps", "_length", "_status")

    def __init__(self) -> None:
        self._buffer = b""
        self._reset()

    def _reset(self) -> None:
        self._head = b""
        self._status = 0
        self._length = -1
        self._end = 0
        self._keeps = True

    @property
    def is_idle(self) -> bool:
        """Whether no byte of a next response has come."""
        return not self._buffer and not self._head

    def feed(self, data: bytes) -> Response | None:
        """Take bytes; give the response once it is whole."""
        self._buffer = self._buffer + data if self._buffer else data
        if not self._head and not self._read_head():
            return None
        if self._length < 0:
            return self._read_chunks()
        if len(self._buffer) < self._end:
            return None
        return self._finish(self._buffer[: self._length], self._end)

    def _read_head(self) -> bool:
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            if len(self._buffer) > HEAD_BYTES_MAX or not b"HTTP/1.".startswith(self._buffer[:7]):
                raise not_http(self._buffer)
            return False
        head = self._buffer[:end]
        self._head, self._status = head, read_status(head)
        self._buffer = self._buffer[end + 4 :]
        length = find_header(head, b"content-length")
        if length is not None:
            self._length = int(length)
        elif self._status in (204, 304):
            self._length = 0
        elif find_header(head, b"transfer-encoding") is None:
            raise not_http(head)
        self._end = max(self._length, 0)
        self._keeps = (find_header(head, b"connection") or "").lower() != "close"
        return True

    def _read_chunks(self) -> Response | None:
        body: list[bytes] = []
        at = 0
        while True:
            line = self._buffer.find(b"\r\n", at)
            if line < 0:
                return None
            size = int(self._buffer[at:line].split(b";")[0], 16)
            start, at = line + 2, line + 2 + size + 2
            if len(self._buffer) < at:
                return None
            if size == 0:
                return self._finish(b"".join(body), at)
            body.append(self._buffer[start : start + size])

    def _finish(self, body: bytes, end: int) -> Response:
        response = Response(self._status, self._head, body, self._keeps)
        self._buffer = self._buffer[end:]
        self._reset()
        return response


class ChunkReader:
    """Takes the chunks out of a stream that does not end."""

    def __init__(self) -> None:
        self._buffer = b""
        self.ended = False

    def feed(self, data: bytes) -> bytes:
        """Take bytes; give the content of the chunks that are whole."""
        self._buffer += data
        content, at = [], 0
        while not self.ended:
            line = self._buffer.find(b"\r\n", at)
            if line < 0:
                break
            size = int(self._buffer[at:line].split(b";")[0], 16)
            end = line + 2 + size + 2
            if len(self._buffer) < end:
                break
            content.append(self._buffer[line + 2 : end - 2])
            self.ended = size == 0
            at = end
        self._buffer = self._buffer[at:]
        return b"".join(content)


def read_status(head: bytes) -> int:
    """Read the status from the first line of a head."""
    if not head.startswith(b"HTTP/1.") or not head[9:12].isdigit():
        raise not_http(head)
    return int(head[9:12])


def not_http(data: bytes) -> BadAnswer:
    """Make the error for bytes that are no HTTP."""
    hint = "is the URL that of a Dormouse server's HTTP address?"
    if data[:1] in b"-+:*$" and data:
        hint = "this looks like the RESP address; the HTTP address is 7788 unless it was set"
    elif data[:1] == b"\x15":
        hint = "this address speaks TLS: write https:// in the URL"
    return BadAnswer(f"the server answered {data[:40]!r}, which is no HTTP; {hint}")
