"""Bad input, servers that are away, and answers that are lost."""

from __future__ import annotations

import asyncio
import json
import logging
import pathlib
import socket
import subprocess
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from dormouse import Client, Hooks, Put, RetryNotice, Worker
from dormouse.errors import (
    BadAnswer,
    Closed,
    DormouseError,
    Forbidden,
    Invalid,
    NotFound,
    Unauthorized,
    Unconfirmed,
    Unreachable,
    from_problem,
)
from dormouse.testing import TestServer, find_binary

from .relay import Relay


@pytest.fixture
def relay(server: TestServer) -> Iterator[Relay]:
    relay = Relay(server.url)
    yield relay
    relay.close()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


class Notices(Hooks):
    def __init__(self) -> None:
        self.retries: list[RetryNotice] = []

    def on_retry(self, notice: RetryNotice) -> None:
        self.retries.append(notice)


@pytest.mark.parametrize(
    ("url", "fix"),
    [
        ("127.0.0.1:7788", "has no scheme"),
        ("redis://127.0.0.1:7789", "not RESP"),
        ("http://", "has no host"),
        ("http://host:port", "no good port"),
        ("http://me:secret@host", "token="),
        ("http://host/?a=b", "query"),
        ([], "at least one"),
    ],
)
def test_a_bad_url_is_refused_at_once(url: Any, fix: str) -> None:
    with pytest.raises(Invalid, match=fix):
        Client(url)


def test_no_server_is_told_with_the_fix(caplog: pytest.LogCaptureFixture) -> None:
    hooks = Notices()
    client = Client(f"http://127.0.0.1:{free_port()}", retry_for="300ms", hooks=hooks)
    with caplog.at_level(logging.WARNING, "dormouse"), pytest.raises(Unreachable) as away:
        client.put("t", "x")
    assert "does `dormouse serve` run there?" in str(away.value)
    assert away.value.retryable
    # Each repeat was told, to the hook and to the log.
    assert len(hooks.retries) >= 2
    assert len(caplog.records) == len(hooks.retries)
    assert [notice.attempt for notice in hooks.retries][:2] == [2, 3]
    client = Client(f"http://127.0.0.1:{free_port()}", retry_for="0s", hooks=hooks)
    hooks.retries.clear()
    with pytest.raises(Unreachable):
        client.stats()
    assert not hooks.retries


def test_another_protocol_is_named() -> None:
    def answer(data: bytes) -> str:
        with socket.create_server(("127.0.0.1", 0)) as listener:

            def serve() -> None:
                inner, _ = listener.accept()
                with inner:
                    inner.recv(65536)
                    inner.sendall(data)
                    inner.recv(65536)

            threading.Thread(target=serve, daemon=True).start()
            port = listener.getsockname()[1]
            client = Client(f"http://127.0.0.1:{port}", retry_for="0s")
            with pytest.raises(BadAnswer) as bad:
                client.stats()
            return str(bad.value)

    assert "RESP address" in answer(b"-ERR unknown command\r\n")
    assert "https://" in answer(b"\x15\x03\x01\x00\x02\x02\x46")
    page = b"<html>hello</html>"
    head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(page)
    assert "is the URL that of a Dormouse server" in answer(head + page)
    assert "without a code" in answer(b"HTTP/1.1 404 No\r\nContent-Length: 2\r\n\r\n{}")


def test_an_answer_in_chunks_and_of_a_newer_server() -> None:
    newer = b'{"id":"7","code":"created","state":"asleep","mood":"good"}'
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in (newer[:9], newer[9:]))
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            inner, _ = listener.accept()
            with inner:
                inner.recv(65536)
                for byte in head + chunks + b"0\r\n\r\n":
                    inner.sendall(bytes([byte]))
                inner.recv(65536)

        threading.Thread(target=serve, daemon=True).start()
        with Client(f"http://127.0.0.1:{listener.getsockname()[1]}") as client:
            put = client.put("t")
    assert (put.id, put.state, put.raw["mood"]) == ("7", "asleep", "good")
    assert put.due_at is None
    with pytest.raises(BadAnswer, match="has no field `topic`"):
        client_answer_without_fields()


def client_answer_without_fields() -> str:
    from dormouse import Job

    return Job({}).topic


def test_a_code_of_a_newer_server_is_an_error() -> None:
    error = from_problem({"code": "sleepy", "detail": "try later", "retryable": True})
    assert type(error) is DormouseError
    assert str(error) == "sleepy: try later"
    assert error.retryable


