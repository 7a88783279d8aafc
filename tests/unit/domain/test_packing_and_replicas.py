"""Copies for a load, and whole instances for copies."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.packing import pack
from service.domain.replicas import replicas_for


@pytest.mark.parametrize(
    ("replicas", "each", "sold", "instances", "idle"),
    [
        (1, 1, 1, 1, 0),
        (3, 1, 8, 1, 5),
        (3, 4, 8, 2, 4),
        (4, 4, 8, 2, 0),
        (5, 2, 8, 2, 6),
        (2, 3, 8, 1, 2),
        (3, 3, 8, 2, 7),
        (9, 8, 8, 9, 0),
    ],
)
def test_replicas_are_never_split_over_instances(
    replicas: float, each: float, sold: float, instances: float, idle: float
) -> None:
    packed = pack(float(replicas), float(each), float(sold))
    assert packed.fits
    assert (packed.instances, packed.idle_gpus) == (instances, idle)


def test_a_replica_larger_than_the_instance_does_not_fit() -> None:
    packed = pack(np.array([2.0, 2.0]), np.array([8.0, 4.0]), np.array([4.0, 4.0]))
    assert np.asarray(packed.fits).tolist() == [False, True]
    assert np.isfinite(np.asarray(packed.instances)).all()


@given(st.integers(1, 1000), st.sampled_from([1, 2, 3, 4, 8, 16]), st.sampled_from([1, 2, 4, 8, 16]))
def test_no_fewer_instances_would_do(replicas: int, each: int, sold: int) -> None:
    packed = pack(float(replicas), float(each), float(sold))
    if not packed.fits:
        assert each > sold
        return
    held = sold // each
    assert packed.instances == math.ceil(replicas / held)
    assert 0 <= packed.idle_gpus == packed.instances * sold - replicas * each


@pytest.mark.parametrize(
    ("load", "most", "headroom", "spare", "expected"),
    [
        (2.0, 1.0, 0.0, 0.0, (2, 0, 0)),
        (2.0, 1.0, 0.3, 1.0, (2, 1, 1)),
        (2.0, 3.0, 0.3, 1.0, (1, 0, 1)),
        (2.0, 2.0, 0.3, 0.0, (1, 1, 0)),
        (1e-9, 5.0, 0.3, 1.0, (1, 0, 1)),
        (100.0, 7.0, 0.5, 2.0, (15, 7, 2)),
    ],
)
def test_replicas_by_purpose(
    load: float, most: float, headroom: float, spare: float, expected: tuple[int, int, int]
) -> None:
    count = replicas_for(load, most, headroom, spare)
    assert (count.for_load, count.headroom, count.spare) == expected
    assert count.serving == count.for_load + count.headroom
    assert count.total == count.serving + count.spare


@given(st.floats(1e-6, 1e6), st.floats(1e-3, 1e3), st.floats(0, 3))
def test_the_replicas_carry_the_load_and_its_growth(load: float, most: float, headroom: float) -> None:
    count = replicas_for(load, most, headroom, 0.0)
    assert count.for_load * most >= load * (1 - 1e-12)
    assert count.serving * most >= load * (1.0 + headroom) * (1 - 1e-12)
    assert count.headroom >= 0
    assert (count.for_load - 1) * most < load * (1.0 + 1e-9)
