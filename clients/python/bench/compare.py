"""Measures the client beside redis-py with a hand-written delay queue, on this machine.

    python bench/compare.py [--jobs 20000] [--rounds 3]

It starts `dormouse serve` (DORMOUSE_BIN, every answer on disk) and `redis-server`, once with
`appendfsync always`, which promises the same, and once with `everysec`, which loses a second. The
contenders alternate, and the median of the rounds counts. A job of redis-py is a member of a sorted
set and a field of a hash, put and taken by scripts, as those who write it by hand do.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import statistics
import subprocess
import tempfile
import time
import uuid
from collections.abc import Awaitable
from typing import Any, Callable

import redis.asyncio

from dormouse import LeasedJob, Worker
from dormouse.testing import TestServer

TASKS = 50
BATCH = 500

PUT = """redis.call('HSET', KEYS[2], ARGV[1], ARGV[2])
return redis.call('ZADD', KEYS[1], ARGV[3], ARGV[1])"""
# Takes jobs that are due and moves their score to the end of their lease.
TAKE = """local ids = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', ARGV[1], 'LIMIT', 0, ARGV[3])
local jobs = {}
for _, id in ipairs(ids) do
  redis.call('ZADD', KEYS[1], ARGV[2], id)
  jobs[#jobs + 1] = {id, redis.call('HGET', KEYS[2], id)}
end
return jobs"""
ACK = """redis.call('ZREM', KEYS[1], unpack(ARGV))
return redis.call('HDEL', KEYS[2], unpack(ARGV))"""

Measure = Callable[[int], Awaitable[None]]


async def spread(count: int, one: Callable[[int], Awaitable[Any]]) -> None:
    """Do something so many times, by 50 tasks."""
    numbers = iter(range(count))

    async def task() -> None:
        for number in numbers:
            await one(number)

    await asyncio.gather(*(task() for _ in range(TASKS)))


class Dormouse:
    """The client of this package."""

    def __init__(self, url: str) -> None:
        from dormouse import AsyncClient

        self._client = AsyncClient(url)

    async def put(self, count: int) -> None:
        await spread(count, lambda number: self._client.put("bench", {"n": number}))

    async def put_many(self, count: int) -> None:
        for start in range(0, count, BATCH):
            await self._client.put_many("bench", [{"n": start + n} for n in range(BATCH)])

    async def work(self, count: int) -> None:
        worker = Worker(self._client, concurrency=TASKS)

        @worker.handle("bench")
        async def handler(job: LeasedJob) -> None:
            job.json()

        tally = await worker.run_async(drain=True, signals=False)
        assert tally.done == count, tally

    async def close(self) -> None:
        await self._client.close()


class RedisPy:
    """A loop as people write it: each of 50 tasks takes a job, works and acks it."""

    def __init__(self, port: int, take: int = 1) -> None:
        self._redis = redis.asyncio.Redis(port=port)
        self._keys = ["bench:due", "bench:bodies"]
        self._put, self._take, self._ack = map(self._redis.register_script, (PUT, TAKE, ACK))
        self._take_max = take

    async def put(self, count: int) -> None:
        async def one(number: int) -> None:
            args: list[Any] = [uuid.uuid4().hex, json.dumps({"n": number}), time.time()]
            await self._put(keys=self._keys, args=args)

        await spread(count, one)

    async def put_many(self, count: int) -> None:
        for start in range(0, count, BATCH):
            async with self._redis.pipeline(transaction=False) as pipe:
                for number in range(start, start + BATCH):
                    args: list[Any] = [uuid.uuid4().hex, json.dumps({"n": number}), time.time()]
                    await self._put(keys=self._keys, args=args, client=pipe)
                await pipe.execute()

    async def work(self, count: int) -> None:
        done = 0

        async def task() -> None:
            nonlocal done
            while True:
                now = time.time()
                args = [now, now + 60, self._take_max]
                jobs = await self._take(keys=self._keys, args=args)
                if not jobs:
                    return
                for _, body in jobs:
                    json.loads(body)
                await self._ack(keys=self._keys, args=[name for name, _ in jobs])
                done += len(jobs)

        await asyncio.gather(*(task() for _ in range(TASKS)))
        assert done == count, done

    async def close(self) -> None:
        await self._redis.aclose()


def processor_seconds() -> float:
    """Give the processor time of this process."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


async def measure(contenders: dict[str, Any], jobs: int, rounds: int) -> None:
    """Measure all, in turns, and print the medians."""
    rates: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for _ in range(rounds):
        for name, contender in contenders.items():
            for step in ("put", "work", "put_many", "work"):
                wall, used = time.perf_counter(), processor_seconds()
                await getattr(contender, step)(jobs)
                wall, used = time.perf_counter() - wall, processor_seconds() - used
                rates.setdefault((step, name), []).append((jobs / wall, used / jobs * 1e6))
    print(f"{'':10} {'':24} {'jobs/s':>9} {'us of this process':>20}")
    for step in ("put", "put_many", "work"):
        for name in contenders:
            seen = rates[step, name]
            rate = statistics.median(rate for rate, _ in seen)
            used = statistics.median(used for _, used in seen)
            print(f"{step:10} {name:24} {rate:9.0f} {used:20.0f}")


def start_redis(port: int, policy: str) -> subprocess.Popen[bytes]:
    """Start a server that keeps its data in a file."""
    command = ["redis-server", "--port", str(port), "--dir", tempfile.mkdtemp(), "--save", ""]
    command += ["--appendonly", "yes", "--appendfsync", policy]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    until = time.monotonic() + 10
    while subprocess.run(
        ["redis-cli", "-p", str(port), "ping"], capture_output=True, check=False
    ).returncode:
        assert time.monotonic() < until, "redis-server does not start"
        time.sleep(0.05)
    return process


async def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description="measure beside redis-py")
    parser.add_argument("--jobs", type=int, default=20000, help="a multiple of 500")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    servers = [start_redis(26401, "always"), start_redis(26402, "everysec")]
    contenders: dict[str, Any] = {}
    try:
        with TestServer(options=["--data", tempfile.mkdtemp()]) as server:
            contenders = {
                "dormouse": Dormouse(server.url),
                "redis-py, always": RedisPy(26401),
                "redis-py, everysec": RedisPy(26402),
                "redis-py, everysec, by 50": RedisPy(26402, TASKS),
            }
            await measure(contenders, arguments.jobs, arguments.rounds)
            for contender in contenders.values():
                await contender.close()
    finally:
        for process in servers:
            process.terminate()
            process.wait()


if __name__ == "__main__":
    asyncio.run(main())
