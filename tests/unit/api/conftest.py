"""A small application on the HTTP layer's own machinery: a POST, a list and an item, over a catalog of letters."""

import logging
from collections.abc import Iterator
from datetime import date
from typing import Annotated, Literal

import msgspec
import pytest
from litestar.testing import TestClient
from msgspec import Meta

from service.api.application import http_application
from service.api.call import Call, Provenance, Runtime, provenance
from service.api.health import Check
from service.api.listing import ListQuery, Page, page
from service.api.operation import operation
from service.api.revisions import Revisions
from service.domain.errors import ImpossibleCombination, UnknownId
from service.domain.message import Message

LETTER, USERS, ID = "/letter", "/users", "/id"
TODAY = date(2026, 12, 1)


class Letters(msgspec.Struct, frozen=True):
    """A catalog snapshot."""

    catalog_revision: str
    names: tuple[str, ...]
    profile_revision: str = "profiles-1"


class Users(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How many people."""

    registered: Annotated[int, Meta(ge=1, le=10**9)]
    active_share: Annotated[float, Meta(ge=0, le=1)] = 0.05


class Order(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is asked for."""

    letter: Annotated[str, Meta(min_length=1, max_length=20)]
    input_tokens: Annotated[int, Meta(ge=1, le=10_000_000)]
    rate: Annotated[float, Meta(gt=0)] = 1.0
    """Requests per second."""
    users: Users | None = None
    length: int | Users = 1
    kind: Literal["interactive", "batch"] = "interactive"
    weights: list[Annotated[float, Meta(ge=0)]] = []
    parts: list[Users] = []
    labels: dict[str, int] = {}
    evaluated_on: date | None = None


class OrderQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Parameters of an order."""

    explain: bool = False
    catalog_revision: str | None = None


class Ordered(msgspec.Struct, frozen=True):
    """What comes back."""

    letter: str
    input_tokens: int
    rate: float
    explained: bool
    note: Message
    provenance: Provenance


class Letter(msgspec.Struct, frozen=True):
    """One letter."""

    id: str


class LetterQuery(ListQuery, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Filters of the list."""

    starts: tuple[str, ...] = ()


@operation("POST", "/v1/orders", tag="sizing")
def place_order(call: Call[Letters], body: Order, query: OrderQuery) -> Ordered:
    """Order a letter."""
    if body.letter not in call.snapshot.names:
        raise UnknownId(LETTER, Message("fault_problem_unknown"), ("a", "b"))
    if body.kind == "batch" and body.users is not None:
        raise ImpossibleCombination(USERS, Message("fault_problem_unknown"))
    if body.letter == "boom":
        msg = "a secret of the service"
        raise RuntimeError(msg)
    note = Message("fault_at_least", {"limit": 1234})
    day = body.evaluated_on or call.today
    return Ordered(body.letter, body.input_tokens, body.rate, query.explain, note, provenance(call.snapshot, day))


@operation("GET", "/v1/letters", tag="catalogs")
def list_letters(call: Call[Letters], query: LetterQuery) -> Page[Letter]:
    """All letters."""
    names = [name for name in call.snapshot.names if not query.starts or name.startswith(query.starts)]
    return page([Letter(name) for name in names], query, call)


@operation("GET", "/v1/letters/{id:path}", tag="catalogs")
def read_letter(call: Call[Letters], id: str) -> Letter:  # noqa: A002 - the name in the path
    """One letter."""
    if id not in call.snapshot.names:
        raise UnknownId(ID, Message("fault_problem_unknown"), ("a",))
    return Letter(id)


@operation("POST", "/v1/small", tag="sizing", max_body_bytes=64)
def place_small(call: Call[None], body: Letter) -> Letter:
    """Take a small body."""
    del call
    return body


@pytest.fixture
def revisions() -> Revisions[Letters]:
    held: Revisions[Letters] = Revisions(held=2)
    held.publish(Letters("rev-1", ("a", "b", "boom", "c/1", "dd", "de")))
    return held


@pytest.fixture
def client(revisions: Revisions[Letters]) -> Iterator[TestClient]:
    logging.getLogger("httpx").setLevel(logging.WARNING)
    handlers = [place_order, list_letters, read_letter, place_small]

    def checks() -> dict[str, Check]:
        return {"catalog": Check("ready" if revisions.current else "starting")}

    app = http_application(handlers, Runtime(revisions, lambda: TODAY), checks=checks)
    with TestClient(app, raise_server_exceptions=False) as made:
        yield made
