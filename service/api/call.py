"""What a handler is told besides body and query: the snapshot it answers from, the language, the day."""

from collections.abc import Awaitable, Callable
from datetime import date
from typing import Any, Generic, TypeVar

import msgspec

from service import __version__
from service.api.revisions import Revisions, Snapshot
from service.hub import HubFailure, HubModel

S = TypeVar("S")

LookUp = Callable[[str], Awaitable[HubModel | HubFailure]]
"""Asks the hub about a model id."""


class Provenance(msgspec.Struct, frozen=True):
    """What an answer rests on: with the same request and language these four give the same bytes."""

    catalog_revision: str
    """Content hash of the catalogs; pin it with ``?catalog_revision=``."""
    profile_revision: str
    """Content hash of the calibration profiles."""
    service_version: str
    evaluated_on: date
    """The day that ages and staleness are counted to: all that a clock decides."""


def provenance(snapshot: Snapshot, evaluated_on: date) -> Provenance:
    """The provenance of an answer from ``snapshot``."""
    return Provenance(snapshot.catalog_revision, snapshot.profile_revision, __version__, evaluated_on)


class Call(msgspec.Struct, Generic[S], frozen=True):
    """One request as a handler sees it. ``Call[None]``: the operation needs no catalogs and works while they load."""

    snapshot: S
    """The current snapshot, or the one that the request pins."""
    language: str
    """Language of the human-readable strings; the encoder renders each ``Message`` in it."""
    today: date
    """The day (UTC) for requests that give no ``evaluated_on``."""
    path: str
    """The path asked for, below any mount point."""
    hub: HubModel | HubFailure | None = None
    """What the hub told about the body's model, where no catalog has it and look-ups are on."""


class Runtime(msgspec.Struct, frozen=True):
    """What the requests of one application share."""

    revisions: Revisions[Any]
    today: Callable[[], date]
    look_ups: list[LookUp] = []
    """The hub's, where it is on; the only thing that a request may wait for."""
