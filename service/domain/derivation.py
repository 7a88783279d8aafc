"""Where a number of an answer comes from: its formula with the values put in, step by step.

A formula is plain arithmetic over its inputs' names (``+ - * /``, ``ceil floor min max round``), so that anyone can do it
again; the laws of the tests do so for every step.
"""

from collections.abc import Mapping

import msgspec

from service.domain.message import Message
from service.domain.numeric import Number, as_float

_WHOLE_BELOW = 2.0**53
"""Floats above this no longer tell neighbouring whole numbers apart."""


class Derived(msgspec.Struct, frozen=True, kw_only=True):
    """One number of the answer and how it came about."""

    field: str
    """JSON pointer of the number in this answer."""
    formula: str
    """`name = expression` over the names of `inputs`; whole bytes and counts are cut after it."""
    inputs: dict[str, float | int | str]
    """Values of the formula's names, not rounded."""
    result: float | int
    """The very number of the answer."""
    unit: str
    source: str
    """What the formula rests on: the engine's code, a paper, a price list, or a module of this service."""


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """The answer in words."""

    summary: Message
    risks: tuple[Message, ...]
    """What could make it wrong, the gravest first."""
    not_considered: tuple[Message, ...]
    """What the model leaves out for this request."""


class Explained(msgspec.Struct, frozen=True, kw_only=True):
    """All that ``?explain=true`` adds to an answer."""

    derivation: tuple[Derived, ...]
    explanation: Explanation
    checklist: tuple[Message, ...]
    """What to check before buying or deploying."""


def derived(  # noqa: PLR0913 - the members of a step
    field: str, expression: str, inputs: Mapping[str, Number], result: float, unit: str, source: str
) -> Derived:
    """A step; the formula's left side is the last part of ``field`` that is a name."""
    parts = field.rsplit("/", 2)
    name = f"{parts[-2]}_{parts[-1]}" if parts[-1] in _LEVELS else parts[-1]
    return Derived(
        field=field,
        formula=f"{name} = {expression}",
        inputs={key: plain(as_float(value)) for key, value in inputs.items()},
        result=result,
        unit=unit,
        source=source,
    )


_LEVELS = frozenset({"mean", "p50", "p95", "p99"})
"""Members that say nothing without the name above them."""


def plain(value: float) -> float | int:
    """A whole number as one, anything else as it is."""
    return int(value) if value.is_integer() and abs(value) < _WHOLE_BELOW else value


def below(prefix: str, steps: tuple[Derived, ...]) -> tuple[Derived, ...]:
    """The steps of a part that stands at ``prefix`` of a larger answer."""
    return tuple(msgspec.structs.replace(step, field=prefix + step.field) for step in steps)
