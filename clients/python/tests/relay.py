"""A relay between client and server that loses answers on request."""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import Callable, Union

from dormouse._http import ResponseReader, find_header

#: What becomes of a request, by its first line: `pass`, `lose` its answer, `break` it off, or bytes
#: as the answer of a server that did nothing.
Fault = Callable[[str], Union[str, bytes]]


class Relay:
    """Listens on a port of its own and passes requests on, one connection per thread."""

    def __init__(self, url: str) -> None:
        host, _, port = url.partition("://")[2].partition(":")
        self._server = (host, int(port))
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.fault: Fault = lambda _: "pass"
        #: The first lines of all requests.
        self.seen: list[str] = []
        self._open: set[socket.socket] = set()
        threading.Thread(target=self._accept, daemon=True).start()

    def lose_once(self, what: str) -> None:
        """Lose the answer to the next request whose first line has this."""
        left = [1]

        def fault(line: str) -> str:
            if what in line and left:
                left.pop()
                return "lose"
            return "pass"

        self.fault = fault

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                inner, _ = self._listener.accept()
                self._open.add(inner)
                threading.Thread(target=self._serve, args=(inner,), daemon=True).start()

    def _serve(self, inner: socket.socket) -> None:
        with contextlib.suppress(OSError), inner, socket.create_connection(self._server) as outer:
            while True:
                request = self._read_request(inner)
                line = request.split(b"\r\n", 1)[0].decode()
                self.seen.append(line)
                fate = self.fault(line)
                if fate == "break":
                    return
                if isinstance(fate, bytes):
                    inner.sendall(fate)
                    continue
                outer.sendall(request)
                answer = self._read_answer(outer)
                if fate == "lose":
                    return
                inner.sendall(answer)

    @staticmethod
    def _read_request(inner: socket.socket) -> bytes:
        data = b""
        while True:
            head, end, body = data.partition(b"\r\n\r\n")
            if end and len(body) >= int(find_header(head, b"content-length") or 0):
                return data
            more = inner.recv(65536)
            if not more:
                raise ConnectionError
            data += more

    @staticmethod
    def _read_answer(outer: socket.socket) -> bytes:
        data, reader = b"", ResponseReader()
        while True:
            more = outer.recv(65536)
            if not more:
                raise ConnectionError
            data += more
            if reader.feed(more) is not None:
                return data

    def close(self) -> None:
        """Take no more connections, and break those there are."""
        # A thread that accepts keeps a socket alive that is only closed.
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for inner in self._open:
            with contextlib.suppress(OSError):
                inner.shutdown(socket.SHUT_RDWR)
