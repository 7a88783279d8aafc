"""The number in progress: exact quantiles of its three distributions."""

import math

import numpy as np
import pytest

from service.domain.occupancy import number_quantiles, peakedness

LEVELS = (0.5, 0.95, 0.99)


def quantiles(probabilities: list[float]) -> tuple[int, ...]:
    cumulative = np.cumsum(probabilities)
    return tuple(int(np.searchsorted(cumulative, level)) for level in LEVELS)


@pytest.mark.parametrize("mean", [0.3, 1.0, 16.0, 250.0])
def test_poisson_is_exact(mean: float) -> None:
    masses = [math.exp(k * math.log(mean) - mean - math.lgamma(k + 1)) for k in range(600)]
    assert number_quantiles(mean, 1.0, LEVELS) == quantiles(masses)


@pytest.mark.parametrize(("mean", "ratio"), [(16.0, 4.0), (1.0, 100.0), (80.0, 1.5)])
def test_bursts_make_it_negative_binomial(mean: float, ratio: float) -> None:
    r = mean / (ratio - 1.0)
    constant = -math.lgamma(r) - r * math.log(ratio)
    masses = [
        math.exp(math.lgamma(k + r) - math.lgamma(k + 1) + constant + k * math.log(1.0 - 1.0 / ratio))
        for k in range(3000)
    ]
    assert number_quantiles(mean, ratio, LEVELS) == quantiles(masses)


def test_paced_arrivals_make_it_binomial() -> None:
    masses = [math.comb(32, k) / 2**32 for k in range(33)]
    assert number_quantiles(16.0, 0.5, LEVELS) == quantiles(masses)


def test_clockwork_arrivals_hold_it_still() -> None:
    assert number_quantiles(16.0, 0.0, LEVELS) == (16, 16, 16)
    assert number_quantiles(16.5, 0.0, LEVELS) == (17, 17, 17)


def test_no_load_is_nobody() -> None:
    for ratio in (0.0, 0.5, 1.0, 50.0):
        assert number_quantiles(0.0, ratio, LEVELS) == (0, 0, 0)


def test_wide_distributions_continue_where_exact_sums_end() -> None:
    """sigma 1,100 is summed, sigma 1,140 is approximated: the distance to the mean grows by the same share."""
    exact, approximate = number_quantiles(1.21e6, 1.0, LEVELS), number_quantiles(1.30e6, 1.0, LEVELS)
    for low, high in zip(exact[1:], approximate[1:], strict=True):
        assert (high - 1.30e6) / math.sqrt(1.30e6) == pytest.approx((low - 1.21e6) / math.sqrt(1.21e6), rel=1e-3)


def test_peakedness_of_equal_durations_is_that_of_the_arrivals() -> None:
    assert peakedness(4.0) == 4.0
    assert peakedness(1.0) == 1.0
    assert peakedness(0.0) == 0.0
