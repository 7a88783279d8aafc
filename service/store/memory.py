"""A store inside one process: the last resort where no file can be written, and a fast one for tests."""

import asyncio
import time
from collections.abc import Callable

from msgspec import UNSET, UnsetType

from service.store.base import CACHE_BYTES, REVISIONS_KEPT, Backend, HeadMoved, RevisionConflict, checked_name


class MemoryStore:
    """Nothing is shared between processes and nothing outlives this one."""

    backend: Backend = "memory"

    def __init__(
        self,
        *,
        revisions_kept: int = REVISIONS_KEPT,
        cache_bytes: int = CACHE_BYTES,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``clock`` gives seconds for the expiry of cache entries."""
        self._revisions_kept = revisions_kept
        self._cache_bytes = cache_bytes
        self._clock = clock
        self._revisions: dict[str, dict[str, bytes]] = {}
        self._heads: dict[str, str] = {}
        self._cache: dict[str, tuple[float, bytes]] = {}
        self._published: dict[str, asyncio.Event] = {}

    async def put_revision(self, kind: str, revision: str, payload: bytes) -> None:
        """Keep a revision without making it the head."""
        self._keep(kind, revision, payload, head=self._heads.get(kind))

    async def publish(
        self, kind: str, revision: str, payload: bytes, *, expected_head: str | UnsetType | None = UNSET
    ) -> None:
        """Keep a revision and make it the head."""
        head = self._heads.get(kind)
        if expected_head is not UNSET and head not in (expected_head, revision):
            raise HeadMoved(head)
        self._keep(kind, revision, payload, head=revision)
        self._published.pop(kind, asyncio.Event()).set()

    def _keep(self, kind: str, revision: str, payload: bytes, *, head: str | None) -> None:
        held = self._revisions.setdefault(checked_name(kind), {})
        if held.get(checked_name(revision), payload) != payload:
            raise RevisionConflict(revision)
        held.pop(revision, None)
        held[revision] = payload
        if head is not None:
            self._heads[kind] = head
        for old in list(held)[: -self._revisions_kept]:
            if old != head:
                del held[old]

    async def head(self, kind: str) -> str | None:
        """Name of the published revision."""
        return self._heads.get(kind)

    async def get_revision(self, kind: str, revision: str) -> bytes | None:
        """Bytes of a revision that is still held."""
        return self._revisions.get(kind, {}).get(revision)

    async def revisions(self, kind: str) -> tuple[str, ...]:
        """Revisions held, the latest put first."""
        return tuple(reversed(self._revisions.get(kind, {})))

    async def cache_get(self, key: str) -> bytes | None:
        """Bytes of an entry that has not expired."""
        expires_at, payload = self._cache.get(key, (0.0, b""))
        return payload if expires_at > self._clock() else None

    async def cache_put(self, key: str, payload: bytes, ttl_s: float) -> None:
        """Keep an entry; expired ones go, then those that expire first until the rest fits."""
        now = self._clock()
        self._cache[key] = (now + ttl_s, payload)
        latest_first = sorted(self._cache.items(), key=lambda entry: -entry[1][0])
        self._cache.clear()
        total_bytes = 0
        for name, (expires_at, kept) in latest_first:
            total_bytes += len(kept)
            if expires_at > now and total_bytes <= self._cache_bytes:
                self._cache[name] = (expires_at, kept)

    async def wait_hint(self, kind: str, timeout_s: float) -> None:
        """Wake at the next publication of this process."""
        published = self._published.setdefault(kind, asyncio.Event())
        try:
            await asyncio.wait_for(published.wait(), timeout_s)
        except TimeoutError:
            return

    async def aclose(self) -> None:
        """Nothing to give back."""
