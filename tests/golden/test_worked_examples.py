"""The examples that anyone can work out by hand come out of the API."""

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from conftest import Api

LLAMA = "meta-llama/Llama-3.1-8B-Instruct"
TRAFFIC: dict[str, Any] = {"requests_per_second": 2, "input_tokens": 3000, "output_tokens": 200}


@pytest.mark.parametrize("parameters", [1_000_000_000, 7_000_000_000, 70_000_000_000])
def test_seven_billion_parameters_at_two_bytes_are_14_gb(api: "Api", parameters: int) -> None:
    body = {"model": {"parameters": parameters}, "gpu": "b300-sxm-270gb", "weights": "bf16"}
    budget = api.ask("vram-budgets", body)
    checkpoint = dict(budget["weights"])
    computed = checkpoint.pop("rotary_tables")  # kept beside the weights, not read from the checkpoint
    assert sum(checkpoint.values()) == 2 * parameters
    assert budget["per_gpu"]["weights_bytes"] == 2 * parameters + computed
    assert budget["per_gpu"]["weights_bytes"] / 1e9 == pytest.approx(2 * parameters / 1e9, rel=1e-3)
    assert {"/model/config"} <= {one["field"] for one in budget["assumptions"]}


@pytest.mark.parametrize(("weights", "bits"), [("fp32", 32), ("bf16", 16), ("fp8", 8), ("int4", 4)])
def test_fewer_bits_are_fewer_bytes(api: "Api", weights: str, bits: int) -> None:
    body = {"model": {"parameters": 7_000_000_000}, "gpu": "h100-sxm-80gb", "weights": weights}
    total = api.ask("vram-budgets", body)["per_gpu"]["weights_bytes"]
    assert total >= 7e9 * bits / 8
    assert total <= 7e9 * bits / 8 * 1.05 + 2 * 507e6, "embedding and head may stay at 16 bits"


def test_two_requests_per_second_of_eight_seconds_are_sixteen_active(api: "Api") -> None:
    answer = api.ask("concurrency-estimates", {"traffic": {"requests_per_second": 2}, "request_duration_s": 8})
    assert answer["active_requests"]["mean"] == 16
    assert answer["active_requests"]["p50"] == 16
    assert answer["active_requests"]["p95"] == 23  # Poisson(16): P(N <= 22) = 0.942, P(N <= 23) = 0.963
    assert answer["with_headroom"]["active_requests"]["mean"] == pytest.approx(20.8)


def test_two_requests_per_second_of_200_tokens_are_400_tokens_per_second(api: "Api") -> None:
    answer = api.ask("concurrency-estimates", {"traffic": TRAFFIC, "request_duration_s": 8})
    assert answer["demand"]["output_tokens_per_second"] == 400
    assert answer["demand"]["input_tokens_per_second"] == 6000
    estimate = api.ask("performance-estimates", {"model": LLAMA, "gpu": "h100-sxm-80gb", "traffic": TRAFFIC})
    assert estimate["throughput"]["output_tokens_per_second"] == pytest.approx(400)


def test_400_tokens_per_second_in_all_are_not_400_per_user(api: "Api") -> None:
    body = {"model": LLAMA, "gpu": "h100-sxm-80gb", "traffic": TRAFFIC}
    throughput = api.ask("performance-estimates", body)["throughput"]
    assert throughput["output_tokens_per_second"] == pytest.approx(400)
    assert 20 < throughput["output_tokens_per_second_per_user"] < 250
    busier = api.ask("performance-estimates", {**body, "traffic": {**TRAFFIC, "requests_per_second": 5}})["throughput"]
    assert busier["output_tokens_per_second"] > throughput["output_tokens_per_second"]
    assert busier["output_tokens_per_second_per_user"] < throughput["output_tokens_per_second_per_user"]


@pytest.mark.parametrize(("tokens_per_hour", "usd"), [(360_000, 2.78), (36_000, 27.78)])
def test_a_dollar_an_hour(api: "Api", tokens_per_hour: float, usd: float) -> None:
    body = {"price_usd_per_hour": 1, "throughput": {"output_tokens_per_hour": tokens_per_hour}}
    assert round(api.ask("cost-projections", body)["usd_per_million_output_tokens"], 2) == usd
    full = {"price_usd_per_hour": 1, "throughput": {"output_tokens_per_hour": 360_000}}
    less_used = api.ask("cost-projections", {**full, "utilization": tokens_per_hour / 360_000})
    assert round(less_used["usd_per_million_output_tokens"], 2) == usd
    levels = {one["utilization"]: one for one in less_used["at_utilization"]}
    assert round(levels[0.1]["usd_per_million_output_tokens"], 2) == 27.78
    assert round(levels[1.0]["usd_per_million_output_tokens"], 2) == 2.78


