"""Worked examples of the number in progress."""

import pytest

from service.domain.concurrency import ActiveRequests, concurrency_estimate
from service.domain.lengths import TokenLengths
from service.domain.workload import Batch, Constant, Gamma, Traffic, Users


def test_two_a_second_for_eight_seconds_are_sixteen_in_progress() -> None:
    estimate = concurrency_estimate(Traffic(requests_per_second=2.0), 8.0)
    assert estimate.active_requests == ActiveRequests(mean=16.0, p50=16, p95=23, p99=26)


def test_two_a_second_of_two_hundred_tokens_are_four_hundred_a_second() -> None:
    traffic = Traffic(requests_per_second=2.0, input_tokens=3000.0, output_tokens=200.0)
    rates = concurrency_estimate(traffic, 8.0).demand
    assert rates.requests_per_second == 2.0
    assert rates.output_tokens_per_second == 400.0
    assert rates.input_tokens_per_second == 6000.0


def test_token_rates_are_null_without_token_counts() -> None:
    rates = concurrency_estimate(Traffic(requests_per_second=2.0), 8.0).demand
    assert rates.output_tokens_per_second is None
    assert rates.input_tokens_per_second is None


def test_a_thousand_registered_users_are_not_a_thousand_concurrent_requests() -> None:
    users = Users(registered=1000.0, active_share_at_peak=0.05, requests_per_active_user_hour=20.0)
    active = concurrency_estimate(Traffic(users=users), 8.0).active_requests
    assert active.mean == pytest.approx(2.2222222)
    assert active.p99 < 10


def test_headroom_enlarges_everything_by_its_share() -> None:
    traffic = Traffic(requests_per_second=2.0, output_tokens=200.0)
    planned = concurrency_estimate(traffic, 8.0, headroom=0.5).with_headroom
    assert planned.active_requests == ActiveRequests(mean=24.0, p50=24, p95=35, p99=39)
    assert planned.demand.output_tokens_per_second == 600.0


def test_headroom_of_thirty_percent_is_assumed_and_said() -> None:
    estimate = concurrency_estimate(Traffic(requests_per_second=2.0), 8.0)
    assert estimate.with_headroom.active_requests.mean == pytest.approx(20.8)
    assert "/headroom" in [entry.field for entry in estimate.assumptions]
    given = concurrency_estimate(Traffic(requests_per_second=2.0), 8.0, headroom=0.0)
    assert "/headroom" not in [entry.field for entry in given.assumptions]


def test_headroom_does_not_round_up_on_the_last_bit() -> None:
    estimate = concurrency_estimate(Traffic(concurrent_requests=10.0), 8.0, headroom=0.1)
    assert estimate.with_headroom.active_requests.p95 == 11


def test_a_closed_loop_holds_its_number_and_completes_at_littles_rate() -> None:
    estimate = concurrency_estimate(Traffic(concurrent_requests=64.0), 8.0)
    assert estimate.active_requests == ActiveRequests(mean=64.0, p50=64, p95=64, p99=64)
    assert estimate.demand.requests_per_second == 8.0


def test_a_batch_is_fed_evenly() -> None:
    estimate = concurrency_estimate(Traffic(batch=Batch(requests=28_800.0, deadline_s=14_400.0)), 8.0)
    assert estimate.active_requests == ActiveRequests(mean=16.0, p50=16, p95=16, p99=16)


def test_bursts_spread_the_number_and_clockwork_holds_it() -> None:
    p99 = [
        concurrency_estimate(Traffic(requests_per_second=2.0, arrivals=arrivals), 8.0).active_requests.p99
        for arrivals in (Constant(), Gamma(cv=0.5), Gamma(cv=1.0), Gamma(cv=2.0))
    ]
    assert p99 == sorted(p99)
    assert len(set(p99)) == 4


def test_two_distributions_of_one_mean_demand_the_same_rate() -> None:
    narrow = Traffic(requests_per_second=2.0, output_tokens=TokenLengths(mean=200.0, p95=250.0))
    wide = Traffic(requests_per_second=2.0, output_tokens=TokenLengths(mean=200.0, p95=600.0))
    assert concurrency_estimate(narrow, 8.0).demand == concurrency_estimate(wide, 8.0).demand
