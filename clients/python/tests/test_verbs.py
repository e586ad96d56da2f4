"""Leases, topics, schedules, locks and events."""

from __future__ import annotations

import asyncio
import pathlib
import signal
import threading
from datetime import datetime, timedelta, timezone

import pytest

from dormouse import Backoff, Client, Put
from dormouse.errors import Conflict, Invalid, LeaseLost, NotFound
from dormouse.events import Event, EventReader
from dormouse.testing import TestServer

from .conftest import until


def test_how_leases_end(client: Client, topic: str) -> None:
    client.put(topic, "x", key="k", attempts_max=2, backoff=Backoff.fixed("0s"))
    [job] = client.reserve(topic, ttr="30s")
    assert job.ttr == timedelta(seconds=30)
    assert client.extend(job, ttr="2m").expires_at > job.expires_at  # type: ignore[operator]
    assert client.release(job).code == "done"
    [job] = client.reserve([topic, "another"])
    assert client.nack(job, error="no luck", delay="1h").code == "retry"
    assert client.get(topic, "k").error == "no luck"
    client.run(topic, "k")
    [job] = client.reserve(topic)
    assert job.attempt == 2
    assert client.nack(job).code == "dead"
    client.revive(topic, "k")
    [job] = client.reserve(topic)
    assert client.kill(job, error="enough").code in ("done", "dead")
    assert client.get(topic, "k").state == "dead"


def test_a_stale_token_is_refused(client: Client, topic: str) -> None:
    client.put(topic)
    [old] = client.reserve(topic)
    client.release(old)
    [new] = client.reserve(topic)
    with pytest.raises(LeaseLost):
        client.ack(old)
    with pytest.raises(Invalid):
        client.ack("nonsense")
    assert new.fence > old.fence
    ended = client.ack_many([old, new])
    assert isinstance(ended[0].error, LeaseLost)
    assert ended[1].code == "done"
    with pytest.raises(NotFound):
        client.extend(new)


def test_many_at_once(client: Client, topic: str) -> None:
    client.put_many(topic, range(10))
    jobs = client.reserve(topic, max=10)
    assert all(end.expires_at for end in client.extend_many(jobs))
    assert [end.code for end in client.release_many(jobs)] == ["done"] * 10
    assert [end.code for end in client.ack_many(client.reserve(topic, max=10))] == ["done"] * 10
    assert client.ack_many([]) == []


def test_reserve_waits_and_takes_by_id(client: Client, topic: str) -> None:
    assert client.reserve(topic) == []
    assert client.reserve(topic, wait="20ms") == []
    timer = threading.Timer(0.1, lambda: client.put(topic, "late"))
    timer.start()
    assert client.reserve(topic, wait="10s")[0].text() == "late"
    put = client.put(topic, "far", delay="1h")
    assert client.reserve_id(put.id)[0].text() == "far"


def test_limits_hold_jobs_that_stay_ready(client: Client, topic: str) -> None:
    settings = client.set_topic(topic, group_leased_max=1, rate="100/1s:burst=9")
    rate = {"jobs": 100, "per": 1000, "burst": 9}
    assert settings == {"group_leased_max": 1, "rate": rate}
    client.put(topic, "a", group="g")
    held = client.put(topic, "b", group="g")
    assert [job.group for job in client.reserve(topic, max=10)] == ["g"]
    job = client.get(id=held.id)
    assert (job.state, job.held_by) == ("ready", "group_leased_max")


def test_settings_counts_and_pauses(client: Client, topic: str) -> None:
    settings = client.set_topic(topic, ttr=timedelta(seconds=5), dead_ttl="1d", attempts_max=2)
    assert settings == {"ttr_ms": 5000, "dead_ttl_ms": 86_400_000, "attempts_max": 2}
    client.put_many(topic, [Put("a"), Put("b", delay="1h"), Put("c", delay="2h")])
    seen = client.topic(topic)
    assert (seen.topic, seen.ready, seen.delayed, seen.waiting) == (topic, 1, 2, 3)
    assert seen.settings["ttr_ms"] == 5000
    assert seen.totals["puts"] == 3
    assert topic in [one.topic for one in client.topics()]
    assert client.stats().waiting >= 3
    client.pause(topic, "1h")
    assert client.topic(topic).paused
    assert client.reserve(topic) == []
    client.resume(topic)
    assert len(client.reserve(topic)) == 1
    assert client.release_topic(topic) == 1
    assert client.kick(topic, 1) == 1
    assert sum(client.forecast(topic, step="30m").counts[1:]) == 1
    assert client.forecast(topic, to=datetime.now(timezone.utc) + timedelta(hours=4)).counts
    assert client.purge(topic) == 3
    with pytest.raises(Invalid, match="no_such_setting"):
        client.set_topic(topic, no_such_setting=1)


def test_revive_a_topic(client: Client, topic: str) -> None:
    for put in client.put_many(topic, range(3)):
        client.kill_job(id=put.id)
    assert client.revive_topic(topic, 2) == 2
    assert client.revive_topic(topic) == 1


