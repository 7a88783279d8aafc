"""Worked examples of cost, and what is said where something is not known."""

from typing import Any

import msgspec
import pytest

from service.domain.cost import CostProjection, CostProjectionRequest
from service.domain.cost_projection import check_price, cost_projection
from service.domain.errors import ImpossibleCombination
from service.domain.unit_cost import TokenWeights
from service.text.rendering import render

CHAT = {"output_tokens_per_hour": 360_000, "input_tokens_per_hour": 5_400_000, "requests_per_hour": 1800}


def project(price: float = 1.0, setup_fee: float = 0.0, **members: Any) -> CostProjection:  # noqa: ANN401 - JSON members
    request = msgspec.convert({"price_usd_per_hour": price, **members}, CostProjectionRequest)
    return cost_projection(request, price, setup_fee)


def test_a_dollar_an_hour_over_360_000_output_tokens() -> None:
    cost = project(throughput={"output_tokens_per_hour": 360_000})
    assert cost.usd_per_million_output_tokens == pytest.approx(2.7777777777)
    assert cost.monthly_usd.total == 730.0


def test_a_dollar_an_hour_over_36_000_output_tokens() -> None:
    cost = project(throughput={"output_tokens_per_hour": 36_000})
    assert cost.usd_per_million_output_tokens == pytest.approx(27.777777777)


def test_utilization_is_the_share_of_full_load_that_is_served() -> None:
    direct = project(throughput={"output_tokens_per_hour": 36_000})
    by_share = project(throughput={"output_tokens_per_hour": 360_000}, utilization=0.1)
    assert by_share.usd_per_million_output_tokens == pytest.approx(direct.usd_per_million_output_tokens)
    assert [row.utilization for row in by_share.at_utilization] == [0.1, 0.3, 0.5, 1.0]
    assert by_share.at_utilization[0].usd_per_million_output_tokens == by_share.usd_per_million_output_tokens
    assert by_share.at_utilization[3].usd_per_million_output_tokens == pytest.approx(2.7777777777)


def test_throughput_without_utilization_is_full_load_and_said() -> None:
    cost = project(throughput={"output_tokens_per_hour": 360_000})
    assert cost.utilization == 1.0
    assert cost.at_utilization[3].usd_per_million_output_tokens == cost.usd_per_million_output_tokens
    assert "/utilization" in [entry.field for entry in cost.assumptions]


def test_a_cheaper_but_less_used_gpu_costs_more_per_request() -> None:
    cheap = project(1.0, throughput=CHAT, utilization=0.08)
    dear = project(3.0, throughput={name: 2 * value for name, value in CHAT.items()}, utilization=0.6)
    assert cheap.monthly_usd.total < dear.monthly_usd.total
    assert cheap.usd_per_request is not None
    assert dear.usd_per_request is not None
    assert cheap.usd_per_request > dear.usd_per_request


def test_the_parts_of_a_month() -> None:
    cost = project(
        2.0,
        replicas=3,
        hours_per_month=100,
        idle_hours=10,
        starts_per_month=30,
        start_up_s=120,
        storage_gb=500,
        storage_usd_per_gb_month=0.1,
        egress_gb=1000,
        egress_usd_per_gb=0.01,
        backup_usd_per_month=7,
        platform_usd_per_month=20,
        engineering_usd_per_month=1000,
        failure_reserve_share=0.05,
    )
    month = cost.monthly_usd
    assert month.compute == pytest.approx(2 * 3 * 111)
    assert (month.storage, month.bandwidth, month.backup, month.platform) == (50.0, 10.0, 7.0, 20.0)
    assert month.engineering == 1000.0
    assert month.failure_reserve == pytest.approx(0.05 * month.compute)
    assert month.total == pytest.approx(666 + 50 + 10 + 7 + 20 + 1000 + 33.3)


def test_idle_hours_are_paid_but_serve_nothing() -> None:
    busy = project(hours_per_month=100, throughput=CHAT)
    idle = project(hours_per_month=100, idle_hours=50, throughput=CHAT)
    assert idle.usd_per_request == pytest.approx(1.5 * (busy.usd_per_request or 0.0))


