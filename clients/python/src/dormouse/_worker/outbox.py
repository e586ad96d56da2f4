"""Tells the server how jobs ended, until it has heard.

Acks that wait go together in one request; one with puts goes alone. A verdict whose answer was lost
is told again: the token makes that harmless, because a lease ends once.
"""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any, Callable

from .._call import AnswerLost, Call
from ..errors import (
    Conflict,
    DormouseError,
    Forbidden,
    Full,
    Invalid,
    LeaseLost,
    NotFound,
    TooLarge,
)
from ..hooks import log
from .line import Line, first_of
from .running import Verdict

TOKENS_MAX = 1000
#: Why puts that an ack carries cannot be made. The handler asked for them, so its job has failed.
CHAIN_REFUSED = (Conflict, Forbidden, Full, Invalid, NotFound, TooLarge)

#: Called with a verdict and the server's code for it, or `unheard`.
Told = Callable[[Verdict, str], None]


class Outbox:
    """Verdicts that the server has not heard yet."""

    def __init__(self, line: Line, told: Told) -> None:
        self._line = line
        self._told = told
        self._waiting: list[Verdict] = []
        self._sending = 0
        self._wake = asyncio.Event()
        self._empty = asyncio.Event()
        self._empty.set()

    def __len__(self) -> int:
        return len(self._waiting) + self._sending

    def add(self, verdict: Verdict) -> None:
        """Tell this soon."""
        self._waiting.append(verdict)
        self._empty.clear()
        self._wake.set()

    async def until_empty(self, seconds: float) -> int:
        """Wait until all is heard, at most so long; give the number of what is not."""
        if len(self) > 0:
            await first_of(self._empty, seconds=seconds)
        return len(self)

    async def run(self) -> None:
        """Tell verdicts as they come."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._waiting:
                taken, self._waiting = self._waiting, []
                self._sending = len(taken)
                delay = 0.0
                for group in group_verdicts(taken):
                    delay = max(delay, await self._tell(group, delay))
                    self._sending -= len(group)
                if delay:
                    await asyncio.sleep(delay)
            self._empty.set()

    async def _tell(self, group: list[Verdict], delay: float) -> float:
        """Tell verdicts of one kind; after a failure keep them, and give the time to wait."""
        group = self._drop_stale(group)
        if not group or delay:
            self._waiting += group
            return delay
        first = group[0]
        if first.chain is not None:
            return await self._tell_chain(first, first.chain)
        call = Call(
            "POST",
            f"/v1/{first.verb}",
            {"tokens": [verdict.job.token for verdict in group], **first.fields},
        )
        try:
            answer = await self._line.ask(call)
        except Invalid as error:
            self._simplify(group, error)
            return 0.0
        except (AnswerLost, DormouseError) as error:
            return self._tell_again(group, call, error)
        results: Any = answer["results"]
        for verdict, result in zip(group, results):
            if result.get("retryable"):
                self._waiting.append(verdict)
                delay = 0.1
            else:
                self._told(verdict, str(result["code"]))
        return delay

    async def _tell_chain(self, verdict: Verdict, chain: bytes) -> float:
        """Tell an ack with puts, of which the server does all or nothing."""
        call = Call("POST", "/v1/ack", chain)
        try:
            answer = await self._line.ask(call)
        except LeaseLost as error:
            self._told(verdict, error.code)
        except CHAIN_REFUSED as error:
            log.error("job %s: its ack and puts are refused: %s", verdict.job.id, error)
            verdict.verb, verdict.chain = "nack", None
            verdict.fields = {"error": f"the ack and its puts are refused: {error}"[:1000]}
            self._waiting.append(verdict)
        except (AnswerLost, DormouseError) as error:
            return self._tell_again([verdict], call, error)
        else:
            self._told(verdict, str(answer["code"]))
        return 0.0

    def _tell_again(self, group: list[Verdict], call: Call, error: Exception) -> float:
        """Keep what was not heard; give the time to wait."""
        self._waiting += group
        if isinstance(error, AnswerLost):
            for verdict in group:
                verdict.is_repeat = True
        return self._line.trouble(str(call), error)

    def _simplify(self, group: list[Verdict], error: Invalid) -> None:
        """Tell without the handler's options what the server refuses with them."""
        log.error("the server refuses %s with %s: %s", group[0].verb, group[0].fields, error)
        for verdict in group:
            if verdict.fields.keys() - {"error"}:
                verdict.fields = {"error": f"{verdict.fields.get('error', '')} ({error})"[:1000]}
                verdict.verb = "kill" if verdict.verb == "kill" else "nack"
                self._waiting.append(verdict)
            else:
                self._told(verdict, "unheard")

    def _drop_stale(self, group: list[Verdict]) -> list[Verdict]:
        now = time.monotonic()
        stale = [verdict for verdict in group if verdict.give_up_at < now]
        for verdict in stale:
            log.error(
                "job %s: the server has not heard its %s, and its lease is long over; given up",
                verdict.job.id, verdict.verb,
            )  # fmt: skip
            self._told(verdict, "unheard")
        return [verdict for verdict in group if verdict.give_up_at >= now] if stale else group


def group_verdicts(verdicts: list[Verdict]) -> list[list[Verdict]]:
    """Put verdicts together that one request can tell."""
    groups: dict[str, list[Verdict]] = {}
    full: list[list[Verdict]] = []
    for verdict in verdicts:
        if verdict.chain is not None:
            full.append([verdict])
            continue
        kind = verdict.verb
        if verdict.fields:
            kind += json.dumps(verdict.fields, sort_keys=True)
        group = groups.setdefault(kind, [])
        group.append(verdict)
        if len(group) == TOKENS_MAX:
            full.append(groups.pop(kind))
    return full + list(groups.values())