def test_schedules(client: Client, topic: str) -> None:
    rule = {"cron": "0 3 * * *", "zone": "Europe/Berlin"}
    made = client.schedule(topic, "nightly", {"make": "it"}, overlap="wait", **rule)
    assert (made.code, made.words) == ("created", "at 03:00 every day, Europe/Berlin")
    same = client.schedule(topic, "nightly", {"make": "it"}, overlap="wait", **rule)
    assert (same.code, same.version) == ("unchanged", made.version)
    client.schedule(topic, "often", every=timedelta(hours=1), jitter="1s")
    assert sorted(one.name for one in client.schedules(topic)) == ["nightly", "often"]
    seen = client.get_schedule(topic, "nightly")
    assert (seen.state, len(seen.next)) == ("waiting", 5)
    assert client.run_schedule(topic, "nightly").code == "created"
    assert client.reserve(topic)[0].json() == {"make": "it"}
    assert client.pause_schedule(topic, "nightly", "1h").state == "paused"
    assert client.resume_schedule(topic, "nightly").state == "waiting"
    assert client.skip_tick(topic, "nightly").counts["skipped"] == 1
    assert client.replan_schedule(topic, "nightly").name == "nightly"
    [tick, _] = client.ticks(topic, "nightly", from_="2027-01-01T00:00:00Z", limit=2)
    assert tick == datetime(2027, 1, 1, 2, tzinfo=timezone.utc)
    past = ("2020-01-01T00:00:00Z", "2020-01-03T00:00:00Z")
    assert [put.code for put in client.backfill_schedule(topic, "nightly", *past)] == [
        "created"
    ] * 2
    client.unschedule(topic, "nightly", jobs=True)
    with pytest.raises(NotFound):
        client.get_schedule(topic, "nightly")
    preview = client.preview_schedule(cron="0 9 L * *", limit=3)
    assert (preview.words, len(preview.ticks)) == ("at 09:00 on the last day of the month, UTC", 3)


def test_locks(client: Client, topic: str) -> None:
    lock = client.acquire_lock(topic, "me", ttl="1m")
    assert client.acquire_lock(topic, "me").depth == 2
    with pytest.raises(Conflict):
        client.acquire_lock(topic, "you", wait="10ms")
    assert client.renew_lock(topic, "me", ttl="2m").fence == lock.fence
    assert topic in [one.name for one in client.locks(prefix=topic)]
    assert client.release_lock(topic, "me") == "held"
    assert client.release_lock(topic, "me") == "free"
    fence = client.acquire_lock(topic, "you").fence
    with pytest.raises(Conflict):
        client.break_lock(topic, fence=str(int(fence) + 1))
    client.break_lock(topic, fence=fence)


def test_events_of_threads(server: TestServer, client: Client, topic: str) -> None:
    seen: list[Event] = []

    def watch() -> None:
        with server.client() as watcher:
            for event in watcher.events(topic):
                seen.append(event)
                if event.kind == "acked":
                    return

    thread = threading.Thread(target=watch)
    thread.start()
    client.put(topic, "before")
    until(lambda: bool(seen) or bool(client.put(topic, "x").code == ""), "an event")
    client.ack(client.reserve(topic)[0])
    thread.join(10)
    assert not thread.is_alive()
    kinds = {event.kind for event in seen}
    assert {"put", "reserved", "acked"} <= kinds
    assert seen[-1].topic == topic
    assert seen[-1].id is not None
    assert seen[-1].attempt == 1


def test_events_of_asyncio_go_on_after_an_id(
    server: TestServer, client: Client, topic: str
) -> None:
    client.put(topic, "x")

    async def first(after: str | None, kind: str) -> Event:
        async with server.async_client() as watcher:
            events = watcher.events(prefix=topic, after=after)
            try:
                async for event in events:
                    if event.kind == kind:
                        return event
            finally:
                await events.aclose()  # type: ignore[attr-defined]
        raise AssertionError("the stream ended")

    async def main() -> None:
        waiting = asyncio.ensure_future(first(None, "put"))
        async with server.async_client() as other:
            while not waiting.done():
                await other.put(topic, "y")
                await asyncio.sleep(0.02)
            await other.purge(topic)
        put = await waiting
        assert (await asyncio.wait_for(first(put.event_id, "purged"), 10)).id is None

    asyncio.run(main())


def test_events_go_on_after_a_restart(tmp_path: pathlib.Path, topic: str) -> None:
    seen: list[str] = []
    with TestServer(options=["--data", str(tmp_path)]) as server, server.client() as client:

        def watch() -> None:
            with server.client() as watcher:
                for event in watcher.events():
                    seen.append(event.kind)
                    if event.kind == "cancelled":
                        return

        thread = threading.Thread(target=watch)
        thread.start()
        until(lambda: bool(seen) or not client.put(topic, "x").id, "an event")
        server.stop(signal.SIGKILL)
        server.start()
        until(lambda: "lost" in seen, "the stream goes on and tells of the gap")
        client.put(topic, key="k", delay="1h")
        client.cancel(topic, "k")
        thread.join(15)
        assert not thread.is_alive()


def test_half_an_event_is_forgotten_when_a_stream_breaks() -> None:
    reader = EventReader(None)
    assert list(reader.feed(b": hello\nretry: 2000\nid: 1-1\n\nid: 1-2\nevent: pu")) == []
    reader.broken()
    assert reader.last_id == "1-1"
    [event] = reader.feed(b'id: 1-2\nevent: put\ndata: {"id":"7"}\n\n')
    assert (event.kind, event.event_id, event.id) == ("put", "1-2", "7")


def test_a_clock_to_move(clock: TestServer, topic: str) -> None:
    with clock.client() as client:
        client.put(topic, "cancel 42", delay="30m")
        assert client.reserve(topic) == []
        clock.advance(timedelta(minutes=30))
        [job] = client.reserve(topic)
        assert job.late_ms == 0
        assert client.ready()["code"] == "ok"
