"""Spans and instants, as Python writes them and as the server reads them.

A bare number is refused: the server would take 30 as milliseconds, most people mean seconds.
"""

from __future__ import annotations

import math
import re
from datetime import datetime, timedelta, timezone
from typing import Union

from .errors import Invalid

#: A length of time: `timedelta(minutes=30)`, `"30m"`, `"1h 30m"` or `"PT30M"`.
Span = Union[timedelta, str]

#: A point in time: an aware `datetime`, or RFC 3339 text.
Instant = Union[datetime, str]

_UNIT_SECONDS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_PARTS = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(ms|s|m|h|d|w)")


def span(value: Span, field: str) -> int | str:
    """Write a span for the server: text as it is, a timedelta in whole ms, rounded up."""
    if isinstance(value, timedelta):
        return math.ceil(value / timedelta(milliseconds=1))
    if isinstance(value, str):
        return value
    raise Invalid(
        f"{field} is {value!r}, which has no unit; "
        f'write timedelta(seconds={value}) or "{value}s", or "{value}ms"'
    )


def seconds(value: Span, field: str) -> float:
    """Give the length of a span in seconds, for a timer of this process."""
    if isinstance(value, timedelta):
        return value.total_seconds()
    span(value, field)
    total, at = 0.0, 0
    while at < len(value):
        part = _PARTS.match(value, at)
        if part is None:
            raise Invalid(f'{field} is "{value}"; write it as "500ms", "30s", "1h 30m", "2d"')
        total += float(part.group(1)) * _UNIT_SECONDS[part.group(2)]
        at = part.end()
    return total


def instant(value: Instant, field: str) -> str:
    """Write an instant for the server."""
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise Invalid(
                f"{field} is {value.isoformat()} without a zone, so nobody knows when that is; "
                "write datetime(..., tzinfo=timezone.utc) or zoneinfo.ZoneInfo(...)"
            )
        return value.isoformat()
    if isinstance(value, str):
        return value
    raise Invalid(f'{field} is {value!r}; give an aware datetime or "2027-01-01T09:00:00+01:00"')


def read_instant(text: str) -> datetime:
    """Read an instant of the server."""
    return datetime.fromisoformat(text.replace("Z", "+00:00")).astimezone(timezone.utc)
