"""Servers and helpers for the tests. They need the program `dormouse`."""

from __future__ import annotations

import itertools
import os
import pathlib
import time
from collections.abc import Iterator
from typing import Callable

import pytest

from dormouse import Client
from dormouse.testing import TestServer

REPOSITORY = pathlib.Path(__file__).resolve().parents[3]
_numbers = itertools.count(1)


def pytest_configure() -> None:
    """Find the program once: DORMOUSE_BIN, or what the repository has built."""
    if os.environ.get("DORMOUSE_BIN"):
        return
    for build in ("debug", "release"):
        binary = REPOSITORY / "target" / build / "dormouse"
        if binary.exists():
            os.environ["DORMOUSE_BIN"] = str(binary)
            return
    pytest.exit(
        "no program `dormouse` in target/debug or target/release: run "
        "`cargo build -p dormouse-cli`, or name it in DORMOUSE_BIN",
        returncode=2,
    )


def until(condition: Callable[[], bool], what: str, seconds: float = 15.0) -> None:
    """Wait for a condition."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"not within {seconds} s: {what}"
        time.sleep(0.01)


@pytest.fixture(scope="session")
def server() -> Iterator[TestServer]:
    """A server in memory whose time is real."""
    with TestServer(options=["--backend", "memory"]) as server:
        yield server


@pytest.fixture(scope="session")
def clock() -> Iterator[TestServer]:
    """A server whose clock stands still."""
    with TestServer() as server:
        yield server


@pytest.fixture
def client(server: TestServer) -> Iterator[Client]:
    """A client of the server with real time."""
    with server.client() as client:
        yield client


@pytest.fixture
def topic() -> str:
    """A topic that no other test has."""
    return f"t{next(_numbers)}"
