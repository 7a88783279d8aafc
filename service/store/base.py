"""What every store keeps: revisions of named snapshots with one head each, and cache entries that expire.

StoreError
├── StoreUnavailable     the store did not answer; what was read last still holds
│   └── WriteRefused     the store answers reads but takes no writes (read-only, full, out of memory)
├── RevisionConflict     a revision is immutable: its name already stands for other bytes
└── HeadMoved            somebody published since the caller read the head
"""

import re
from typing import Literal, Protocol

from msgspec import UNSET, UnsetType

Backend = Literal["memory", "sqlite", "redis"]

SCHEMA_VERSION = 1
"""Part of every key and table name, so that two versions of the service can share one store."""

REVISIONS_KEPT = 32
"""Revisions of a kind that stay readable by name; older ones are dropped, the head never is."""

CACHE_BYTES = 64 * 1024**2
"""Most bytes of cache entries on one host; those that expire first go first."""

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")


class StoreError(Exception):
    """Anything that a store says no with."""


class StoreUnavailable(StoreError):
    """The store did not answer. The text names the fault's class, never an address or a credential."""


class WriteRefused(StoreUnavailable):
    """The store is there but takes no writes."""


class RevisionConflict(StoreError):
    """The revision already holds other bytes."""


class HeadMoved(StoreError):
    """The head is not the one that the caller expected."""


class Store(Protocol):
    """Shared state of the workers. Values are bytes; a kind and a revision are short lower-case names.

    Revisions are immutable and named by the content they hold. Every method may raise ``StoreUnavailable``;
    a write that raised may still have happened (its answer was lost), and repeating it is harmless.
    """

    @property
    def backend(self) -> Backend:
        """Which store this is."""
        ...

    async def put_revision(self, kind: str, revision: str, payload: bytes) -> None:
        """Keep a revision without making it the head. Raises ``RevisionConflict``."""
        ...

    async def publish(
        self, kind: str, revision: str, payload: bytes, *, expected_head: str | UnsetType | None = UNSET
    ) -> None:
        """Keep a revision and make it the head, whole or not at all.

        With ``expected_head`` (None: no head yet) the head moves only from there, else ``HeadMoved``: the way to
        change a snapshot without losing what somebody else changed. A revision that is the head already is fine.
        """
        ...

    async def head(self, kind: str) -> str | None:
        """Name of the published revision, or None where nothing was ever published."""
        ...

    async def get_revision(self, kind: str, revision: str) -> bytes | None:
        """Bytes of a revision, or None where it is not (or no longer) held."""
        ...

    async def revisions(self, kind: str) -> tuple[str, ...]:
        """Revisions held, the latest put first."""
        ...

    async def cache_get(self, key: str) -> bytes | None:
        """Bytes of a cache entry that has not expired, else None."""
        ...

    async def cache_put(self, key: str, payload: bytes, ttl_s: float) -> None:
        """Keep a cache entry for at most ``ttl_s`` seconds; it may be dropped earlier."""
        ...

    async def wait_hint(self, kind: str, timeout_s: float) -> None:
        """Return when somebody may have published, at the latest after ``timeout_s``. A hint can be lost."""
        ...

    async def aclose(self) -> None:
        """Give back connections; the store is not used afterwards."""
        ...


def checked_name(name: str) -> str:
    """Return the name of a kind or revision: lower-case, digits, ``._-``, at most 64. Any other: ``ValueError``."""
    if _NAME.fullmatch(name) is None:
        message = f"not a name for a kind or revision: {name!r}"
        raise ValueError(message)
    return name
