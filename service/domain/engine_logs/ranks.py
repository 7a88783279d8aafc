"""One figure of many ranks: parts are judged by the fullest card, the pool by the emptiest."""

from service.domain.engine_logs.facts import Spread

TELLING_SHARE = 0.01
"""Ranks closer than this are equal but for rounding."""


def most(values: list[int]) -> int | None:
    """The largest."""
    return max(values, default=None)


def least(values: list[int]) -> int | None:
    """The smallest."""
    return min(values, default=None)


def spreads_of(**figures: list[int]) -> dict[str, Spread]:
    """Figures that differ between ranks by more than rounding."""
    return {
        name: Spread(min(values), max(values))
        for name, values in figures.items()
        if values and max(values) - min(values) > TELLING_SHARE * max(abs(max(values)), 1)
    }
