"""Laws of lengths, queues and the number in progress."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from service.domain.errors import ImpossibleCombination
from service.domain.lengths import Lengths, TokenLengths, lengths
from service.domain.numeric import FloatArray
from service.domain.occupancy import number_quantiles
from service.domain.queueing import (
    in_progress,
    many_server_wait,
    rate_of,
    single_server_wait,
)
from service.domain.strata import STRATUM_WEIGHTS

LAW = settings(max_examples=100, deadline=None, derandomize=True)

positive = st.floats(1e-3, 1e6)


@st.composite
def distributions(draw: st.DrawFn) -> Lengths:
    """Any token-length distribution that a caller can state."""
    mean = draw(st.floats(1.0, 1e7))
    p95 = draw(st.none() | st.floats(1.0, 3.9).map(lambda ratio: min(mean * ratio, 1e7)))
    cut = draw(st.none() | st.floats(1.0, 50.0).map(lambda ratio: min((p95 or mean) * ratio, 1e7)))
    try:
        return lengths(TokenLengths(mean=mean, p95=p95, max=cut))
    except ImpossibleCombination:
        assume(condition=False)
        raise


@LAW
@given(distributions())
def test_the_cuts_leave_the_mean_as_given(known: Lengths) -> None:
    assert np.dot(STRATUM_WEIGHTS, known.points) == pytest.approx(known.mean, rel=1e-6)


@LAW
@given(distributions())
def test_percentiles_and_points_are_ordered_between_one_and_max(known: Lengths) -> None:
    tolerance = 1.0 + 1e-9
    assert 1.0 <= known.p50 <= known.p95 <= known.p99 <= known.max * tolerance
    assert all(a <= b * tolerance for a, b in pairwise(known.points))
    assert known.points[0] * tolerance >= 1.0
    assert known.points[-1] <= known.max * tolerance


@LAW
@given(distributions())
def test_the_mean_square_is_at_least_the_squared_mean(known: Lengths) -> None:
    assert known.second_moment * (1.0 + 1e-6) >= known.mean**2


@LAW
@given(positive, positive)
def test_littles_law_inverts(rate: float, duration: float) -> None:
    assert rate_of(in_progress(rate, duration), duration) == pytest.approx(rate)


@LAW
@given(st.lists(st.floats(0.0, 0.999), min_size=2, max_size=5), positive, st.floats(1.0, 20.0), st.floats(0.0, 20.0))
def test_waits_grow_with_the_rate(loads: list[float], service: float, spread: float, arrival_cv2: float) -> None:
    waits = [single_server_wait(load / service, service, spread * service**2, arrival_cv2) for load in sorted(loads)]
    queues = [many_server_wait(load * 8.0 / service, service, 8.0, arrival_cv2, spread) for load in sorted(loads)]
    for run in (waits, queues):
        means = [float(wait.mean_s) for wait in run]
        assert all(a <= b * (1.0 + 1e-9) for a, b in pairwise(means))
        assert all(0.0 <= wait.probability <= 1.0 for wait in run)


@LAW
@given(st.floats(0.01, 0.99), positive, st.floats(1.0, 20.0), st.floats(0.0, 20.0), st.floats(0.01, 100.0))
def test_waits_scale_with_the_unit_of_time(
    load: float, service: float, spread: float, arrival_cv2: float, unit: float
) -> None:
    wait = single_server_wait(load / service, service, spread * service**2, arrival_cv2)
    rescaled = single_server_wait(load / (service * unit), service * unit, spread * (service * unit) ** 2, arrival_cv2)
    assert rescaled.mean_s == pytest.approx(float(wait.mean_s) * unit, rel=1e-6, abs=1e-9)
    assert rescaled.probability == pytest.approx(wait.probability, rel=1e-6, abs=1e-9)


@LAW
@given(st.floats(0.01, 0.999), st.integers(1, 500))
def test_more_servers_at_one_utilization_wait_less(load: float, servers: int) -> None:
    few = many_server_wait(load * servers, 1.0, float(servers))
    more = many_server_wait(load * (servers + 1), 1.0, float(servers + 1))
    assert more.mean_s <= few.mean_s


@LAW
@given(st.floats(0.0, 1e7), st.floats(0.0, 200.0))
def test_numbers_in_progress_are_ordered_whole_and_near_the_mean(mean: float, peakedness: float) -> None:
    p01, p50, p95, p99 = number_quantiles(mean, peakedness, (0.01, 0.5, 0.95, 0.99))
    assert 0 <= p01 <= p50 <= p95 <= p99
    assert p01 <= mean + 1.0
    spread = math.sqrt(mean * peakedness)
    assert abs(p50 - mean) <= spread + 1.0
    assert p99 <= mean + 10.0 * spread + 1.0


@LAW
@given(st.lists(st.floats(0.0, 5000.0), min_size=2, max_size=5), st.floats(1.0, 50.0))
def test_numbers_in_progress_grow_with_the_mean(means: list[float], peakedness: float) -> None:
    found = [number_quantiles(mean, peakedness, (0.95,))[0] for mean in sorted(means)]
    assert found == sorted(found)


@LAW
@given(st.integers(0, 2**32 - 1))
def test_floats_and_arrays_agree_to_the_bit(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = 17

    def column(low: float, high: float) -> FloatArray:
        return np.asarray(rng.uniform(low, high, n))

    rate, service, spread, cv2, servers = column(0, 2), column(0.1, 1), column(1, 4), column(0, 4), column(1, 64)
    one = single_server_wait(rate, service, spread * service * service, cv2)
    many = many_server_wait(rate * servers, service, servers, cv2, spread)
    for i in range(n):
        values = [float(a[i]) for a in (rate, service, spread, cv2, servers)]
        r, s, v, c, k = values
        alone = single_server_wait(r, s, v * s * s, c)
        assert (alone.mean_s, alone.probability, alone.scale_s) == (
            one.mean_s[i],
            one.probability[i],
            one.scale_s[i],
        )
        assert alone.saturated == one.saturated[i]
        assert many_server_wait(r * k, s, k, c, v).mean_s == many.mean_s[i]
