"""Parts that every answer shares: intervals, assumptions, provenance."""

from typing import Literal

import msgspec

from service.domain.message import Message

Basis = Literal["measured", "calibrated", "analytic"]


class Interval(msgspec.Struct, frozen=True, kw_only=True):
    """Range that holds the true value with the stated confidence."""

    low: float
    high: float
    confidence: float = 0.9
    basis: Basis
    """measured: from runs of this very combination; calibrated: from runs of its class; analytic: from formulas alone."""


class Assumed(msgspec.Struct, frozen=True):
    """A default that the caller did not give; ``why`` is rendered per language at the edge."""

    field: str
    """JSON pointer of the request field."""
    value: str | int | float | bool | None
    why: Message


def significant(value: float, digits: int = 6) -> float:
    """``value`` to so many significant digits: bounds and curves claim no more."""
    return float(f"{value:.{digits}g}")
