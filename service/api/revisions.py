"""The snapshots that a worker holds: the current one, and those before it that a request may still pin."""

from collections import OrderedDict
from typing import Generic, Protocol, TypeVar

from service.api.problems import refusal
from service.domain.message import Message


class Snapshot(Protocol):
    """What the HTTP layer needs to know of a catalog snapshot; handlers use the whole of it."""

    @property
    def catalog_revision(self) -> str:
        """Hash of the catalogs' content."""

    @property
    def profile_revision(self) -> str:
        """Hash of the calibration profiles' content."""


S = TypeVar("S", bound=Snapshot)

SNAPSHOTS_HELD = 8
"""A snapshot is a few MB at most; eight daily refreshes let a client page through a list for a week."""


class Revisions(Generic[S]):
    """Holds snapshots by revision; requests only read, the refresh task publishes."""

    def __init__(self, held: int = SNAPSHOTS_HELD) -> None:
        """Start without any snapshot: the service is starting."""
        self._held = held
        self._by_revision: OrderedDict[str, S] = OrderedDict()
        self._current: S | None = None

    @property
    def current(self) -> S | None:
        """The newest snapshot, or None while the service starts."""
        return self._current

    def publish(self, snapshot: S) -> None:
        """Make ``snapshot`` the current one; the oldest beyond the number held is let go."""
        self._by_revision[snapshot.catalog_revision] = snapshot
        self._by_revision.move_to_end(snapshot.catalog_revision)
        self._current = snapshot
        while len(self._by_revision) > self._held:
            self._by_revision.popitem(last=False)

    def at(self, revision: str | None) -> S:
        """The snapshot of a revision, or the current one for None.

        Raises:
            Refusal: none is there yet (503), or the revision is no longer held (410).

        """
        if self._current is None:
            raise refusal(Message("fault_starting"), "unavailable", {"Retry-After": "1"})
        if revision is None:
            return self._current
        if (snapshot := self._by_revision.get(revision)) is None:
            params = {"revision": revision[:64], "current": self._current.catalog_revision}
            raise refusal(Message("fault_revision_gone", params), "revision_gone")
        return snapshot
