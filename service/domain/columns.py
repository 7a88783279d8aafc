"""Records whose numbers are columns over candidates: take rows of all of them, or one candidate's floats."""

from collections.abc import Sequence
from typing import TypeVar, cast

import msgspec
import numpy as np
from numpy.typing import NDArray

R = TypeVar("R")


def take(record: R, rows: NDArray[np.intp]) -> R:
    """The record with every array reduced to ``rows``; floats, flags and texts hold for all candidates and stay."""
    return cast("R", _mapped(record, rows))


def at(record: R, row: int) -> R:
    """The record of one candidate: every array replaced by its float at ``row``."""
    return cast("R", _mapped(record, row))


def _mapped(value: object, rows: NDArray[np.intp] | int) -> object:
    if isinstance(value, np.ndarray):
        return value[rows].item() if isinstance(rows, int) else value[rows]
    if isinstance(value, msgspec.Struct):
        kind = type(value)
        return kind(**{name: _mapped(getattr(value, name), rows) for name in kind.__struct_fields__})
    if isinstance(value, dict):
        return {key: _mapped(inner, rows) for key, inner in value.items()}
    return value


def joined(records: Sequence[R]) -> R:
    """The columns of several records of one type behind each other."""
    kind = type(records[0])
    names: tuple[str, ...] = kind.__struct_fields__  # type: ignore[attr-defined]
    return kind(**{name: np.concatenate([getattr(record, name) for record in records]) for name in names})


def stacked(records: Sequence[R]) -> R:
    """One record with a column over ``records`` for every number in which they differ; what they share stays as it is."""
    kind = type(records[0])
    names: tuple[str, ...] = kind.__struct_fields__  # type: ignore[attr-defined]
    return kind(**{name: _column([getattr(record, name) for record in records]) for name in names})


def _column(values: Sequence[object]) -> object:
    first = values[0]
    if isinstance(first, dict):
        return {key: _column([cast("dict[object, object]", value)[key] for value in values]) for key in first}
    if all(value == first for value in values):
        return first
    return np.array(values, dtype=np.float64)
