"""Law of the fault search: it finds a fault exactly where msgspec refuses, and mending all of them is enough."""

from datetime import date
from typing import Annotated, Any, Literal

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Meta

from service.api.fault_search import MOST_FAULTS, faults


class Circle(msgspec.Struct, tag="circle", forbid_unknown_fields=True):
    radius: Annotated[float, Meta(gt=0, lt=100)]


class Square(msgspec.Struct, tag="square", forbid_unknown_fields=True):
    side: Annotated[int, Meta(ge=1, le=9)]


class Range(msgspec.Struct, forbid_unknown_fields=True):
    low: int
    high: int = 10

    def __post_init__(self) -> None:
        if self.low > self.high:
            msg = "low is above high"
            raise ValueError(msg)


class Everything(msgspec.Struct, forbid_unknown_fields=True):
    a: Annotated[str, Meta(min_length=1, max_length=3, pattern="^[a-z]*$")]
    b: int | Range | None = None
    c: Circle | Square | str = "x"
    d: Annotated[list[Annotated[int, Meta(ge=0)]], Meta(max_length=2)] = []
    e: dict[str, Range] = {}
    f: Literal["one", "two", 3] = "one"
    g: bool | float = False
    h: date | None = None
    i: Any = None
    j: tuple[Range, ...] = ()


LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-3, 12)
    | st.sampled_from([0.5, -1.5, 99.5, 100.5, 10**400])
    | st.sampled_from(["", "a", "abc", "abcd", "A", "one", "two", "circle", "2026-01-31", "2026-13-01"])
)
KEYS = st.sampled_from(["low", "high", "type", "radius", "side", "x", "a/b"])
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3), max_leaves=8
)
BODIES = st.dictionaries(st.sampled_from(list("abcdefghijz")), VALUES, max_size=6)


def refused(value: object) -> bool:
    try:
        msgspec.convert(value, Everything, strict=True)
    except msgspec.ValidationError:
        return True
    return False


def at(value: Any, pointer: str) -> bool:  # noqa: ANN401 - any JSON value
    """Whether the pointer names a place of the value, or a member that is missing from one."""
    *steps, last = [step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:]] or [None]
    for step in steps:
        value = value[int(step)] if isinstance(value, list) else value[step]
    return last is None or isinstance(value, (dict, list))


@settings(max_examples=400, deadline=None, derandomize=True)
@given(BODIES | VALUES)
def test_faults_are_found_exactly_where_msgspec_refuses(value: object) -> None:
    found = faults(Everything, value)
    assert bool(found) == refused(value)
    assert len(found) <= MOST_FAULTS
    for fault in found:
        assert at(value, fault.pointer), fault


@settings(max_examples=200, deadline=None, derandomize=True)
@given(BODIES)
def test_without_the_members_at_fault_nothing_is_at_fault(body: dict[str, Any]) -> None:
    wrong = {fault.pointer.split("/")[1] for fault in faults(Everything, body) if fault.pointer}
    mended = {name: value for name, value in body.items() if name not in wrong} | ({"a": "ok"} if "a" in wrong else {})
    assert not refused(mended)
