"""Verbs about jobs that no one has leased: put, get, list, cancel, reschedule and the like."""
# Made by tools/make_sync.py from _async/_jobs.py: change that, not this.

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from .._address import path
from .._call import Backoff, Call, Repeat, notify, with_query
from .._puts import batches, fields_of, is_repeatable, own_results, retryable_items
from ..errors import Invalid, PutFailed
from ..hooks import RetryNotice
from ..jobs import Change, Ending, Job, JobPage
from ..puts import Body, Put, PutResult
from ..times import Instant, Span, instant, span
from ._core import Core
from ._io import sleep


def job_path(topic: str | None, key: str | None, id: str | None) -> str:
    """Give the path of a job, by topic and key or by id."""
    if id is not None and topic is None and key is None:
        return path("jobs", str(id))
    if topic is not None and key is not None and id is None:
        return path("topics", topic, "keys", key)
    raise Invalid('name the job by topic and key ("orders", "42"), or by id="7"')


class JobVerbs(Core):
    """Puts, and what can be done to a job by its key or id."""

    def put(
        self,
        topic: str,
        body: Body = None,
        *,
        delay: Span | None = None,
        at: Instant | None = None,
        key: str | None = None,
        on_conflict: str | None = None,
        key_ttl: Span | None = None,
        priority: int | None = None,
        ttr: Span | None = None,
        attempts_max: int | None = None,
        backoff: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        expires_after: Span | None = None,
        group: str | None = None,
        more: Mapping[str, Any] | None = None,
    ) -> PutResult:
        """Put a job: due after `delay`, or at the instant `at`, or now.

        A str is put as text, bytes as bytes, anything else as JSON. Without a `key` it gets one of
        its own, so that it can be sent again if an answer is lost, and is still one job.
        """
        put = Put(
            body, delay, at, key, on_conflict, key_ttl, priority, ttr, attempts_max, backoff,
            headers, expires_after, group, more,
        )  # fmt: skip
        fields, is_own_key = fields_of(put, self._settings)
        if is_repeatable(fields):
            answer, lost = self._joint.put(self._call_told, topic, fields)
        else:
            call = Call("POST", path("topics", topic, "jobs"), fields, Repeat.NEVER)
            answer, lost = self._call_told(call)
        return own_results([answer], [is_own_key], lost)[0]

    def put_many(
        self, topic: str, jobs: Iterable[Put | Body], *, check: bool = True
    ) -> list[PutResult]:
        """Put many jobs: bodies, or `Put(body, delay=..., key=...)`.

        They go in batches, each made durable by one sync. With `check` a job that is refused
        raises `PutFailed`, which has all results; without it look at the `error` of each result.
        """
        results: list[PutResult] = []
        for batch in batches(jobs, self._settings):
            results += self._put_batch(topic, batch.parts, batch.own_keys, batch.repeat)
        failed = [result.error for result in results if result.error is not None]
        if check and failed:
            raise PutFailed(f"{len(failed)} of {len(results)} failed: {failed[0]}", results)
        return results

    def _put_batch(
        self, topic: str, parts: list[bytes], own_keys: list[bool], repeat: Repeat
    ) -> list[PutResult]:
        """Put a batch; its items that the server was too busy for are put again for a while."""
        results: list[PutResult] = []
        todo, backoff, waited, attempt = list(range(len(parts))), Backoff(), 0.0, 1
        while True:
            body = b"[" + b",".join([parts[index] for index in todo]) + b"]"
            call = Call("POST", path("topics", topic, "jobs"), body, repeat)
            answer, lost = self._call_told(call)
            fresh = own_results(answer["results"], [own_keys[index] for index in todo], lost)
            if not results:
                results = fresh
            for index, result in zip(todo, fresh):
                results[index] = result
            todo = retryable_items(results)
            delay = backoff.next()
            waited += delay
            if not todo or waited > self._settings.retry_for:
                return results
            error = results[todo[0]].error or Invalid("no reason")
            url = self._settings.addresses[self._favourite].url
            attempt += 1
            notify(self._settings, RetryNotice(str(call), url, error, attempt, delay))
            sleep(delay)

    def get(
        self, topic: str | None = None, key: str | None = None, *, id: str | None = None
    ) -> Job:
        """Look at a job, by topic and key or by id."""
        return Job(self._call(Call("GET", job_path(topic, key, id))))

    def cancel(
        self,
        topic: str | None = None,
        key: str | None = None,
        *,
        id: str | None = None,
        unless_leased: bool = False,
    ) -> Change:
        """Remove a job, whatever its state; the answer's `was` is the state it had.

        Raises:
            NotFound: there is none: it was done, or never put.
            Conflict: with `unless_leased`, a worker has it.
            Unconfirmed: an answer was lost, and now there is none. Perhaps this call removed it.
        """
        target = with_query(job_path(topic, key, id), unless_leased=unless_leased or None)
        return Change(self._call(Call("DELETE", target, repeat=Repeat.CHECKED)))

    def reschedule(
        self,
        topic: str | None = None,
        key: str | None = None,
        *,
        id: str | None = None,
        delay: Span | None = None,
        at: Instant | None = None,
    ) -> Change:
        """Move the due time of a waiting job: `delay` from now, or `at` an instant."""
        fields: dict[str, Any] = {}
        if delay is not None:
            fields["delay"] = span(delay, "delay")
        if at is not None:
            fields["at"] = instant(at, "at")
        call = Call("PATCH", job_path(topic, key, id), fields, Repeat.CHECKED)
        return Change(self._call(call))

    def run(
        self, topic: str | None = None, key: str | None = None, *, id: str | None = None
    ) -> Change:
        """Make a waiting job due now."""
        return self._change(job_path(topic, key, id) + "/run")

    def revive(
        self, topic: str | None = None, key: str | None = None, *, id: str | None = None
    ) -> Change:
        """Make a dead job ready, with new attempts."""
        return self._change(job_path(topic, key, id) + "/revive")

    def _change(self, target: str) -> Change:
        return Change(self._call(Call("POST", target, {}, Repeat.CHECKED)))

    def kill_job(
        self,
        topic: str | None = None,
        key: str | None = None,
        *,
        id: str | None = None,
        error: str | None = None,
    ) -> Ending:
        """Make a waiting job dead."""
        fields = {} if error is None else {"error": error}
        target = job_path(topic, key, id) + "/kill"
        return Ending(self._call(Call("POST", target, fields, Repeat.CHECKED)))

    def list_page(
        self,
        topic: str,
        state: str,
        *,
        cursor: str | None = None,
        limit: int | None = None,
        bodies: bool = True,
    ) -> JobPage:
        """Look at some jobs of a state; `cursor` is that of the page before."""
        target = with_query(
            path("topics", topic, "jobs"),
            state=state, cursor=cursor, limit=limit, bodies=None if bodies else False,
        )  # fmt: skip
        return JobPage(self._call(Call("GET", target)))

    def list(self, topic: str, state: str, *, bodies: bool = True) -> Iterator[Job]:
        """Look at all jobs of a state, page by page."""
        cursor: str | None = None
        while True:
            page = self.list_page(topic, state, cursor=cursor, bodies=bodies)
            for job in page.jobs:
                yield job
            cursor = page.cursor
            if cursor is None:
                return
