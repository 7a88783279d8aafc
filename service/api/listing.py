"""Lists in pages: ``{"items", "total", "next_cursor", "provenance"}``.

A cursor holds the catalog revision, the offset and a digest of the filters. The next page is therefore cut from the
same snapshot as the first (410 once it is gone), and a cursor taken to another list or other filters is refused.
"""

import base64
import binascii
from collections.abc import Sequence
from hashlib import blake2b
from typing import Annotated, Generic, TypeVar

import msgspec
from msgspec import Meta

from service.api.call import Call, Provenance, provenance
from service.api.fault import Fault
from service.api.problems import Refusal
from service.api.revisions import Snapshot
from service.domain.message import Message

T = TypeVar("T")
S = TypeVar("S", bound=Snapshot)

_PAGING_FIELDS = frozenset({"limit", "cursor", "catalog_revision"})


class ListQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The parameters of every list; a list with filters declares them in a subclass."""

    limit: Annotated[int, Meta(ge=1, le=500, description="Entries of one page.")] = 50
    cursor: Annotated[str, Meta(max_length=500, description="`next_cursor` of the page before.")] | None = None
    catalog_revision: (
        Annotated[str, Meta(max_length=64, description="Answer from this catalog revision; 410 once it is gone.")]
        | None
    ) = None


class Page(msgspec.Struct, Generic[T], frozen=True):
    """One page of a list."""

    items: list[T]
    total: int
    """Entries of the whole list under these filters."""
    next_cursor: str | None
    """Cursor of the next page; null on the last."""
    provenance: Provenance


class _Cursor(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    revision: str
    filters: str
    offset: Annotated[int, Meta(ge=1)]


def _filters_of(query: ListQuery, path: str) -> str:
    filters = {name: value for name, value in msgspec.to_builtins(query).items() if name not in _PAGING_FIELDS}
    return blake2b(msgspec.json.encode([path, filters], order="deterministic"), digest_size=6).hexdigest()


def _read(cursor: str) -> _Cursor:
    try:
        padded = cursor.encode("ascii") + b"=" * (-len(cursor) % 4)
        return msgspec.json.decode(base64.b64decode(padded, altchars=b"-_", validate=True), type=_Cursor)
    except (UnicodeEncodeError, binascii.Error, msgspec.DecodeError, RecursionError) as error:
        raise _refused() from error


def _refused() -> Refusal:
    return Refusal([Fault("invalid_value", "?cursor", Message("fault_cursor"))])


def pinned_revision(query: object) -> str | None:
    """The revision that a query asks for by ``catalog_revision`` or by its cursor.

    Raises:
        Refusal: the cursor is not ours, or both are given and differ (422).

    """
    revision: str | None = getattr(query, "catalog_revision", None)
    if not isinstance(query, ListQuery) or query.cursor is None:
        return revision
    held = _read(query.cursor).revision
    if revision not in {None, held}:
        message = Message("fault_cursor_revision", {"cursor_revision": held[:64], "revision": str(revision)})
        raise Refusal([Fault("impossible_combination", "?cursor", message)])
    return held


def page(items: Sequence[T], query: ListQuery, call: Call[S]) -> Page[T]:
    """The page of ``items`` (the whole filtered list, in a fixed order) that ``query`` asks for.

    Raises:
        Refusal: the cursor comes from another list, other filters, or points past the end (422).

    """
    filters = _filters_of(query, call.path)
    offset = 0
    if query.cursor is not None:
        cursor = _read(query.cursor)
        offset = cursor.offset
        if cursor.filters != filters or offset >= len(items):
            raise _refused()
    end = offset + query.limit
    next_cursor = None
    if end < len(items):
        raw = msgspec.json.encode(_Cursor(call.snapshot.catalog_revision, filters, end))
        next_cursor = base64.urlsafe_b64encode(raw).decode("ascii").rstrip("=")
    return Page(list(items[offset:end]), len(items), next_cursor, provenance(call.snapshot, call.today))
