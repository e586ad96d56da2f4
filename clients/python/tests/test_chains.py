"""Acks with puts: all of it happens, or nothing, and once."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from dormouse import AsyncClient, Backoff, Client, Done, LeasedJob, Put, Retry, Tally, Worker
from dormouse.errors import Invalid
from dormouse.testing import TestServer

from .relay import Relay
from .test_worker import KINDS, add

TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def add_returning(worker: Worker, topic: str, kind: str, result: Any) -> None:
    """Add a handler that returns this, as a plain function or as an async one."""
    if kind == "plain":
        add(worker, topic, kind, lambda _: result)
        return

    async def handle(_: LeasedJob) -> Any:
        return result

    worker.handle(topic)(handle)


@pytest.mark.parametrize("kind", KINDS)
def test_a_handler_acks_with_puts(client: Client, topic: str, kind: str) -> None:
    client.put(topic, "first", headers={"traceparent": TRACE})
    worker = Worker(client)
    later = Put("later", delay="1h", key="k", headers={"of": "mine"})
    add_returning(worker, topic, kind, Done().put(f"{topic}-a", {"n": 1}).put(f"{topic}-b", later))
    assert worker.run(drain=True) == Tally(done=1)
    [now] = client.reserve(f"{topic}-a")
    assert (now.json(), now.key, now.traceparent) == ({"n": 1}, None, TRACE)
    job = client.get(f"{topic}-b", "k")
    assert (job.state, job.text(), job.headers["of"]) == ("delayed", "later", "mine")
    assert job.headers["traceparent"] == TRACE


def test_many_chains_are_told_each_with_its_own_puts(client: Client, topic: str) -> None:
    client.put_many(topic, range(100))
    worker = Worker(client, concurrency=20)
    worker.handle(topic)(lambda job: Done().put(f"{topic}-next", job.json()))
    assert worker.run(drain=True) == Tally(done=100)
    found = sorted(job.json() for job in client.list(f"{topic}-next", "ready"))
    assert found == list(range(100))


def test_a_lost_answer_puts_nothing_twice(server: TestServer, topic: str) -> None:
    relay = Relay(server.url)
    relay.lose_once("/v1/ack")
    with server.client() as client:
        client.put(topic, "first")
        worker = Worker(relay.url)
        worker.handle(topic)(lambda _: Done().put(f"{topic}-next", "x"))
        assert worker.run(drain=True) == Tally(done=1)
        assert len([line for line in relay.seen if "/v1/ack" in line]) == 2
        assert len(list(client.list(f"{topic}-next", "ready"))) == 1
    relay.close()


def test_a_refused_put_fails_the_job(client: Client, topic: str) -> None:
    client.put(topic, key="k", backoff=Backoff.fixed("1h"))
    worker = Worker(client)
    done = Done().put(f"{topic}-next", "x").put("no such name", "y")
    worker.handle(topic)(lambda _: done)
    assert worker.run(drain=True) == Tally(failed=1)
    job = client.get(topic, "k")
    assert job.state == "delayed"
    assert "put 2 of the chain" in (job.error or "")
    assert list(client.list(f"{topic}-next", "ready")) == []


@pytest.mark.parametrize(
    ("result", "error"),
    [
        (Retry("2h", "later"), "later"),
        (Done().put("t", Put(delay=30)), "Invalid: "),  # type: ignore[arg-type]
        (Done().put("t", object()), "cannot be written as JSON"),
    ],
)
@pytest.mark.parametrize("kind", KINDS)
def test_what_cannot_be_meant_is_no_ack(
    client: Client, topic: str, kind: str, result: Any, error: str
) -> None:
    client.put(topic, key="k", backoff=Backoff.fixed("1h"))
    worker = Worker(client)
    add_returning(worker, topic, kind, result)
    assert worker.run(drain=True) == Tally(failed=1)
    assert error in (client.get(topic, "k").error or "")


def test_a_forgotten_await_is_no_ack(client: Client, topic: str) -> None:
    client.put(topic, key="k", backoff=Backoff.fixed("1h"))
    worker = Worker(client)
    worker.handle(topic)(lambda _: asyncio.Future(loop=asyncio.new_event_loop()))
    assert worker.run(drain=True) == Tally(failed=1)
    assert "declare it with `async def`" in (client.get(topic, "k").error or "")


def test_clients_ack_with_puts(server: TestServer, client: Client, topic: str) -> None:
    client.put_many(topic, ["1", "2"])
    one, two = client.reserve(topic, max=2)
    ending = client.ack(one, Done().put(f"{topic}-next", "x"))
    assert (ending.code, [result.code for result in ending.put]) == ("done", ["created"])
    assert client.get(id=ending.put[0].id).text() == "x"
    again = client.ack(one, Done().put(f"{topic}-next", "x"))
    assert (again.code, again.put) == ("gone", [])
    with pytest.raises(Invalid, match="put 1 of the chain"):
        client.ack(two, Done().put("no such name"))
    assert client.extend(two).code == "done"

    async def ack() -> str:
        async with AsyncClient(server.url) as other:
            return (await other.ack(two, Done().put(f"{topic}-next", "y"))).code

    assert asyncio.run(ack()) == "done"
    assert len(list(client.list(f"{topic}-next", "ready"))) == 2