def test_a_cheaper_but_less_used_gpu_costs_more_per_request(api: "Api") -> None:
    full = {"output_tokens_per_hour": 720_000, "requests_per_hour": 3600}
    cheap = api.ask("cost-projections", {"price_usd_per_hour": 1, "throughput": full, "utilization": 0.1})
    dear = api.ask("cost-projections", {"price_usd_per_hour": 3, "throughput": full, "utilization": 0.6})
    assert cheap["monthly_usd"]["total"] < dear["monthly_usd"]["total"]
    assert cheap["usd_per_request"] == pytest.approx(1 / 360)
    assert dear["usd_per_request"] == pytest.approx(3 / 2160)
    assert cheap["usd_per_request"] > dear["usd_per_request"]


def test_a_busier_deployment_costs_less_per_request(api: "Api") -> None:
    """The same, from workloads: what is rented in whole instances is paid whether or not it is used."""
    body = {"model": LLAMA, "weights": "bf16", "spare_replicas": 0, "limit": 1}
    per_request = [
        api.ask("recommendations", {**body, "traffic": {**TRAFFIC, "requests_per_second": rate}})["recommendations"][0][
            "cost"
        ]["usd_per_request"]
        for rate in (0.01, 0.1, 1.0)
    ]
    assert per_request == sorted(per_request, reverse=True)
    assert per_request[0] > 5 * per_request[-1]


def test_a_thousand_registered_users_are_not_a_thousand_requests(api: "Api") -> None:
    users = {"registered": 1000, "active_share_at_peak": 0.05, "requests_per_active_user_hour": 20}
    traffic = {"users": users, "input_tokens": 3000, "output_tokens": 200}
    answer = api.ask("concurrency-estimates", {"traffic": traffic, "request_duration_s": 8})
    assert answer["demand"]["requests_per_second"] == pytest.approx(1000 * 0.05 * 20 / 3600)
    assert answer["active_requests"]["mean"] == pytest.approx(1000 * 0.05 * 20 / 3600 * 8)
    assert answer["active_requests"]["p99"] <= 10
    body = {"model": LLAMA, "limit": 1}
    option = api.ask("recommendations", {**body, "traffic": traffic})["recommendations"][0]
    concurrent = {"concurrent_requests": 1000, "input_tokens": 3000, "output_tokens": 200}
    taken_for_concurrent = api.ask("recommendations", {**body, "traffic": concurrent})["recommendations"][0]
    assert option["monthly_usd"] * 3 < taken_for_concurrent["monthly_usd"]


def test_two_distributions_of_one_mean_have_two_p95(api: "Api") -> None:
    body = {"model": LLAMA, "gpu": "l40s-48gb"}
    found = []
    for prompts in (1500, {"mean": 1500, "p95": 3000}, {"mean": 1500, "p95": 5000, "max": 16_000}):
        traffic = {"requests_per_second": 0.5, "input_tokens": prompts, "output_tokens": 200}
        found.append(api.ask("performance-estimates", {**body, "traffic": traffic})["ttft_ms"])
    assert found[0]["p95"] * 1.2 < found[1]["p95"]
    assert found[1]["p95"] * 1.2 < found[2]["p95"]
    assert found[2]["mean"] < found[1]["mean"] * 1.5, "the means stay near each other"


def test_tokens_sold_in_a_month_follow_the_hourly_profile(api: "Api") -> None:
    body = {"model": LLAMA, "limit": 1, "constraints": {"gpus": ["l40s-48gb"]}}
    flat = api.ask("recommendations", {**body, "traffic": TRAFFIC})
    half = {**TRAFFIC, "hourly_profile": [1.0] * 12 + [0.0] * 12}
    profiled = api.ask("recommendations", {**body, "traffic": half})
    one, other = flat["recommendations"][0], profiled["recommendations"][0]
    assert one["cost"]["monthly_usd"]["compute"] == other["cost"]["monthly_usd"]["compute"]
    assert other["cost"]["utilization"] == pytest.approx(one["cost"]["utilization"] / 2)
    assert other["cost"]["usd_per_request"] == pytest.approx(one["cost"]["usd_per_request"] * 2, rel=0.01)
    sold = one["replay"]["cost_projection"]["throughput"]["output_tokens_per_hour"] * one["cost"]["utilization"]
    assert sold == pytest.approx(400 * 3600)
    assert any(a["field"] == "/traffic/hourly_profile" for a in flat["assumptions"])
    assert not any(a["field"] == "/traffic/hourly_profile" for a in profiled["assumptions"])