def test_tokens(tmp_path: pathlib.Path) -> None:
    command = [find_binary(), "config", "token", "--name", "shop", "--scope", "producer,consumer:t"]
    made = subprocess.run(command, capture_output=True, text=True, check=True)
    stanza = made.stdout[made.stdout.index("[[") :]
    secret = made.stderr.split()[-1]
    config = tmp_path / "dormouse.toml"
    config.write_text(stanza)
    with TestServer(options=["--backend", "memory", "--config", str(config)]) as server:
        with pytest.raises(Unauthorized, match="token="):
            server.client().put("t", "x")
        with pytest.raises(Unauthorized):
            server.client(token="wrong").put("t", "x")
        assert server.client(token=secret).put("t", "x").code == "created"
        with pytest.raises(Forbidden, match="purge"):
            server.client(token=secret).purge("t")
        worker = Worker(server.client(token="wrong"))
        worker.handle("t")(lambda _: None)
        # A worker does not try for ever what cannot succeed.
        with pytest.raises(Unauthorized):
            worker.run()
    with pytest.raises(Invalid, match="newline"):
        Client(token="a\nb")


def test_tls(tmp_path: pathlib.Path) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "cert.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-keyout",
         str(key), "-out", str(certificate), "-subj", "/CN=localhost",
         "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"],
        check=True, capture_output=True,
    )  # fmt: skip
    key.chmod(0o600)
    options = ["--backend", "memory", "--tls-cert", str(certificate), "--tls-key", str(key)]
    with TestServer(options=options) as server:
        assert server.url.startswith("https://")
        with server.client(ca_file=str(certificate)) as client:
            assert client.put("t", "x").code == "created"
            worker = Worker(client)
            worker.handle("t")(lambda _: None)
            assert worker.run(drain=True).done == 1
        with pytest.raises(Unreachable, match="certificate"):
            server.client(retry_for="0s").stats()
        plain = server.url.replace("https", "http")
        with pytest.raises((BadAnswer, Unreachable)):
            Client(plain, retry_for="0s").stats()

        async def main() -> None:
            async with server.async_client(ca_file=str(certificate)) as client:
                assert (await client.stats()).ready == 0

        asyncio.run(main())


def test_the_next_url_is_asked_when_one_fails(server: TestServer, topic: str) -> None:
    hooks = Notices()
    client = Client([f"http://127.0.0.1:{free_port()}", server.url], hooks=hooks)
    assert client.put(topic, "x").code == "created"
    assert client.put(topic, "y").code == "created"
    # The server that answered is asked first from then on.
    assert len(hooks.retries) == 1
    assert hooks.retries[0].delay == 0
    worker = Worker(client, hooks=hooks)
    worker.handle(topic)(lambda _: None)
    assert worker.run(drain=True).done == 2


def test_a_put_whose_answer_is_lost_is_one_job(client: Client, relay: Relay, topic: str) -> None:
    relayed = Client(relay.url)
    relay.lose_once("/jobs")
    put = relayed.put(topic, "x")
    assert (put.code, put.duplicate, put.repeated) == ("created", False, True)
    assert client.topic(topic).ready == 1
    relay.lose_once("/jobs")
    again = relayed.put(topic, "y", key="mine")
    # With a key of its own it cannot know whose job that is.
    assert (again.code, again.repeated) == ("duplicate", True)
    relay.lose_once("/jobs")
    many = relayed.put_many(topic, [str(number) for number in range(20)])
    assert {result.code for result in many} == {"created"}
    assert client.topic(topic).ready == 22
    posts = [line for line in relay.seen if "/jobs" in line]
    assert len(posts) == 6


def test_a_job_that_is_done_before_its_put_is_repeated_is_not_put_again(
    client: Client, relay: Relay, topic: str
) -> None:
    def fault(line: str) -> str:
        if "/jobs" in line and len(relay.seen) == 1:
            return "lose"
        [job] = client.reserve(topic, wait="5s")
        client.ack(job)
        return "pass"

    relay.fault = fault
    put = Client(relay.url).put(topic, "x")
    assert put.repeated
    assert client.reserve(topic) == []


def test_a_put_that_may_not_be_repeated_is_unconfirmed(
    client: Client, relay: Relay, topic: str
) -> None:
    for options in ({"key": "k", "on_conflict": "replace"}, {"key": "r", "on_conflict": "reject"}):
        relay.lose_once("/jobs")
        with pytest.raises(Unconfirmed, match="may or may not have happened"):
            Client(relay.url).put(topic, "x", delay="1h", **options)  # type: ignore[arg-type]
        assert client.get(topic, options["key"]).state == "delayed"
    relay.lose_once("/jobs")
    with pytest.raises(Unconfirmed):
        Client(relay.url, make_keys=False).put(topic, "x")
    relay.lose_once("/jobs")
    with pytest.raises(Unconfirmed):
        Client(relay.url).put_many(topic, [Put("x"), Put("y", key="l", on_conflict="latest")])


def test_a_cancel_whose_answer_is_lost_does_not_claim_that_there_was_no_job(
    client: Client, relay: Relay, topic: str
) -> None:
    client.put(topic, key="k", delay="1h")
    relayed = Client(relay.url)
    relay.lose_once("DELETE")
    with pytest.raises(Unconfirmed, match="look at what is there"):
        relayed.cancel(topic, "k")
    with pytest.raises(NotFound):
        relayed.cancel(topic, "k")


