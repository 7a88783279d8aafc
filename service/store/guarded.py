"""A store behind a breaker: a dead store costs its callers nothing, and what cannot change is still answered."""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import TypeVar

from msgspec import UNSET, UnsetType

from service.domain.message import Message
from service.store.base import Backend, HeadMoved, RevisionConflict, Store, StoreUnavailable, WriteRefused
from service.store.breaker import Breaker

T = TypeVar("T")

FAILURES_TO_OPEN = 2
COOLDOWN_S = 0.3
"""With the follower's poll and a frozen server's time-out this keeps recovery below two seconds."""
CALL_LIMIT_S = 3.0
"""Longest that any call may take: above SQLite's longest write wait, far above Redis's time-outs."""
_REVISIONS_REMEMBERED = 4


class GuardedStore:
    """The same interface as the store inside; ``StoreUnavailable`` comes at once while the breaker is open.

    Revisions are immutable, so those read last are remembered and answered whatever the store's state.
    """

    def __init__(self, store: Store, *, breaker: Breaker | None = None, fallback_why: Message | None = None) -> None:
        """``fallback_why``: why this is not the store that was asked for, for the health report."""
        self._store = store
        self._breaker = breaker or Breaker(failures_to_open=FAILURES_TO_OPEN, cooldown_s=COOLDOWN_S)
        self._remembered: OrderedDict[tuple[str, str], bytes] = OrderedDict()
        self.fallback_why = fallback_why

    @property
    def backend(self) -> Backend:
        """Which store is inside."""
        return self._store.backend

    async def _guarded(self, call: Callable[[], Awaitable[T]]) -> T:
        if not self._breaker.admits():
            reason = "breaker open"
            raise StoreUnavailable(reason)
        try:
            async with asyncio.timeout(CALL_LIMIT_S):
                answer = await call()
        except (WriteRefused, RevisionConflict, HeadMoved):
            self._breaker.succeeded()  # it answers
            raise
        except StoreUnavailable:
            self._breaker.failed()
            raise
        except TimeoutError as fault:
            self._breaker.failed()
            reason = "no answer in time"
            raise StoreUnavailable(reason) from fault
        self._breaker.succeeded()
        return answer

    async def put_revision(self, kind: str, revision: str, payload: bytes) -> None:
        """Keep a revision without making it the head."""
        await self._guarded(lambda: self._store.put_revision(kind, revision, payload))

    async def publish(
        self, kind: str, revision: str, payload: bytes, *, expected_head: str | UnsetType | None = UNSET
    ) -> None:
        """Keep a revision and make it the head."""
        await self._guarded(lambda: self._store.publish(kind, revision, payload, expected_head=expected_head))

    async def head(self, kind: str) -> str | None:
        """Name of the published revision."""
        return await self._guarded(lambda: self._store.head(kind))

    async def get_revision(self, kind: str, revision: str) -> bytes | None:
        """Bytes of a revision, from memory where it was read before."""
        payload = self._remembered.get((kind, revision))
        if payload is None:
            payload = await self._guarded(lambda: self._store.get_revision(kind, revision))
            if payload is not None:
                self._remembered[kind, revision] = payload
                if len(self._remembered) > _REVISIONS_REMEMBERED:
                    self._remembered.popitem(last=False)
        return payload

    async def revisions(self, kind: str) -> tuple[str, ...]:
        """Revisions held, the latest put first."""
        return await self._guarded(lambda: self._store.revisions(kind))

    async def cache_get(self, key: str) -> bytes | None:
        """Bytes of an entry that has not expired."""
        return await self._guarded(lambda: self._store.cache_get(key))

    async def cache_put(self, key: str, payload: bytes, ttl_s: float) -> None:
        """Keep an entry for a while."""
        await self._guarded(lambda: self._store.cache_put(key, payload, ttl_s))

    async def wait_hint(self, kind: str, timeout_s: float) -> None:
        """Wake at a hint; how long that takes says nothing about the store, so the breaker does not watch it."""
        await self._store.wait_hint(kind, timeout_s)

    async def aclose(self) -> None:
        """Close the store inside."""
        await self._store.aclose()