def test_a_setup_fee_is_spread_over_the_horizon() -> None:
    cost = project(0.0, setup_fee=120.0, replicas=2)
    assert cost.monthly_usd.compute == 20.0
    assert "/horizon_months" in [entry.field for entry in cost.assumptions]
    assert project(0.0, setup_fee=120.0, replicas=2, horizon_months=24).monthly_usd.compute == 10.0


def test_without_throughput_no_unit_has_a_cost() -> None:
    cost = project()
    assert cost.usd_per_million_output_tokens is None
    assert cost.usd_per_million_tokens is None
    assert cost.usd_per_request is None
    assert cost.token_prices is None
    assert cost.utilization is None
    assert [row.usd_per_request for row in cost.at_utilization] == [None] * 4


def test_nothing_served_has_no_unit_cost() -> None:
    cost = project(throughput=CHAT, utilization=0.0)
    assert cost.usd_per_million_output_tokens is None
    assert cost.usd_per_request is None
    assert cost.token_prices is None


def test_token_prices_bring_in_the_total() -> None:
    cost = project(throughput={**CHAT, "prefix_cache_hit_rate": 0.25})
    prices = cost.token_prices
    assert prices is not None
    fresh, cached, output = 5.4 * 0.75 * 730, 5.4 * 0.25 * 730, 0.36 * 730
    revenue = (
        fresh * prices.usd_per_million_input_tokens
        + cached * prices.usd_per_million_cached_input_tokens
        + output * prices.usd_per_million_output_tokens
    )
    assert revenue == pytest.approx(cost.monthly_usd.total)
    assert prices.usd_per_million_output_tokens == pytest.approx(4 * prices.usd_per_million_input_tokens)
    assert cost.usd_per_million_input_tokens == prices.usd_per_million_input_tokens
    assert cost.usd_per_million_cached_input_tokens == prices.usd_per_million_cached_input_tokens
    assert cost.usd_per_million_tokens == pytest.approx(cost.monthly_usd.total / ((5.4 + 0.36) * 730))


def test_the_split_can_come_from_a_model_of_compute_or_from_an_api() -> None:
    api = {"usd_per_million_input_tokens": 1.0, "usd_per_million_output_tokens": 2.0}
    by_api = project(throughput=CHAT, managed_api=api).token_prices
    assert by_api is not None
    assert by_api.usd_per_million_output_tokens == pytest.approx(2 * by_api.usd_per_million_input_tokens)
    request = msgspec.convert({"price_usd_per_hour": 1, "throughput": CHAT, "managed_api": api}, CostProjectionRequest)
    by_model = cost_projection(
        request, 1.0, weights=TokenWeights(input=1.0, cached_input=0.0, output=10.0)
    ).token_prices
    assert by_model is not None
    assert by_model.usd_per_million_output_tokens == pytest.approx(10 * by_model.usd_per_million_input_tokens)
    assert by_model.usd_per_million_cached_input_tokens == 0.0


def test_missing_prices_of_storage_and_egress_are_assumed_and_said() -> None:
    cost = project(storage_gb=100, egress_gb=10)
    assert cost.monthly_usd.storage == pytest.approx(7.0)
    assert cost.monthly_usd.bandwidth == pytest.approx(0.9)
    assert {"/storage_usd_per_gb_month", "/egress_usd_per_gb"} <= {entry.field for entry in cost.assumptions}
    for entry in cost.assumptions:
        assert render(entry.why, "en") != entry.why.code


@pytest.mark.parametrize(
    ("members", "code"),
    [({}, "cost_price_missing"), ({"price_usd_per_hour": 1, "offer": "a/b/c/d"}, "cost_price_twice")],
)
def test_a_price_or_an_offer_but_not_both(members: dict[str, object], code: str) -> None:
    with pytest.raises(ImpossibleCombination) as caught:
        check_price(msgspec.convert(members, CostProjectionRequest))
    assert caught.value.message.code == code
    assert render(caught.value.message, "en") != code
