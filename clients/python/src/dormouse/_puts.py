"""Puts as requests: keys of their own, batches, and what an answer to a repeat means."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from ._call import Repeat
from ._http import write_body
from ._settings import Settings
from .errors import Invalid
from .hooks import Hooks
from .outcome import Done
from .puts import Body, Put, PutResult
from .times import seconds

#: Smaller than the server's limits of 4,096 jobs and 16 MiB, so that others have their turn.
BATCH_ITEMS_MAX = 1000
BATCH_BYTES_MAX = 4 * 1024 * 1024

#: How the keys begin that the client makes.
OWN_KEY = "auto-"


def fields_of(put: Put, settings: Settings) -> tuple[dict[str, Any], bool]:
    """Give the fields of a put, and whether its key was made here."""
    fields = put.fields()
    trace = settings.hooks.trace_headers()
    if trace:
        fields["headers"] = {**trace, **fields.get("headers", {})}
    if "key" in fields or not settings.make_keys:
        return fields, False
    fields["key"] = OWN_KEY + os.urandom(12).hex()
    # A job that is due soon may be done before its put is sent again: its key must outlive it.
    window = 2 * (settings.retry_for + settings.timeout)
    if "key_ttl" not in fields and not _is_later_than(put, window):
        fields["key_ttl"] = int(window * 1000)
    return fields, True


def chain_fields(done: Done, hooks: Hooks) -> dict[str, Any]:
    """Give the puts of an ack. They need no key: a second ack finds the job gone, puts nothing."""
    puts = []
    for topic, put in done.puts:
        fields = put.fields()
        trace = hooks.trace_headers()
        if trace:
            fields["headers"] = {**trace, **fields.get("headers", {})}
        puts.append({"topic": topic, **fields})
    return {"put": puts} if puts else {}


def _is_later_than(put: Put, window: float) -> bool:
    if put.delay is None:
        return False
    try:
        return seconds(put.delay, "delay") > window
    except Invalid:
        # Written in a way that only the server reads, such as PT30M.
        return False


def is_repeatable(fields: dict[str, Any]) -> bool:
    """Whether the put may be sent twice: the second finds the first by its key, and keeps it."""
    return "key" in fields and fields.get("on_conflict", "keep") == "keep"


def own_results(answers: list[Any], own_keys: list[bool], lost: bool) -> list[PutResult]:
    """Read results. A duplicate of a key that was made here is this very job."""
    results = []
    for answer, is_own in zip(answers, own_keys):
        if lost and is_own and answer.get("code") == "duplicate":
            answer = {**answer, "code": "created", "duplicate": False}  # noqa: PLW2901
        results.append(PutResult(answer, repeated=lost))
    return results


def retryable_items(results: list[PutResult]) -> list[int]:
    """Give the items that the server was too busy for; nothing of them was stored."""
    return [index for index, result in enumerate(results) if result.raw.get("code") == "busy"]


@dataclass
class Batch:
    """Jobs of one request, already written."""

    parts: list[bytes] = field(default_factory=list)
    own_keys: list[bool] = field(default_factory=list)
    repeat: Repeat = Repeat.SAFE
    bytes: int = 0


def batches(jobs: Iterable[Put | Body], settings: Settings) -> Iterator[Batch]:
    """Cut jobs into batches; none of them waits for a job that was not asked for yet."""
    batch = Batch()
    for job in jobs:
        put = job if isinstance(job, Put) else Put(job)
        fields, is_own_key = fields_of(put, settings)
        part = write_body(fields)
        is_full = len(batch.parts) >= BATCH_ITEMS_MAX
        if is_full or (batch.parts and batch.bytes + len(part) > BATCH_BYTES_MAX):
            yield batch
            batch = Batch()
        batch.parts.append(part)
        batch.own_keys.append(is_own_key)
        batch.bytes += len(part)
        if not is_repeatable(fields):
            batch.repeat = Repeat.NEVER
    if batch.parts:
        yield batch
