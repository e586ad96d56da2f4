"""Verbs about locks."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from .._address import path
from .._call import Call, Repeat, with_query
from ..times import Span, seconds, span
from ..topics import Lock, LockPage
from ._core import Core


class LockVerbs(Core):
    """Named locks that expire, each grant with a fence that grows."""

    async def acquire_lock(
        self,
        name: str,
        owner: str,
        *,
        ttl: Span = "30s",
        wait: Span = "0s",
    ) -> Lock:
        """Take a lock, or wait for it; its owner may take it again, and frees it as often.

        Raises:
            Conflict: another has it.
            Unconfirmed: the answer was lost; if it was granted, it ends after its `ttl`.
        """
        fields = {"owner": owner, "ttl": span(ttl, "ttl"), "wait": span(wait, "wait")}
        call = Call(
            "POST", path("locks", name, "acquire"), fields, Repeat.NEVER, seconds(wait, "wait")
        )
        return Lock(await self._call(call))

    async def renew_lock(self, name: str, owner: str, *, ttl: Span | None = None) -> Lock:
        """Prolong a lock."""
        fields: dict[str, Any] = {"owner": owner}
        if ttl is not None:
            fields["ttl"] = span(ttl, "ttl")
        return Lock(await self._call(Call("POST", path("locks", name, "renew"), fields)))

    async def release_lock(self, name: str, owner: str) -> str:
        """Free a lock: `free`, or `held` while an outer acquire holds it."""
        call = Call("POST", path("locks", name, "release"), {"owner": owner}, Repeat.NEVER)
        return str((await self._call(call))["code"])

    async def break_lock(self, name: str, *, fence: str | None = None) -> None:
        """Free a lock whoever holds it; with `fence` only that grant of it."""
        target = with_query(path("locks", name), fence=fence)
        await self._call(Call("DELETE", target, repeat=Repeat.CHECKED))

    async def locks(self, *, prefix: str | None = None) -> AsyncIterator[Lock]:
        """Look at all locks, those first that expire first."""
        cursor: str | None = None
        while True:
            target = with_query("/v1/locks", prefix=prefix, cursor=cursor)
            page = LockPage(await self._call(Call("GET", target)))
            for lock in page.locks:
                yield lock
            cursor = page.cursor
            if cursor is None:
                return
