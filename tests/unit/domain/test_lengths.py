"""Token-length distributions: means, percentiles and the cuts."""

import math

import numpy as np
import pytest

from service.domain.errors import ImpossibleCombination
from service.domain.lengths import Lengths, TokenLengths, lengths, mean_context_tokens
from service.domain.strata import STRATUM_WEIGHTS


def test_the_strata_cover_everything() -> None:
    assert sum(STRATUM_WEIGHTS) == pytest.approx(1.0, abs=1e-15)


def test_a_number_means_that_every_request_has_it() -> None:
    known = lengths(200)
    assert known == Lengths(200.0, 40_000.0, 200.0, 200.0, 200.0, 200.0, (200.0,) * 16)


def test_the_default_spread_is_a_coefficient_of_variation_of_one() -> None:
    """With cv 1, sigma² is ln 2 and, uncut, p95 is mean x exp(1.645 sigma - sigma² / 2) = 2.78 x mean."""
    known = lengths(TokenLengths(mean=1000.0))
    assert known.p95 == pytest.approx(2780, rel=0.01)
    assert known.p50 == pytest.approx(707, rel=0.01)
    assert math.sqrt(known.second_moment / known.mean**2 - 1.0) == pytest.approx(1.0, abs=0.05)


def test_the_99_9th_percentile_is_the_default_cut() -> None:
    known = lengths(TokenLengths(mean=1000.0))
    sigma = math.sqrt(math.log(2.0))
    assert known.max == pytest.approx(known.p50 * math.exp(3.0902 * sigma), rel=1e-4)


def test_mean_p95_and_max_are_met_together() -> None:
    known = lengths(TokenLengths(mean=211.0, p95=451.0, max=1000.0))
    assert known.p95 == pytest.approx(451.0)
    assert known.max == 1000.0
    assert np.dot(STRATUM_WEIGHTS, known.points) == pytest.approx(211.0)


def test_moments_and_percentiles_are_those_of_the_cut_log_normal() -> None:
    """Checked against a sample: log-normal through p50 and p95 of the answer, cut at max."""
    known = lengths(TokenLengths(mean=1155.0, p95=4083.0, max=14_050.0))
    sigma = math.log(known.p95 / known.p50) / 1.6448536269514722
    normal = np.random.default_rng(7).standard_normal(1_000_000)
    sample = np.clip(known.p50 * np.exp(sigma * normal), 1.0, 14_050.0)
    assert sample.mean() == pytest.approx(known.mean, rel=0.01)
    assert (sample**2).mean() == pytest.approx(known.second_moment, rel=0.02)
    assert np.quantile(sample, 0.99) == pytest.approx(known.p99, rel=0.02)


def test_two_spreads_of_one_mean_have_two_percentiles() -> None:
    narrow = lengths(TokenLengths(mean=200.0, p95=250.0))
    wide = lengths(TokenLengths(mean=200.0, p95=600.0))
    assert np.dot(STRATUM_WEIGHTS, narrow.points) == pytest.approx(np.dot(STRATUM_WEIGHTS, wide.points))
    assert narrow.p95 < wide.p95
    assert narrow.p50 > wide.p50
    assert narrow.second_moment < wide.second_moment


@pytest.mark.parametrize(
    ("count", "code"),
    [
        (TokenLengths(mean=500.0, max=400.0), "lengths_mean_above_max"),
        (TokenLengths(mean=100.0, p95=900.0, max=400.0), "lengths_p95_above_max"),
        (TokenLengths(mean=500.0, p95=400.0), "lengths_p95_below_mean"),
        (TokenLengths(mean=10.0, p95=4000.0), "lengths_p95_too_far_above_mean"),
    ],
)
def test_what_no_log_normal_can_be_is_refused_with_its_place(count: TokenLengths, code: str) -> None:
    with pytest.raises(ImpossibleCombination) as caught:
        lengths(count, "/traffic/output_tokens")
    assert caught.value.message.code == code
    assert caught.value.pointer == "/traffic/output_tokens"


@pytest.mark.parametrize(
    "count", [TokenLengths(mean=1.0), TokenLengths(mean=9.0, max=9.0), TokenLengths(mean=9.0, p95=9.0)]
)
def test_a_spread_that_is_forced_to_nothing_is_a_constant(count: TokenLengths) -> None:
    assert lengths(count) == lengths(count.mean)


def test_mean_context_counts_half_of_a_constant_output() -> None:
    assert mean_context_tokens(lengths(3000), lengths(200)) == 3100.0


def test_mean_context_grows_with_the_spread_of_the_output() -> None:
    assert mean_context_tokens(lengths(3000), lengths(TokenLengths(mean=200.0))) > 3150.0
