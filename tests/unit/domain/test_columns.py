"""Records of columns: rows taken, one candidate read, records joined and stacked."""

import msgspec
import numpy as np

from service.domain.columns import at, joined, stacked, take


class Inner(msgspec.Struct, frozen=True):
    size: object
    label: str = "x"


class Outer(msgspec.Struct, frozen=True):
    inner: Inner
    table: dict[str, object]
    shared: float = 2.0


COLUMNS = Outer(Inner(np.array([1.0, 2.0, 3.0])), {"a": np.array([4.0, 5.0, 6.0]), "b": 7.0})


def test_one_candidate_is_plain_numbers() -> None:
    one = at(COLUMNS, 1)
    assert one == Outer(Inner(2.0), {"a": 5.0, "b": 7.0})
    assert type(one.inner.size) is float


def test_rows_are_taken_of_every_column_and_what_is_shared_stays() -> None:
    some = take(COLUMNS, np.array([2, 0]))
    assert np.asarray(some.inner.size).tolist() == [3.0, 1.0]
    assert np.asarray(some.table["a"]).tolist() == [6.0, 4.0]
    assert (some.table["b"], some.shared, some.inner.label) == (7.0, 2.0, "x")


class Flat(msgspec.Struct, frozen=True):
    size: object
    table: dict[str, object]
    shared: float = 2.0
    label: str = "x"


def test_stacking_undoes_reading_one_by_one() -> None:
    rows = [Flat(size, {"a": size * 3.0, "b": 7.0}) for size in (1.0, 2.0, 3.0)]
    again = stacked(rows)
    assert [at(again, row) for row in range(3)] == rows
    assert (again.shared, again.label, again.table["b"]) == (2.0, "x", 7.0), "what all share is no column"


class Pair(msgspec.Struct, frozen=True):
    left: object
    right: object


def test_joining_puts_columns_behind_each_other() -> None:
    both = joined([Pair(np.array([1.0]), np.array([2.0])), Pair(np.array([3.0, 4.0]), np.array([5.0, 6.0]))])
    assert np.asarray(both.left).tolist() == [1.0, 3.0, 4.0]
    assert np.asarray(both.right).tolist() == [2.0, 5.0, 6.0]
