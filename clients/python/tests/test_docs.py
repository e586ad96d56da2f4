"""The blocks of docs/clients/python.md as they are printed, and that `_sync` is up to date."""

from __future__ import annotations

import asyncio
import os
import pathlib
import re
import signal
import subprocess
import sys
from typing import Any

import pytest

from dormouse.testing import TestServer

from .conftest import REPOSITORY, until

HERE = pathlib.Path(__file__).resolve().parents[1]
BLOCKS: list[str] = re.findall(
    r"^```python\n(.*?)^```",
    (REPOSITORY / "docs/clients/python.md").read_text("utf-8"),
    re.M | re.S,
)
URL = "http://127.0.0.1:7788"

SHOP = """
import pathlib
def knows(order): return order != "unknown"
def is_closed(): return False
def cancel(order):
    with open(pathlib.Path(__file__).parent / "cancelled", "a") as file: file.write(order + "\\n")
"""


def block(part: str) -> str:
    """Give the block with this text."""
    [found] = [text for text in BLOCKS if part in text]
    return found


def run(part: str, server: TestServer, names: dict[str, Any] | None = None) -> dict[str, Any]:
    """Run a block against a server; give its names."""
    names = {} if names is None else names
    code = block(part).replace(f'("{URL}', f'("{server.url}')
    exec(compile(code, f"block with {part}", "exec"), names)
    return names


def recipe(server: TestServer) -> dict[str, Any]:
    return run("def pay(", server)


def test_every_block_is_run_here() -> None:
    parts = [
        "import shop", "AsyncClient", "Done()", "def pay(", "Backoff.list", "error.code",
        "opentelemetry", "client.schedule", "TestServer()",
    ]  # fmt: skip
    assert [next(part for part in parts if part in text) for text in BLOCKS] == parts


def test_the_consumer_is_short_and_works_and_drains(tmp_path: pathlib.Path) -> None:
    text = block("import shop")
    assert len([line for line in text.splitlines() if line.strip()]) <= 15
    (tmp_path / "shop.py").write_text(SHOP)
    done = tmp_path / "cancelled"
    options = ["--data", str(tmp_path / "data")]
    with TestServer(options=options) as server, server.client() as client:
        consumer = tmp_path / "consumer.py"
        consumer.write_text(text.replace(URL, server.url))
        path = os.pathsep.join([str(HERE / "src"), str(tmp_path)])
        process = subprocess.Popen(
            [sys.executable, str(consumer)],
            env={**os.environ, "PYTHONPATH": path},
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            client.put("orders", {"order": "1"})
            until(lambda: done.exists() and "1\n" in done.read_text(), "the first order")
            # A killed server does not disturb it.
            server.stop(signal.SIGKILL)
            server.start()
            client.put_many("orders", [{"order": "2"}, {"order": "unknown"}, "no json"])
            until(lambda: "2\n" in done.read_text(), "the second order")
            until(lambda: client.topic("orders").dead == 2, "two are dead")
            errors = sorted(job.error or "" for job in client.list("orders", "dead"))
            assert errors[0].startswith("the body is not JSON")
            assert errors[1] == "there is no order unknown"
        finally:
            process.send_signal(signal.SIGTERM)
            _, log = process.communicate(timeout=40)
        assert process.returncode == 0, log
        assert "the poll for jobs failed" in log
        assert client.stats().leased == 0


def test_the_async_worker(server: TestServer) -> None:
    names = run("AsyncClient", server)
    assert asyncio.run(names["main"](server.url)) == 1
    with server.client() as client:
        assert client.topic("sent").ready == 1


def test_what_comes_next(server: TestServer) -> None:
    with server.client() as client:
        client.put("paid", {"id": "7"})
        assert run("Done()", server)["packing"].run(drain=True).done == 1
        assert client.topic("ship").ready == 1
        assert client.get("mails", "7").json() == {"how was": "7"}
        client.cancel("mails", "7")


def test_the_recipe_for_orders() -> None:
    with TestServer() as server:
        names = recipe(server)
        place, pay, client = names["place"], names["pay"], names["client"]
        place("in time")
        server.advance("29m")
        assert pay("in time") is True
        # Time is up, and no worker has it yet: the payment still wins.
        place("just in time")
        server.advance("30m")
        assert pay("just in time") is True
        assert client.reserve("orders") == []
        # A worker has it in its hands: the payment is too late.
        place("race")
        server.advance("30m")
        [job] = client.reserve("orders")
        assert pay("race") is False
        # It was cancelled.
        client.ack(job)
        assert pay("race") is False


def test_puts_errors_and_verbs(clock: TestServer, capsys: pytest.CaptureFixture[str]) -> None:
    names = recipe(clock)
    run("Backoff.list", clock, names)
    run("error.code", clock, names)
    run("client.schedule", clock, names)
    assert capsys.readouterr().out.startswith("50")
    assert callable(names["watch"])


def test_the_clock_of_tests(clock: TestServer) -> None:
    run("TestServer()", clock)["test_an_order_times_out"]()


def test_traces(server: TestServer, topic: str) -> None:
    pytest.importorskip("opentelemetry")
    from opentelemetry import propagate, trace

    from dormouse import Worker

    names = recipe(server)
    client = run("opentelemetry", server, names)["client"]
    parent = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}
    seen = []
    with trace.use_span(trace.get_current_span(propagate.extract(parent))):
        client.put(topic, "x")
    worker = Worker(client)

    @worker.handle(topic)
    def handler(job: Any) -> None:
        seen.append(trace.get_current_span().get_span_context().trace_id)
        if job.text() == "x":
            client.put(topic, "y")

    worker.run(drain=True)
    assert seen == [0x0AF7651916CD43DD8448EB211C80319C] * 2


def test_the_client_for_threads_is_up_to_date() -> None:
    made = subprocess.run(
        [sys.executable, str(HERE / "tools" / "make_sync.py"), "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode == 0, made.stdout
