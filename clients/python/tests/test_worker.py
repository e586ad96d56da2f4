"""The worker: how handlers end their jobs, leases that are lost, time-outs and stops."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, Callable

import pytest

from dormouse import (
    Backoff,
    Client,
    Hooks,
    Kill,
    LeasedJob,
    Release,
    Retry,
    Tally,
    Worker,
    current_job,
)
from dormouse.errors import Invalid, NotFound, Unreachable
from dormouse.testing import TestServer

from .conftest import until
from .relay import Relay

KINDS = ("plain", "async")


@contextmanager
def working(worker: Worker, *, stop: bool = True) -> Iterator[dict[str, Tally]]:
    """Run a worker on a thread until the block ends; a second stop would not wait for handlers."""
    end: dict[str, Tally] = {}
    thread = threading.Thread(target=lambda: end.update(tally=worker.run()))
    thread.start()
    try:
        yield end
    finally:
        if stop:
            worker.stop()
        thread.join(20)
        assert not thread.is_alive()


def waiters(client: Client, topic: str) -> int:
    """Count the polls that wait."""
    try:
        return client.topic(topic).waiters
    except NotFound:
        return 0


def add(worker: Worker, topic: str, kind: str, handler: Callable[[LeasedJob], Any]) -> None:
    """Add a handler as a plain function, or as an async one."""
    if kind == "plain":
        worker.handle(topic)(handler)
        return

    async def handle(job: LeasedJob) -> None:
        handler(job)

    worker.handle(topic)(handle)


def raise_(error: BaseException) -> Any:
    raise error


@pytest.mark.parametrize("kind", KINDS)
def test_a_handler_that_returns_acks(client: Client, topic: str, kind: str) -> None:
    seen = []
    client.put_many(topic, range(300))
    worker = Worker(client, concurrency=20)
    add(worker, topic, kind, lambda job: seen.append(job.json()))
    assert worker.run(drain=True) == Tally(done=300)
    assert sorted(seen) == list(range(300))
    assert list(client.list(topic, "leased")) == []


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("error", "state", "text", "attempts", "tally"),
    [
        (ValueError("no luck"), "delayed", "ValueError: no luck", 1, Tally(failed=1)),
        (KeyError(), "delayed", "KeyError", 1, Tally(failed=1)),
        (SystemExit(3), "delayed", "SystemExit: 3", 1, Tally(failed=1)),
        (Retry("2h", "later"), "delayed", "later", 1, Tally(failed=1)),
        (Retry(), "delayed", "the handler asked for a retry", 1, Tally(failed=1)),
        (Retry(timedelta(hours=2), "x" * 5000), "delayed", "x" * 1000, 1, Tally(failed=1)),
        (Kill("no such order"), "dead", "no such order", 1, Tally(dead=1)),
        (Release("2h"), "delayed", None, 0, Tally(released=1)),
    ],
)
def test_errors_end_a_job(  # noqa: PLR0917
    client: Client, topic: str, kind: str, error: BaseException, state: str, text: str,
    attempts: int, tally: Tally,
) -> None:  # fmt: skip
    if kind == "async" and isinstance(error, SystemExit):
        pytest.skip("it ends the event loop, as everywhere in asyncio")
    put = client.put(topic, backoff=Backoff.fixed("1h"), key_ttl="0s")
    worker = Worker(client)
    add(worker, topic, kind, lambda _: raise_(error))
    assert worker.run(drain=True) == tally
    job = client.get(id=put.id)
    assert (job.state, job.error, job.attempts) == (state, text, attempts)
    hours = (job.due_at - job.put_at) / timedelta(hours=1)
    if state == "delayed":
        wanted = 2 if getattr(error, "after", None) else 1
        assert wanted <= hours < wanted + 0.1


def test_the_last_attempt_is_dead(client: Client, topic: str) -> None:
    client.put(topic, key="k", attempts_max=2, backoff=Backoff.fixed("0s"))
    worker = Worker(client)
    worker.handle(topic)(lambda _: raise_(OSError("away")))
    assert worker.run(drain=True) == Tally(failed=1, dead=1)
    assert client.get(topic, "k").error == "OSError: away"


@pytest.mark.parametrize("body", ["{half", b"\xff\x00", ""])
def test_a_body_that_is_no_json_is_killed(client: Client, topic: str, body: Any) -> None:
    client.put(topic, body, key="k")
    worker = Worker(client)
    worker.handle(topic)(lambda job: job.json()["order"])
    assert worker.run(drain=True) == Tally(dead=1)
    assert "the body is not JSON" in (client.get(topic, "k").error or "")


def test_an_option_that_the_server_refuses_is_told_without_it(client: Client, topic: str) -> None:
    client.put(topic, key="k")
    worker = Worker(client)
    worker.handle(topic)(lambda _: raise_(Retry("soon", "try again")))
    assert worker.run(drain=True).failed == 1
    assert "try again (invalid:" in (client.get(topic, "k").error or "")
    client.put(topic, key="n")
    worker = Worker(client)
    worker.handle(topic)(lambda _: raise_(Retry(30)))  # type: ignore[arg-type]
    worker.run(drain=True)
    assert "which has no unit" in (client.get(topic, "n").error or "")


@pytest.mark.parametrize("kind", KINDS)
def test_a_lease_is_prolonged(client: Client, topic: str, kind: str) -> None:
    client.put(topic, ttr="900ms")
    worker = Worker(client)
    runs = []

    def plain(job: LeasedJob) -> None:
        runs.append(job)
        assert not job.lost.wait(2)

    async def handler(job: LeasedJob) -> None:
        runs.append(job)
        await asyncio.sleep(2)

    worker.handle(topic)(plain if kind == "plain" else handler)
    with working(worker) as end:
        until(lambda: not list(client.list(topic, "leased")) and bool(runs), "the job is done")
    assert end["tally"] == Tally(done=1)
    assert len(runs) == 1


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("how", ["cancelled", "taken"])
def test_a_lost_job_is_signalled(client: Client, topic: str, kind: str, how: str) -> None:
    put = client.put(topic, ttr="600ms")
    started, noticed, log = threading.Event(), threading.Event(), []
    worker = Worker(client)

    def plain(job: LeasedJob) -> None:
        started.set()
        assert job.lost.wait(10)
        log.append(job.lost_reason)
        noticed.set()

    async def handler(job: LeasedJob) -> None:
        started.set()
        try:
            await asyncio.sleep(10)
        except asyncio.CancelledError:
            log.append(job.lost_reason)
            noticed.set()
            raise

    worker.handle(topic)(plain if kind == "plain" else handler)
    with working(worker) as end:
        assert started.wait(10)
        if how == "cancelled":
            assert client.cancel(id=put.id).was == "leased"
        else:
            client.pause(topic)
            client.release_topic(topic)
        assert noticed.wait(10)
    assert end["tally"] == Tally(lost=1)
    assert log[0]


@pytest.mark.parametrize("kind", KINDS)
def test_a_handler_that_hangs_is_timed_out(client: Client, topic: str, kind: str) -> None:
    client.put(topic, key="k", backoff=Backoff.fixed("1h"))
    worker = Worker(client, timeout="200ms", concurrency=1, grace="0s")
    lost = []

    def plain(job: LeasedJob) -> None:
        lost.append(job.lost.wait(10))

    async def handler(job: LeasedJob) -> None:
        try:
            await asyncio.sleep(10)
        finally:
            lost.append(job.lost.is_set())

    worker.handle(topic)(plain if kind == "plain" else handler)
    assert worker.run(drain=True) == Tally(failed=1)
    assert client.get(topic, "k").error == "timed out after 0.2 s"
    until(lambda: lost == [True], "the handler has seen it")


def test_a_thread_that_hangs_does_not_keep_the_worker_from_stopping(
    client: Client, topic: str
) -> None:
    client.put_many(topic, range(2), check=True)
    hang = threading.Event()
    started = []
    worker = Worker(client, grace="200ms")

    @worker.handle(topic)
    def handler(job: LeasedJob) -> None:
        started.append(job)
        hang.wait(30)

    with working(worker) as end:
        until(lambda: len(started) == 2, "both run")
    assert end["tally"] == Tally(released=2)
    # They are ready at once, for another worker, and no attempt is spent.
    jobs = client.reserve(topic, max=2)
    assert [job.attempt for job in jobs] == [1, 1]
    assert all(job.lost.is_set() for job in started)
    hang.set()


def test_a_stop_ends_the_poll_at_once_and_waits_for_handlers(client: Client, topic: str) -> None:
    worker = Worker(client, wait="30s")
    started, go_on = threading.Event(), threading.Event()

    @worker.handle(topic)
    def handler(_: LeasedJob) -> None:
        started.set()
        go_on.wait(10)

    with working(worker, stop=False) as end:
        client.put(topic, "first")
        assert started.wait(10)
        until(lambda: waiters(client, topic) == 1, "it waits for more")
        worker.stop()
        until(lambda: waiters(client, topic) == 0, "the poll has ended")
        client.put(topic, "second")
        assert not end
        go_on.set()
    assert end["tally"] == Tally(done=1)
    assert client.topic(topic).ready == 1


def test_an_idle_worker_stops_at_once(client: Client, topic: str) -> None:
    took = []
    for _ in range(3):
        worker = Worker(client, wait="30s")
        worker.handle(topic)(lambda _: None)
        with working(worker):
            until(lambda: waiters(client, topic) == 1, "it waits")
            started = time.monotonic()
        took.append(time.monotonic() - started)
    # It is a millisecond; a poll that was only given up would take a second.
    assert min(took) < 0.8
    # One that was stopped before it runs does nothing.
    client.put(topic)
    assert worker.run() == Tally()


def test_jobs_that_come_while_it_stops_are_given_back(client: Client, topic: str) -> None:
    client.put(topic, delay="1h")
    for _ in range(20):
        worker = Worker(client, wait="30s", concurrency=5)
        worker.handle(topic)(lambda _: None)
        with working(worker):
            until(lambda: waiters(client, topic) == 1, "it waits")
            client.put_many(topic, range(3))
        # By the worker, or by the server if it has seen the end of the poll first.
        until(lambda: client.topic(topic).leased == 0, "no lease is left")


def test_cancelling_an_async_run_gives_jobs_back(client: Client, topic: str) -> None:
    client.put(topic, key="k")

    async def main() -> None:
        worker = Worker(client)
        started = asyncio.Event()

        @worker.handle(topic)
        async def handler(_: LeasedJob) -> None:
            started.set()
            await asyncio.sleep(30)

        run = asyncio.ensure_future(worker.run_async(signals=False))
        await started.wait()
        run.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await run

    asyncio.run(main())
    assert client.get(topic, "k").state == "ready"


def test_an_ack_whose_answer_is_lost_is_told_again(
    client: Client, server: TestServer, topic: str
) -> None:
    relay = Relay(server.url)
    client.put_many(topic, range(10))
    told: list[tuple[str, str]] = []

    class Record(Hooks):
        def on_told(self, job: LeasedJob, how: str, code: str) -> None:
            told.append((how, code))

    relay.lose_once("/v1/ack")
    worker = Worker(relay.url, hooks=Record(), concurrency=10)
    worker.handle(topic)(lambda _: None)
    assert worker.run(drain=True).done == 10
    # The second telling of the lost batch finds its jobs gone.
    assert ("ack", "gone") in told
    assert len(told) == 10
    # Acks go together: far fewer requests than jobs.
    assert len([line for line in relay.seen if "/v1/ack" in line]) <= 5
    relay.close()


def test_a_worker_without_a_server_gives_up_when_told_to(
    server: TestServer, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    relay = Relay(server.url)
    relay.close()
    worker = Worker(relay.url, retry_for="300ms")
    worker.handle(topic)(lambda _: None)
    with (
        caplog.at_level(logging.WARNING, "dormouse"),
        pytest.raises(Unreachable, match="retry_for"),
    ):
        worker.run()
    assert "the poll for jobs failed" in caplog.text


def test_bad_workers_are_refused(client: Client, topic: str) -> None:
    with pytest.raises(Invalid, match="no handler"):
        Worker(client).run()
    with pytest.raises(Invalid, match="at least 1"):
        Worker(client, concurrency=0)
    worker = Worker(client)
    worker.handle(topic)(print)
    with pytest.raises(Invalid, match="a topic has one"):
        worker.handle(topic)(print)
    with pytest.raises(Invalid, match="name the topics"):
        worker.handle()


@pytest.mark.parametrize("kind", KINDS)
def test_hooks_and_traces(client: Client, topic: str, kind: str) -> None:
    log: list[Any] = []

    class Trace(Hooks):
        def around(self, job: LeasedJob) -> Any:
            log.append(("around", job.traceparent))
            return contextlib.nullcontext()

        def on_end(self, job: LeasedJob, how: str, seconds: float) -> None:
            log.append(("end", how))
            assert seconds < 10
            raise ZeroDivisionError("an error in a hook does no harm")

    client.put(f"{topic}a", headers={"traceparent": "00-1-2-01", "tracestate": "x=y", "z": "1"})
    worker = Worker(client, hooks=Trace(), concurrency=1)
    add(worker, f"{topic}a", kind, lambda _: client.put(f"{topic}b", "next"))
    add(worker, f"{topic}b", kind, lambda _: log.append(current_job()))
    worker.run(drain=True)
    # The trace goes on from job to job; other headers do not.
    assert log[0] == log[2] == ("around", "00-1-2-01")
    assert log[1] == log[4] == ("end", "done")
    assert log[3].headers == {"traceparent": "00-1-2-01", "tracestate": "x=y"}
    assert current_job() is None


def test_it_takes_no_more_jobs_than_it_has_slots(client: Client, topic: str) -> None:
    client.put_many(topic, range(20))
    worker = Worker(client, concurrency=3)
    now, most, lock = [0], [0], threading.Lock()

    @worker.handle(topic)
    def handler(_: LeasedJob) -> None:
        with lock:
            now[0] += 1
            most[0] = max(most[0], now[0])
        assert client.topic(topic).leased <= 3 + 17
        time.sleep(0.01)
        with lock:
            now[0] -= 1

    assert worker.run(drain=True).done == 20
    assert most[0] == 3


def test_a_worker_with_a_clock_to_move(clock: TestServer, topic: str) -> None:
    seen = []
    worker = Worker(clock.client(), wait="10s")
    worker.handle(topic)(lambda job: seen.append(job.late_ms))
    with clock.client() as client, working(worker):
        client.put(topic, delay="30m")
        until(lambda: waiters(client, topic) == 1, "it waits")
        clock.advance("30m")
        until(lambda: seen == [0], "the job has come")
