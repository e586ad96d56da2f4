"""Verbs about whole topics, and counts."""
# Made by tools/make_sync.py from _async/_topics.py: change that, not this.

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any

from .._address import path
from .._call import Call, Repeat, with_query
from ..times import Instant, Span, instant, span
from ..topics import Forecast, Stats, Topic, TopicPage
from ._core import Core


class TopicVerbs(Core):
    """Settings, counts, and what can be done to all jobs of a topic."""

    def stats(self) -> Stats:
        """Count the jobs of all topics together."""
        return Stats(self._call(Call("GET", "/v1/stats")))

    def topic(self, topic: str) -> Topic:
        """Look at a topic.

        Raises:
            NotFound: it has no job, no setting and no consumer.
        """
        return Topic(self._call(Call("GET", path("topics", topic))))

    def topics(self) -> Iterator[Topic]:
        """Look at all topics."""
        after: str | None = None
        while True:
            page = TopicPage(self._call(Call("GET", with_query("/v1/topics", after=after))))
            for topic in page.topics:
                yield topic
            after = page.next
            if after is None:
                return

    def set_topic(self, topic: str, **settings: Any) -> Mapping[str, Any]:
        """Set all settings of a topic; those that are not named get their default.

        `ttr`, `attempts_max`, `backoff`, `jobs_max`, `bytes_max`, `dead_ttl`, `dead_max`,
        limits (`leased_max`, `rate="100/1m"`, `group_leased_max`, `group_rate`), and what a newer
        server has. Gives the settings, spans in ms.
        """
        fields = {
            name: span(value, name) if isinstance(value, timedelta) else value
            for name, value in settings.items()
        }
        answer = self._call(Call("PUT", path("topics", topic), fields))
        return dict(answer["settings"])

    def pause(self, topic: str, for_: Span | None = None) -> None:
        """Stop the hand-out of jobs, for a time or until a resume."""
        fields = {} if for_ is None else {"for": span(for_, "for_")}
        self._call(Call("POST", path("topics", topic, "pause"), fields))

    def resume(self, topic: str) -> None:
        """Go on after a pause."""
        self._call(Call("POST", path("topics", topic, "resume"), {}))

    def purge(self, topic: str) -> int:
        """Remove all jobs that are not leased; give their number."""
        return self._count("DELETE", path("topics", topic), None, Repeat.NEVER)

    def revive_topic(self, topic: str, max: int | None = None) -> int:
        """Make dead jobs ready, oldest first; give their number."""
        return self._count_some(topic, "revive", max)

    def kick(self, topic: str, max: int | None = None) -> int:
        """Make delayed jobs ready, earliest first; give their number."""
        return self._count_some(topic, "kick", max)

    def release_topic(self, topic: str, max: int | None = None) -> int:
        """Take leased jobs back from whoever has them; give their number."""
        return self._count_some(topic, "release", max)

    def forecast(
        self,
        topic: str,
        *,
        from_: Instant | None = None,
        to: Instant | None = None,
        step: Span | None = None,
    ) -> Forecast:
        """Count the jobs that come due in each step of a time; the next day by hours."""
        target = with_query(
            path("topics", topic, "forecast"),
            from_=None if from_ is None else instant(from_, "from_"),
            to=None if to is None else instant(to, "to"),
            step=None if step is None else span(step, "step"),
        )
        return Forecast(self._call(Call("GET", target)))

    def _count_some(self, topic: str, verb: str, max: int | None) -> int:
        fields = {} if max is None else {"max": max}
        # The number would be that of the repeat alone; with `max`, more jobs would be changed.
        return self._count("POST", path("topics", topic, verb), fields, Repeat.NEVER)

    def _count(self, method: str, target: str, fields: Any, repeat: Repeat) -> int:
        return int((self._call(Call(method, target, fields, repeat)))["count"])