def test_asyncio_repeats_likewise(client: Client, relay: Relay, topic: str) -> None:
    async def main() -> None:
        from dormouse import AsyncClient

        async with AsyncClient(relay.url) as relayed:
            relay.lose_once("/jobs")
            puts = await asyncio.gather(*(relayed.put(topic, number) for number in range(30)))
            assert {put.code for put in puts} == {"created"}
            relay.lose_once("/kick")
            with pytest.raises(Unconfirmed):
                await relayed.kick(topic, 1)

    asyncio.run(main())
    assert client.topic(topic).ready == 30


def answer_once(relay: Relay, what: str, status: int, value: Any, head: bytes = b"") -> None:
    """Let the relay answer the next such request by itself."""
    body = json.dumps(value).encode()
    sent = b"HTTP/1.1 %d X\r\ncontent-length: %d\r\n%b\r\n%b" % (status, len(body), head, body)
    left = [sent]
    relay.fault = lambda line: left.pop() if left and what in line else "pass"


def test_a_busy_server_is_asked_again(client: Client, relay: Relay, topic: str) -> None:
    busy = {"code": "busy", "detail": "too much", "retryable": True}
    hooks = Notices()
    relayed = Client(relay.url, hooks=hooks)
    answer_once(relay, "/jobs", 503, busy, b"retry-after: 1\r\n")
    # It did nothing, so also what may not be repeated is sent again, when the server wants it.
    assert relayed.put(topic, "x", key="k", on_conflict="replace").code == "created"
    assert hooks.retries[0].delay == 1
    answer_once(relay, "/jobs", 200, {"results": [busy, {"id": "1", "code": "created"}, busy]})
    results = relayed.put_many(topic, ["a", "b", "c"])
    assert [result.code for result in results] == ["created"] * 3
    assert sorted(job.text() for job in client.list(topic, "ready")) == ["a", "c", "x"]
    assert len(hooks.retries) == 2
    page = b"<html>"
    left = [b"HTTP/1.1 502 X\r\ncontent-length: %d\r\n\r\n%b" % (len(page), page)]
    relay.fault = lambda _: left.pop() if left else "pass"
    relayed.stats()
    assert "proxy" in str(hooks.retries[-1].error)


def test_a_worker_asks_a_busy_server_again(client: Client, relay: Relay, topic: str) -> None:
    busy = {"code": "busy", "detail": "too much", "retryable": True}
    for what, status, answer in [
        ("/v1/reserve", 503, busy),
        ("/v1/ack", 503, busy),
        ("/v1/ack", 200, {"results": [busy]}),
    ]:
        client.put(topic, "x")
        answer_once(relay, what, status, answer)
        worker = Worker(relay.url)
        worker.handle(topic)(lambda _: None)
        assert worker.run(drain=True).done == 1
    answer_once(relay, "/v1/ack", 403, {"code": "forbidden", "detail": "no right to ack"})
    client.put(topic, "x")
    worker = Worker(relay.url)
    worker.handle(topic)(lambda _: None)
    # What cannot be mended ends the worker, with the reason.
    with pytest.raises(Forbidden, match="no right to ack"):
        worker.run()


def test_a_server_that_stands_still_is_given_up(relay: Relay) -> None:
    def fault(_: str) -> str:
        threading.Event().wait(0.6)
        return "break"

    relay.fault = fault
    with pytest.raises(Unreachable, match=r"did not answer in 0\.2 s"):
        Client(relay.url, timeout="200ms", retry_for="500ms").stats()


def test_a_closed_client_says_so(server: TestServer) -> None:
    client = server.client()
    client.stats()
    client.close()
    with pytest.raises(Closed):
        client.stats()


def test_a_restart_between_two_calls_is_not_noticed(tmp_path: pathlib.Path) -> None:
    with TestServer(options=["--data", str(tmp_path)]) as server:
        client = server.client(retry_for="0s")
        # Neither may be repeated, so a connection that the server has closed must not be used.
        client.acquire_lock("a", "me")
        server.stop()
        server.start()
        assert client.acquire_lock("a", "me").depth == 2

        async def main() -> None:
            async with server.async_client(retry_for="0s") as client:
                await client.acquire_lock("a", "me")
                await asyncio.to_thread(server.stop)
                await asyncio.to_thread(server.start)
                assert (await client.acquire_lock("a", "me")).depth == 4

        asyncio.run(main())


def test_a_client_outlives_its_event_loop(server: TestServer, topic: str) -> None:
    client = server.async_client()

    async def cut_off() -> None:
        asyncio.ensure_future(client.put(topic, "x"))  # noqa: RUF006 - it is left behind
        await asyncio.sleep(0)

    asyncio.run(cut_off())
    for _ in range(2):
        assert asyncio.run(client.put(topic, "x")).code == "created"
