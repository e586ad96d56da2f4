"""Verbs about leases: reserve, and how a lease ends."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .._address import path
from .._call import Call, Repeat
from .._puts import chain_fields
from ..jobs import Ending, Lease, LeasedJob, token_of
from ..outcome import Done
from ..times import Span, seconds, span
from ._core import Core


class LeaseVerbs(Core):
    """Takes jobs, and ends their leases. A `Worker` does all of it by itself."""

    async def reserve(
        self,
        topics: str | Sequence[str],
        *,
        max: int = 1,
        wait: Span = "0s",
        ttr: Span | None = None,
    ) -> list[LeasedJob]:
        """Take up to `max` jobs that are due, or wait for the first; none is an empty list.

        If an answer is lost it is asked again; jobs of the first come back when their leases end.
        """
        fields: dict[str, Any] = {"max": max, "wait": span(wait, "wait")}
        if ttr is not None:
            fields["ttr"] = span(ttr, "ttr")
        fields["topics"] = [topics] if isinstance(topics, str) else list(topics)
        call = Call("POST", "/v1/reserve", fields, wait=seconds(wait, "wait"))
        return [LeasedJob(job) for job in (await self._call(call))["jobs"]]

    async def reserve_id(self, id: str, *, ttr: Span | None = None) -> list[LeasedJob]:
        """Take this job now, even before it is due."""
        fields = {} if ttr is None else {"ttr": span(ttr, "ttr")}
        call = Call("POST", path("jobs", str(id), "reserve"), fields, Repeat.CHECKED)
        return [LeasedJob(job) for job in (await self._call(call))["jobs"]]

    async def ack(
        self, lease: Lease, done: Done | None = None, *, more: Mapping[str, Any] | None = None
    ) -> Ending:
        """Say that the job is done; `gone` if it was acked or cancelled before.

        With `Done().put(topic, job)` the ack and the puts happen together: a put that is refused
        raises, and the lease goes on. `more` is sent as it is: fields of a server that is newer
        than this client.
        """
        fields = {} if done is None else chain_fields(done, self._settings.hooks)
        return await self._end("ack", lease, {**fields, **(more or {})})

    async def nack(
        self,
        lease: Lease,
        *,
        delay: Span | None = None,
        error: str | None = None,
        priority: int | None = None,
    ) -> Ending:
        """Say that the attempt failed: tried again after `delay` or the backoff, or dead."""
        return await self._end("nack", lease, _fields(delay, error, priority))

    async def release(
        self, lease: Lease, *, delay: Span | None = None, priority: int | None = None
    ) -> Ending:
        """Give the job back; the attempt is not spent."""
        return await self._end("release", lease, _fields(delay, None, priority))

    async def kill(
        self, lease: Lease, *, error: str | None = None, priority: int | None = None
    ) -> Ending:
        """Say that trying again will not help: the job is dead."""
        return await self._end("kill", lease, _fields(None, error, priority))

    async def extend(self, lease: Lease, *, ttr: Span | None = None) -> Ending:
        """Prolong the lease: it lasts its ttr, or this one, from now on."""
        fields = {} if ttr is None else {"ttr": span(ttr, "ttr")}
        call = Call("POST", "/v1/extend", {"token": token_of(lease), **fields})
        return Ending(await self._call(call))

    async def ack_many(self, leases: Iterable[Lease]) -> list[Ending]:
        """Ack many jobs in one request; look at the `error` of each."""
        return await self._end_many("/v1/ack", leases)

    async def extend_many(self, leases: Iterable[Lease]) -> list[Ending]:
        """Prolong many leases in one request; look at the `error` of each."""
        return await self._end_many("/v1/extend", leases)

    async def release_many(self, leases: Iterable[Lease]) -> list[Ending]:
        """Give many jobs back in one request; look at the `error` of each."""
        return await self._end_many("/v1/release", leases)

    async def _end(self, verb: str, lease: Lease, fields: dict[str, Any]) -> Ending:
        call = Call("POST", f"/v1/{verb}", {"token": token_of(lease), **fields}, Repeat.CHECKED)
        return Ending(await self._call(call))

    async def _end_many(self, target: str, leases: Iterable[Lease]) -> list[Ending]:
        tokens = [token_of(lease) for lease in leases]
        if not tokens:
            return []
        answer = await self._call(Call("POST", target, {"tokens": tokens}))
        return [Ending(result) for result in answer["results"]]


def _fields(delay: Span | None, error: str | None, priority: int | None) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    if delay is not None:
        fields["delay"] = span(delay, "delay")
    if error is not None:
        fields["error"] = error
    if priority is not None:
        fields["priority"] = priority
    return fields
