"""Puts, and what can be done to jobs by key and id, on both clients."""

from __future__ import annotations

import asyncio
import base64
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from dormouse import AsyncClient, Backoff, BadBody, Client, Put
from dormouse.errors import Conflict, Invalid, NotFound, PutFailed, TooLarge
from dormouse.testing import TestServer


@pytest.mark.parametrize(
    "body", [{"order": 42, "é": ["ü", None, 1.5]}, [1, 2], 7, True, "text ☃", b"\x00\xff", None, ""]
)
def test_a_body_comes_back_as_it_was_put(client: Client, topic: str, body: Any) -> None:
    client.put(topic, body)
    [job] = client.reserve(topic)
    if isinstance(body, str):
        assert job.text() == body
    elif isinstance(body, bytes):
        assert job.bytes() == body
    elif body is None:
        assert job.bytes() == b""
    else:
        assert job.json() == body
    assert job.attempt == 1
    assert job.fence > 0
    client.ack(job)


def test_text_that_is_json_can_be_read_as_json(client: Client, topic: str) -> None:
    client.put(topic, '{"a": 1}')
    client.put(topic, "no json")
    one, other = client.reserve(topic, max=2)
    assert one.json() == {"a": 1}
    with pytest.raises(BadBody, match="not JSON"):
        other.json()


def test_bytes_that_are_no_text(client: Client, topic: str) -> None:
    client.put(topic, b"\xff\xfe")
    [job] = client.reserve(topic)
    with pytest.raises(BadBody, match="not UTF-8"):
        job.text()


def test_all_options_arrive(client: Client, topic: str) -> None:
    put = client.put(
        topic,
        "x",
        delay=timedelta(minutes=30),
        key="42",
        key_ttl="5m",
        priority=7,
        ttr="90s",
        attempts_max=3,
        backoff=Backoff.exponential("2s", factor=3, cap="1m", jitter=0.25),
        headers={"a": "b"},
        group="tenant-1",
    )
    assert (put.code, put.state, put.duplicate) == ("created", "delayed", False)
    job = client.get(topic, "42")
    assert job.id == put.id
    assert (job.topic, job.key, job.state, job.priority) == (topic, "42", "delayed", 7)
    assert (job.ttr, job.key_ttl) == (timedelta(seconds=90), timedelta(minutes=5))
    assert (job.attempts, job.attempts_max, job.headers) == (0, 3, {"a": "b"})
    assert (job.group, job.held_by) == ("tenant-1", None)
    assert job.raw["backoff"]["exponential"] == {"base": 2000, "factor": 3, "cap": 60000}
    assert job.due_at == put.due_at
    assert job.due_at > datetime.now(timezone.utc) + timedelta(minutes=29)


def test_backoffs_as_fields() -> None:
    assert Backoff.fixed("10s") == {"fixed": "10s"}
    assert Backoff.list("1m", timedelta(minutes=5), jitter=0.1) == {
        "list": ["1m", 300_000],
        "jitter": 0.1,
    }


def test_an_instant_must_have_a_zone(client: Client, topic: str) -> None:
    at = datetime(2100, 1, 1, 9, tzinfo=timezone.utc)
    assert client.put(topic, at=at).due_at == at
    assert client.put(topic, at="2100-01-01T10:00:00+01:00").due_at == at
    with pytest.raises(Invalid, match="without a zone"):
        client.put(topic, at=datetime(2100, 1, 1))


def test_a_number_is_no_span(client: Client, topic: str) -> None:
    with pytest.raises(Invalid, match=r'write timedelta\(seconds=30\) or "30s"'):
        client.put(topic, delay=30)  # type: ignore[arg-type]


def test_what_is_no_json_is_refused(client: Client, topic: str) -> None:
    with pytest.raises(Invalid, match="cannot be written as JSON"):
        client.put(topic, {"a": object()})
    with pytest.raises(Invalid, match="cannot be written as JSON"):
        client.put(topic, {"a": float("nan")})


def test_an_unknown_option_is_named_by_the_server(client: Client, topic: str) -> None:
    with pytest.raises(Invalid, match="dealy"):
        client.put(topic, more={"dealy": "30m"})


def test_a_taken_key(client: Client, topic: str) -> None:
    first = client.put(topic, "a", key="k", delay="1h")
    again = client.put(topic, "b", key="k", delay="1h")
    assert (again.code, again.duplicate, again.id) == ("duplicate", True, first.id)
    assert client.get(topic, "k").text() == "a"
    with pytest.raises(Conflict) as refused:
        client.put(topic, "b", key="k", on_conflict="reject")
    assert (refused.value.id, refused.value.state) == (first.id, "delayed")
    assert client.put(topic, "c", key="k", on_conflict="replace", delay="1h").code == "replaced"
    assert client.get(topic, "k").text() == "c"


def test_a_put_without_a_key_gets_one(client: Client, server: TestServer, topic: str) -> None:
    one, other = client.put(topic, "x"), client.put(topic, "x")
    assert one.id != other.id
    assert (client.get(id=one.id).key or "").startswith("auto-")
    with server.client(make_keys=False) as plain:
        assert plain.get(id=plain.put(topic, "x").id).key is None


