"""The stream of events."""

from __future__ import annotations

from collections.abc import AsyncIterator

from .._call import AnswerLost, Call, Trial, read_answer, with_query
from ..errors import DormouseError
from ..events import Event, EventReader
from ._core import Core
from ._io import open_stream, sleep

#: The server sends a comment each 15 s; after this many seconds of silence it is gone.
SILENCE_SECONDS_MAX = 45.0


class EventVerbs(Core):
    """Watches changes."""

    async def events(
        self,
        topic: str | None = None,
        *,
        prefix: str | None = None,
        after: str | None = None,
    ) -> AsyncIterator[Event]:
        """Give the changes of a topic, of topics with a prefix, or of all, as they happen.

        A stream that breaks is taken up where it broke; an event `lost` tells of a gap. It gives
        up when no server could be reached for the client's `retry_for`.
        """
        reader = EventReader(after)
        trial: Trial | None = None
        while True:
            target = with_query("/v1/events", topic=topic, prefix=prefix, after=reader.last_id)
            call = Call("GET", target)
            if trial is None:
                trial = Trial(self._settings, call, self._favourite)
            try:
                stream = await open_stream(trial.address, call, self._settings.timeout)
                try:
                    if stream.status != 200:
                        read_answer(await stream.rest())
                    self._favourite = trial.index
                    trial = None
                    async for piece in stream.pieces(SILENCE_SECONDS_MAX):
                        for event in reader.feed(piece):
                            yield event
                finally:
                    await stream.close()
                raise AnswerLost("the server ended the stream")
            except (AnswerLost, DormouseError) as error:
                reader.broken()
                if trial is None:
                    trial = Trial(self._settings, call, self._favourite)
                await sleep(trial.failed(error))
