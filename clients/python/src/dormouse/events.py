"""Events: one for each change of a job, after the change is durable."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from ._answer import Answer, maybe_text, maybe_when, number


class Event(Answer):
    """A change of a job or of a topic."""

    __slots__ = ("event_id", "kind")

    topic = maybe_text("topic")
    #: The job's id; none if the event is about a topic.
    id = maybe_text("id")
    at = maybe_when("at")
    due_at = maybe_when("due_at")
    attempt = number("attempt", 0)
    #: Of `lost`: how many events were missed; 0 if that is not known.
    count = number("count", 0)

    def __init__(self, kind: str, event_id: str, raw: Mapping[str, Any]) -> None:
        super().__init__(raw)
        #: `put`, `reserved`, `acked`, `died`, ... or `lost` if events were missed.
        self.kind = kind
        #: Where a later stream can go on: `events(after=event_id)`.
        self.event_id = event_id


class EventReader:
    """Reads events out of the text of a stream."""

    def __init__(self, after: str | None) -> None:
        #: The last id that was read.
        self.last_id = after
        self._rest = b""

    def feed(self, data: bytes) -> Iterator[Event]:
        """Take bytes; give the events that are whole."""
        *blocks, self._rest = (self._rest + data).split(b"\n\n")
        for block in blocks:
            event = self._read(block.decode("utf-8"))
            if event is not None:
                yield event

    def broken(self) -> None:
        """Forget half an event: the stream broke."""
        self._rest = b""

    def _read(self, block: str) -> Event | None:
        kind, data = "message", ""
        for line in block.splitlines():
            name, _, value = line.partition(":")
            value = value[1:] if value.startswith(" ") else value
            if name == "id":
                self.last_id = value
            elif name == "event":
                kind = value
            elif name == "data":
                data += value
        return Event(kind, self.last_id or "", json.loads(data)) if data else None