def test_cancel_tells_what_was(client: Client, topic: str) -> None:
    client.put(topic, key="a", delay="1h")
    client.put(topic, key="b")
    assert client.cancel(topic, "a").was == "delayed"
    assert client.cancel(topic, "b").was == "ready"
    with pytest.raises(NotFound):
        client.cancel(topic, "a")
    put = client.put(topic, key="c")
    client.reserve(topic)
    with pytest.raises(Conflict):
        client.cancel(topic, "c", unless_leased=True)
    assert client.cancel(id=put.id).was == "leased"


def test_a_job_is_named_by_key_or_id(client: Client) -> None:
    with pytest.raises(Invalid, match="topic and key"):
        client.get("orders")
    with pytest.raises(Invalid, match="topic and key"):
        client.get("orders", "42", id="1")


def test_topics_and_keys_are_encoded_in_paths(client: Client, topic: str) -> None:
    client.put(f"{topic}/a", "x", key="ä/b c?d%2F", delay="1h")
    assert client.get(f"{topic}/a", "ä/b c?d%2F").text() == "x"


def test_reschedule_run_kill_revive(client: Client, topic: str) -> None:
    client.put(topic, key="k", delay="1h")
    moved = client.reschedule(topic, "k", delay="2h")
    assert (moved.code, moved.was) == ("rescheduled", "delayed")
    at = datetime(2100, 1, 1, tzinfo=timezone.utc)
    assert client.reschedule(topic, "k", at=at).due_at == at
    assert client.run(topic, "k").was == "delayed"
    assert client.get(topic, "k").state == "ready"
    assert client.kill_job(topic, "k", error="not wanted").code == "done"
    [dead] = client.list(topic, "dead")
    assert (dead.error, dead.kills) == ("not wanted", 1)
    assert client.revive(id=dead.id).was == "dead"
    assert client.get(id=dead.id).state == "ready"


def test_list_walks_over_pages(client: Client, topic: str) -> None:
    client.put_many(topic, [Put(number, delay="1h") for number in range(250)])
    assert sorted(job.json() for job in client.list(topic, "delayed")) == list(range(250))
    page = client.list_page(topic, "delayed", limit=10, bodies=False)
    assert len(page.jobs) == 10
    assert page.cursor is not None
    assert not page.jobs[0].is_json


def test_put_many_tells_each_result(client: Client, topic: str) -> None:
    results = client.put_many(topic, ["a", Put("b", key="k", delay="1h"), Put("c", key="k")])
    assert [result.code for result in results] == ["created", "created", "duplicate"]
    assert results[1].id == results[2].id
    assert client.put_many(topic, []) == []
    assert client.put_many(topic, ["one"])[0].code == "created"


def test_put_many_is_cut_into_batches(client: Client, topic: str) -> None:
    results = client.put_many(topic, (str(number) for number in range(2500)))
    assert len({result.id for result in results}) == 2500
    big = "x" * 900_000
    assert len(client.put_many(topic, [big] * 10)) == 10
    assert client.topic(topic).ready == 2510


def test_put_many_says_which_failed(client: Client, topic: str) -> None:
    jobs = ["good", Put("bad", key="x" * 300), "x" * 1_100_000]
    with pytest.raises(PutFailed, match="2 of 3 failed") as failed:
        client.put_many(topic, jobs)
    good, bad, large = failed.value.results
    assert good.error is None
    assert isinstance(bad.error, Invalid)
    assert isinstance(large.error, TooLarge)
    unchecked = client.put_many(topic, jobs, check=False)
    assert [result.error is None for result in unchecked] == [True, False, False]
    [only] = client.put_many(topic, [jobs[1]], check=False)
    assert isinstance(only.error, Invalid)


def test_puts_of_many_tasks_go_together_and_fail_alone(server: TestServer, topic: str) -> None:
    async def put(client: AsyncClient, number: int) -> str:
        if number % 10 == 3:
            return (await client.put(topic, number, key="x" * 300)).code
        if number % 10 == 7:
            return (await client.put(topic, number, more={"dealy": 1})).code
        return (await client.put(topic, number, key=str(number))).code

    async def main() -> None:
        async with server.async_client() as client:
            puts = [put(client, number) for number in range(100)]
            ends = await asyncio.gather(*puts, return_exceptions=True)
        assert [type(end) for end in ends if isinstance(end, BaseException)] == [Invalid] * 20
        assert ends.count("created") == 80

    asyncio.run(main())
    with server.client() as plain:
        assert plain.topic(topic).ready == 80


def test_asyncio_has_the_same_verbs(server: TestServer, topic: str) -> None:
    async def main() -> None:
        async with server.async_client() as client:
            await client.put(topic, {"n": 1}, key="k", delay="1h")
            await client.run(topic, "k")
            [job] = await client.reserve(topic, wait="5s")
            assert job.json() == {"n": 1}
            assert (await client.ack(job)).code == "done"
            assert (await client.ack(job.token)).code == "gone"
            assert [job async for job in client.list(topic, "ready")] == []

    asyncio.run(main())


def test_a_base64_body_is_bytes(client: Client, topic: str) -> None:
    client.put(topic, more={"base64": base64.b64encode(b"\xf0").decode()})
    assert client.reserve(topic)[0].bytes() == b"\xf0"
