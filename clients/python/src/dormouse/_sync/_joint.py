"""Puts of threads go one by one; those of asyncio go together."""

from __future__ import annotations

from typing import Any, Callable

from .._address import path
from .._call import Call

Send = Callable[[Call], tuple[Any, bool]]


class JointPuts:
    """Sends a put."""

    def put(self, send: Send, topic: str, fields: dict[str, Any]) -> tuple[Any, bool]:
        """Put a job that may be sent twice."""
        return send(Call("POST", path("topics", topic, "jobs"), fields))
