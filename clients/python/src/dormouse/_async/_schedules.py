"""Verbs about schedules: rules that put a job at each of their ticks."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from typing import Any

from .._address import path
from .._call import Call, Repeat, with_query
from ..puts import Body, PutResult, body_fields
from ..times import Instant, Span, instant, read_instant, span
from ..topics import Preview, Schedule, SchedulePage, ScheduleResult
from ._core import Core


def _path(topic: str, name: str, *verb: str) -> str:
    return path("topics", topic, "schedules", name, *verb)


def _rule(fields: dict[str, Any]) -> dict[str, Any]:
    """Write the fields of a rule that are given."""
    rule: dict[str, Any] = {}
    for name, value in fields.items():
        if isinstance(value, timedelta):
            rule[name] = span(value, name)
        elif isinstance(value, datetime):
            rule[name] = instant(value, name)
        elif value is not None:
            rule[name] = value
    return rule


class ScheduleVerbs(Core):
    """Defines, shows and changes schedules."""

    async def schedule(
        self,
        topic: str,
        name: str,
        body: Body = None,
        *,
        cron: str | None = None,
        every: Span | None = None,
        gap: Span | None = None,
        zone: str | None = None,
        **more: Any,
    ) -> ScheduleResult:
        """Define a schedule, or replace it; saying the same again changes nothing.

        The rule is exactly one of `cron` (in `zone`), `every` and `gap`. `more` are `overlap`,
        `catchup`, `late_max`, `jitter`, `start_at`, `end_at`, `ticks_max`, `on_conflict`,
        `if_version`, and the options of a put for each job.
        """
        fields = _rule({"cron": cron, "every": every, "gap": gap, "zone": zone, **more})
        call = Call("PUT", _path(topic, name), {**body_fields(body), **fields})
        return ScheduleResult(await self._call(call))

    async def get_schedule(self, topic: str, name: str) -> Schedule:
        """Look at a schedule."""
        return Schedule(await self._call(Call("GET", _path(topic, name))))

    async def schedules(
        self,
        topic: str,
        *,
        state: str | None = None,
    ) -> AsyncIterator[Schedule]:
        """Look at all schedules of a topic, those first that tick first."""
        cursor: str | None = None
        while True:
            target = with_query(path("topics", topic, "schedules"), state=state, cursor=cursor)
            page = SchedulePage(await self._call(Call("GET", target)))
            for schedule in page.schedules:
                yield schedule
            cursor = page.cursor
            if cursor is None:
                return

    async def unschedule(self, topic: str, name: str, *, jobs: bool = False) -> None:
        """Remove a schedule; with `jobs` its living job, too."""
        target = with_query(_path(topic, name), jobs=jobs or None)
        await self._call(Call("DELETE", target, repeat=Repeat.CHECKED))

    async def pause_schedule(self, topic: str, name: str, for_: Span | None = None) -> Schedule:
        """Let ticks pass without a job, for a time or until a resume."""
        fields = {} if for_ is None else {"for": span(for_, "for_")}
        return Schedule(await self._call(Call("POST", _path(topic, name, "pause"), fields)))

    async def resume_schedule(self, topic: str, name: str) -> Schedule:
        """Go on after a pause."""
        return Schedule(await self._call(Call("POST", _path(topic, name, "resume"), {})))

    async def skip_tick(self, topic: str, name: str) -> Schedule:
        """Leave out the next tick."""
        call = Call("POST", _path(topic, name, "skip"), {}, Repeat.NEVER)
        return Schedule(await self._call(call))

    async def replan_schedule(self, topic: str, name: str) -> Schedule:
        """Make the next tick the first after now."""
        return Schedule(await self._call(Call("POST", _path(topic, name, "replan"), {})))

    async def run_schedule(self, topic: str, name: str) -> PutResult:
        """Put one more job now, for no tick."""
        call = Call("POST", _path(topic, name, "run"), {}, Repeat.NEVER)
        return PutResult(await self._call(call))

    async def backfill_schedule(
        self, topic: str, name: str, from_: Instant, to: Instant
    ) -> list[PutResult]:
        """Put a job for each tick of a past time."""
        fields = {"from": instant(from_, "from_"), "to": instant(to, "to")}
        call = Call("POST", _path(topic, name, "backfill"), fields, Repeat.NEVER)
        return [PutResult(result) for result in (await self._call(call))["results"]]

    async def ticks(
        self,
        topic: str,
        name: str,
        *,
        from_: Instant | None = None,
        to: Instant | None = None,
        limit: int | None = None,
    ) -> list[datetime]:
        """Give the ticks of a schedule in a time, past or future."""
        target = with_query(
            _path(topic, name, "ticks"),
            from_=None if from_ is None else instant(from_, "from_"),
            to=None if to is None else instant(to, "to"),
            limit=limit,
        )
        return [read_instant(tick) for tick in (await self._call(Call("GET", target)))["ticks"]]

    async def preview_schedule(
        self,
        *,
        cron: str | None = None,
        every: Span | None = None,
        gap: Span | None = None,
        zone: str | None = None,
        from_: Instant | None = None,
        limit: int | None = None,
    ) -> Preview:
        """Show what a rule would do; nothing is stored."""
        fields = {"cron": cron, "every": every, "gap": gap, "zone": zone, "limit": limit}
        rule = _rule({**fields, "from": from_})
        return Preview(await self._call(Call("POST", "/v1/schedules/preview", rule)))
