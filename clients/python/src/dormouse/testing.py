"""A server for tests, whose clock you move.

```python
with TestServer() as server:
    client = server.client()
    client.put("orders", "cancel 42", delay="30m")
    server.advance("30m")
    assert client.reserve("orders")
```
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from typing import Any

from ._async.client import AsyncClient
from ._sync.client import Client
from .errors import Unreachable
from .times import Span

START_SECONDS_MAX = 30.0


class TestServer:
    """Runs `dormouse serve` on a free port until it is closed.

    In memory and with a clock that stands still, unless other `options` are given. The program is
    `binary`, else the environment's `DORMOUSE_BIN`, else `dormouse` on the `PATH`.
    """

    __test__ = False  # pytest: this is no class of tests

    def __init__(
        self,
        *,
        binary: str | None = None,
        options: Sequence[str] = ("--backend", "memory", "--test-clock"),
        environment: dict[str, str] | None = None,
    ) -> None:
        self._binary = binary or find_binary()
        self._options = list(options)
        self._environment = environment or {}
        self._http = "127.0.0.1:0"
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - closed in close()
        self._process: subprocess.Popen[bytes] | None = None
        #: Where it listens.
        self.url = ""
        self.start()

    def start(self) -> None:
        """Start it, at the address it had before if there was one."""
        environment = {k: v for k, v in os.environ.items() if not k.startswith("DORMOUSE_")}
        process = subprocess.Popen(
            [self._binary, "serve", "--resp", "off", "--http", self._http, *self._options],
            stdout=subprocess.PIPE,
            stderr=self._log,
            env={**environment, **self._environment},
        )
        self._process = process
        until = time.monotonic() + START_SECONDS_MAX
        assert process.stdout is not None
        line = process.stdout.readline().decode()
        if "listening on" not in line or time.monotonic() > until:
            process.kill()
            process.wait()
            raise Unreachable(f"{self._binary} serve did not start: {self.log() or line}")
        self.url = line.split()[-1]
        self._http = self.url.split("://")[1]

    @property
    def pid(self) -> int:
        """The process."""
        assert self._process is not None
        return self._process.pid

    def log(self) -> str:
        """What it has logged so far."""
        self._log.seek(0)
        return self._log.read().decode("utf-8", "replace")

    def client(self, **options: Any) -> Client:
        """Make a client of this server."""
        return Client(self.url, **options)

    def async_client(self, **options: Any) -> AsyncClient:
        """Make a client of this server for asyncio."""
        return AsyncClient(self.url, **options)

    def advance(self, by: Span) -> str:
        """Move the clock; everything that comes due in between has happened afterwards."""
        with self.client() as client:
            return client.advance(by)

    def send_signal(self, number: int) -> None:
        """Send a signal to the process."""
        assert self._process is not None
        self._process.send_signal(number)

    def stop(self, number: int = signal.SIGTERM) -> None:
        """Stop the process with a signal; `start` starts it again."""
        process, self._process = self._process, None
        if process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(number)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()

    def close(self) -> None:
        """Stop it for good."""
        self.stop(signal.SIGKILL)
        self._log.close()

    def __enter__(self) -> TestServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def find_binary() -> str:
    """Find the program of the server."""
    named = os.environ.get("DORMOUSE_BIN")
    if named:
        return named
    found = shutil.which("dormouse")
    if found:
        return found
    raise Unreachable(
        "the program `dormouse` is not on the PATH; "
        "install it, or name it in the environment variable DORMOUSE_BIN"
    )
