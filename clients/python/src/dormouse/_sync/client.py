"""The client for threads."""
# Made by tools/make_sync.py from _async/client.py: change that, not this.

from __future__ import annotations

import ssl
from collections.abc import Sequence
from typing import Any

from .._call import Call, Repeat
from .._settings import Settings, read_settings
from ..hooks import Hooks
from ..times import Span, span
from ._events import EventVerbs
from ._jobs import JobVerbs
from ._leases import LeaseVerbs
from ._locks import LockVerbs
from ._schedules import ScheduleVerbs
from ._topics import TopicVerbs


class Client(JobVerbs, LeaseVerbs, TopicVerbs, ScheduleVerbs, LockVerbs, EventVerbs):
    """Talks to a Dormouse server over HTTP; threads may share one, it keeps its connections open.

    Args:
        url: the server, or several: the next one is asked when one fails. Without it the
            environment's `DORMOUSE_URL`, else `http://127.0.0.1:7788`.
        token: the access token; without it `DORMOUSE_TOKEN_FILE` or `DORMOUSE_TOKEN`.
        tls: a context of your own for `https`; else the system's certificates, or those of
            `ca_file`.
        timeout: how long one try of a request may take.
        retry_for: how long a failed request is sent again, where that is harmless. Each repeat is
            logged, and `hooks.on_retry` hears of it. `"0s"` never sends again.
        make_keys: whether a put without a key gets one, so that it can be sent again.
        connections: the most connections at the same time.
        hooks: what your program wants to hear of.
    """

    def __init__(
        self,
        url: str | Sequence[str] | None = None,
        *,
        token: str | None = None,
        tls: ssl.SSLContext | None = None,
        ca_file: str | None = None,
        timeout: Span = "10s",
        retry_for: Span = "10s",
        make_keys: bool = True,
        connections: int = 100,
        hooks: Hooks | None = None,
    ) -> None:
        super().__init__(
            read_settings(
                url,
                token=token,
                tls=tls,
                ca_file=ca_file,
                timeout=timeout,
                retry_for=retry_for,
                make_keys=make_keys,
                connections=connections,
                hooks=hooks,
            )
        )

    @property
    def settings(self) -> Settings:
        """What it was made with."""
        return self._settings

    def ready(self) -> Any:
        """Ask whether the server accepts requests; a `detail` says what an operator should see."""
        return self._call(Call("GET", "/readyz"))

    def advance(self, by: Span) -> str:
        """Move the clock of a server that runs with `--test-clock`; give its time."""
        call = Call("POST", "/v1/test/advance", {"by": span(by, "by")}, Repeat.NEVER)
        return str((self._call(call))["now"])

    def close(self) -> None:
        """Close all connections."""
        self._pool.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
