"""A worker follows the head of a kind: requests read what was taken over last and never wait for the store."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Literal

from service.domain.message import Message
from service.store.base import HeadMoved, StoreError, StoreUnavailable
from service.store.guarded import GuardedStore
from service.store.health import StoreHealth

log = logging.getLogger(__name__)

OnChange = Callable[[str, bytes], Awaitable[None]]
"""Takes over a revision and its bytes; may refuse them by any exception, and the worker stays with what it has."""

POLL_S = 0.5
_SHORTEST_PAUSE_S = 0.02
"""Between two polls, however many hints come."""


class Follower:
    """Knows which revision a worker holds, and whether the store is well."""

    def __init__(
        self,
        store: GuardedStore,
        kind: str,
        on_change: OnChange,
        *,
        interval_s: float = POLL_S,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """``clock`` gives seconds since the epoch, for the health report."""
        self._store = store
        self._kind = kind
        self._on_change = on_change
        self._interval_s = interval_s
        self._clock = clock
        self._held: tuple[str, bytes] | None = None
        self._refused: str | None = None
        self._health = StoreHealth(
            status="degraded" if store.fallback_why else "ok",
            backend=store.backend,
            since_s=clock(),
            revision=None,
            why=store.fallback_why,
        )

    @property
    def health(self) -> StoreHealth:
        """State at the last poll."""
        return self._health

    async def poll(self) -> None:
        """Look at the head once and take it over where it is new. Never raises but on cancellation."""
        try:
            why = await self._take_over()
        except StoreUnavailable as fault:
            why = Message("store_unreachable", {"backend": self._store.backend, "reason": str(fault)})
        except StoreError as fault:
            why = Message("store_unreachable", {"backend": self._store.backend, "reason": type(fault).__name__})
        self._report(why or self._store.fallback_why)

    async def _take_over(self) -> Message | None:
        head = await self._store.head(self._kind)
        if head is None:
            return await self._restore()
        if self._held is not None and head == self._held[0]:
            return None
        refusal = Message("store_revision_refused", {"kind": self._kind, "revision": head})
        if head == self._refused:
            return refusal
        payload = await self._store.get_revision(self._kind, head)
        if payload is None:
            return Message("store_revision_missing", {"kind": self._kind, "revision": head})
        try:
            await self._on_change(head, payload)
        except Exception:  # bad bytes of somebody else must not end this worker's following
            log.exception("revision %s of %s refused", head, self._kind)
            self._refused = head
            return refusal
        self._held, self._refused = (head, payload), None
        return None

    async def _restore(self) -> Message | None:
        """Give a store that came back empty what this worker holds; the first of the workers wins."""
        if self._held is None:
            return None
        revision, payload = self._held
        try:
            await self._store.publish(self._kind, revision, payload, expected_head=None)
        except HeadMoved:
            return None  # the next poll takes that head over
        except StoreUnavailable:
            return Message("store_lost", {"backend": self._store.backend, "kind": self._kind, "revision": revision})
        log.warning("the %s store was empty; revision %s of %s put back", self._store.backend, revision, self._kind)
        return None

    def _report(self, why: Message | None) -> None:
        before = self._health
        status: Literal["ok", "degraded"] = "degraded" if why else "ok"
        if status != before.status:
            log.log(logging.WARNING if why else logging.INFO, "store %s: %s", status, why.code if why else "well again")
        self._health = StoreHealth(
            status=status,
            backend=self._store.backend,
            since_s=before.since_s if status == before.status else self._clock(),
            revision=self._held[0] if self._held else None,
            why=why,
        )

    async def run(self) -> None:
        """Poll until cancelled: every ``interval_s``, and at once after a hint."""
        while True:
            await asyncio.sleep(_SHORTEST_PAUSE_S)
            try:
                await self._store.wait_hint(self._kind, self._interval_s)
            except StoreUnavailable:
                await asyncio.sleep(self._interval_s)
            await self.poll()


@asynccontextmanager
async def following(
    store: GuardedStore, kind: str, on_change: OnChange, *, interval_s: float = POLL_S
) -> AsyncIterator[Follower]:
    """Follow a kind while the block runs: the head is taken over once before it starts, then in the background."""
    follower = Follower(store, kind, on_change, interval_s=interval_s)
    await follower.poll()
    task = asyncio.create_task(follower.run(), name=f"follow {kind}")
    try:
        yield follower
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
