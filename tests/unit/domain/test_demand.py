"""Every way to state a load, in one normal form; contradictions are named with their place."""

import msgspec
import pytest

from service.domain.demand import (
    check_targets,
    demand,
    kind_of,
    mean_share_of_peak,
    monthly_requests,
    token_lengths,
    traffic_assumptions,
)
from service.domain.errors import ImpossibleCombination
from service.domain.lengths import TokenLengths
from service.domain.workload import Batch, Constant, Gamma, PercentileTargets, Targets, Traffic, Users
from service.text.rendering import render


def test_a_rate_is_itself() -> None:
    load = demand(Traffic(requests_per_second=2.0))
    assert (load.loop, load.requests_per_second, load.concurrency, load.arrival_cv2) == ("open", 2.0, None, 1.0)


def test_model_calls_and_burst_multiply_a_rate() -> None:
    load = demand(Traffic(requests_per_second=2.0, burst_factor=1.5), llm_calls_per_request=3.0)
    assert load.requests_per_second == 9.0


def test_registered_users_are_not_concurrent_requests() -> None:
    """1,000 registered, 5 % active, 20 requests an hour each: 0.28 requests per second."""
    users = Users(registered=1000.0, active_share_at_peak=0.05, requests_per_active_user_hour=20.0)
    rate = demand(Traffic(users=users)).requests_per_second
    assert rate == pytest.approx(1000 * 0.05 * 20 / 3600)


def test_active_users_can_be_given_directly() -> None:
    users = Users(active_at_peak=200.0, requests_per_active_user_hour=18.0)
    assert demand(Traffic(users=users)).requests_per_second == 1.0


def test_a_closed_loop_has_a_number_and_no_rate() -> None:
    load = demand(Traffic(concurrent_requests=64.0), llm_calls_per_request=3.0)
    assert (load.loop, load.requests_per_second, load.concurrency) == ("closed", None, 64.0)


def test_a_batch_must_meet_its_deadline() -> None:
    batch = Batch(requests=2_000_000.0, deadline_s=28_800.0, runs_per_month=30.0)
    assert demand(Traffic(batch=batch)).requests_per_second == pytest.approx(2_000_000 / 28_800)


def test_batches_that_overlap_must_be_worked_off_as_fast_as_they_come() -> None:
    batch = Batch(requests=1000.0, deadline_s=7200.0, runs_per_month=730.0)
    assert demand(Traffic(batch=batch)).requests_per_second == pytest.approx(1000 / 3600)


def test_the_arrival_process_decides_the_spread_of_gaps() -> None:
    assert demand(Traffic(requests_per_second=1.0, arrivals=Constant())).arrival_cv2 == 0.0
    assert demand(Traffic(requests_per_second=1.0, arrivals=Gamma(cv=2.0))).arrival_cv2 == 4.0


@pytest.mark.parametrize(
    ("traffic", "pointer", "code"),
    [
        (Traffic(), "/traffic", "traffic_demand_missing"),
        (Traffic(requests_per_second=1.0, concurrent_requests=2.0), "/traffic", "traffic_demand_twice"),
        (Traffic(users=Users(requests_per_active_user_hour=1.0)), "/traffic/users", "users_two_shapes"),
        (
            Traffic(users=Users(registered=9.0, active_at_peak=1.0, requests_per_active_user_hour=1.0)),
            "/traffic/users",
            "users_two_shapes",
        ),
        (
            Traffic(users=Users(registered=9.0, requests_per_active_user_hour=1.0)),
            "/traffic/users",
            "users_share_incomplete",
        ),
        (
            Traffic(requests_per_second=1.0, hourly_profile=(1.0,) * 30),
            "/traffic/hourly_profile",
            "traffic_profile_length",
        ),
    ],
)
def test_contradictions_are_named(traffic: Traffic, pointer: str, code: str) -> None:
    with pytest.raises(ImpossibleCombination) as caught:
        demand(traffic)
    assert (caught.value.pointer, caught.value.message.code) == (pointer, code)
    assert render(caught.value.message, "en") != code


def test_a_fault_points_into_the_body_it_came_from() -> None:
    with pytest.raises(ImpossibleCombination) as caught:
        token_lengths(Traffic(requests_per_second=1.0, input_tokens=5.0), "/workloads/0/traffic")
    assert caught.value.pointer == "/workloads/0/traffic/output_tokens"
    assert caught.value.message.code == "traffic_tokens_missing"


def test_a_target_needs_a_bound() -> None:
    check_targets(Targets(ttft_ms=PercentileTargets(p95=1000.0)))
    with pytest.raises(ImpossibleCombination, match="/targets/tpot_ms"):
        check_targets(Targets(tpot_ms=PercentileTargets()))


def test_a_month_is_peak_times_profile_times_hours() -> None:
    profile = (1.0,) * 12 + (0.5,) * 12
    traffic = Traffic(requests_per_second=2.0, hourly_profile=profile, burst_factor=3.0)
    assert mean_share_of_peak(traffic) == 0.75
    assert monthly_requests(traffic, 730.0) == pytest.approx(2 * 0.75 * 730 * 3600)


def test_a_month_of_batches_is_their_sum_and_of_a_closed_loop_unknown() -> None:
    batch = Traffic(batch=Batch(requests=500.0, deadline_s=60.0))
    assert monthly_requests(batch, 10.0) == 15_000.0
    assert monthly_requests(Traffic(concurrent_requests=4.0)) is None


def test_kind_follows_the_traffic_unless_given() -> None:
    batch = Traffic(batch=Batch(requests=500.0, deadline_s=60.0))
    assert kind_of(batch, None) == "batch"
    assert kind_of(Traffic(requests_per_second=1.0), None) == "interactive"
    assert kind_of(batch, "interactive") == "interactive"


def test_defaults_that_decide_numbers_are_listed() -> None:
    traffic = Traffic(requests_per_second=1.0, input_tokens=TokenLengths(mean=100.0), output_tokens=7.0)
    assumed = {entry.field: entry for entry in traffic_assumptions(traffic)}
    assert set(assumed) == {"/traffic/arrivals/process", "/traffic/input_tokens/p95", "/traffic/input_tokens/max"}
    for entry in assumed.values():
        assert render(entry.why, "en") != entry.why.code


@pytest.mark.parametrize(
    "arrivals",
    [
        {"process": "poisson", "cv": 1.0},
        {"process": "gamma", "cv": 0.5},
        {"process": "constant"},
        {"process": "poisson"},
    ],
)
def test_arrivals_are_read_as_the_contract_writes_them(arrivals: dict[str, object]) -> None:
    traffic = msgspec.convert({"requests_per_second": 1, "arrivals": arrivals}, Traffic)
    assert traffic.arrivals is not None


@pytest.mark.parametrize(
    "arrivals", [{"process": "poisson", "cv": 2.0}, {"process": "constant", "cv": 1.0}, {"cv": 1.0}]
)
def test_arrivals_that_contradict_themselves_are_not_read(arrivals: dict[str, object]) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"requests_per_second": 1, "arrivals": arrivals}, Traffic)
