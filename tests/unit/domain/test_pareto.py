"""The front against its definition, checked by comparing every pair."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from service.domain.pareto import pareto_front


def dominates(one: list[float], other: list[float]) -> bool:
    return all(a <= b for a, b in zip(one, other, strict=True)) and one != other


@given(arrays(np.float64, st.tuples(st.integers(1, 30), st.just(3)), elements=st.sampled_from([0.0, 1.0, 2.0, 3.0])))
def test_the_front_is_what_nothing_beats(costs: np.ndarray) -> None:
    rows = costs.tolist()
    front = pareto_front(costs)
    values = [rows[position] for position in front]
    assert values == sorted(values)
    assert len({tuple(value) for value in values}) == len(values), "of equal rows one stays"
    undominated = {tuple(row) for row in rows if not any(dominates(other, row) for other in rows)}
    assert {tuple(value) for value in values} == undominated
    for position in front:
        assert rows.index(rows[position]) == position, "the first of equals"


def test_nothing_has_an_empty_front() -> None:
    assert pareto_front(np.empty((0, 3))) == []
