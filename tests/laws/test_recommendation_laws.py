"""Laws of a recommendation: sums, completeness, monotony, and that the same question has the same answer."""

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from litestar.testing import TestClient

from service.app import create_app
from service.catalog.snapshot import Snapshot
from service.domain.message import Message
from service.settings import Settings
from service.text import render

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Api

BASE: dict[str, Any] = {
    "model": "meta-llama/Llama-3.3-70B-Instruct",
    "weights": "fp8",
    "traffic": {"requests_per_second": 2, "input_tokens": 3000, "output_tokens": 200},
    "targets": {"ttft_ms": {"p95": 1000}, "tpot_ms": {"p95": 40}},
}
SMALL: dict[str, Any] = {
    "model": "Qwen/Qwen2.5-7B-Instruct",
    "traffic": {"requests_per_second": 8, "input_tokens": 800, "output_tokens": 150},
    "targets": {"ttft_ms": {"p95": 3000}},
}
CLOSED: dict[str, Any] = {
    "model": "Qwen/Qwen3-30B-A3B",
    "traffic": {"concurrent_requests": 100, "input_tokens": 1000, "output_tokens": 300},
    "targets": {"tpot_ms": {"p95": 60}},
}
PILE: dict[str, Any] = {
    "model": "google/gemma-3-27b-it",
    "traffic": {"batch": {"requests": 400_000, "deadline_s": 28_800}, "input_tokens": 1200, "output_tokens": 200},
}
WIDE: dict[str, Any] = {
    "model": "deepseek-ai/DeepSeek-R1",
    "traffic": {
        "users": {"registered": 50_000, "active_share_at_peak": 0.02, "requests_per_active_user_hour": 15},
        "input_tokens": {"mean": 2000, "p95": 6000},
        "output_tokens": 400,
        "hourly_profile": [0.2] * 12 + [1.0] * 12,
    },
    "operation": {
        "hours_per_month": 400,
        "horizon_months": 6,
        "environments": [
            {"name": "staging", "replicas": 1, "hours_per_month": 100},
            {"name": "unused", "replicas": 0},
            {"name": "test", "replicas": 2, "hours_per_month": 50},
        ],
    },
}
CASES = {"large": BASE, "small": SMALL, "closed": CLOSED, "batch": PILE, "wide": WIDE}


@pytest.fixture(params=CASES)
def body(request: pytest.FixtureRequest) -> dict[str, Any]:
    case: dict[str, Any] = CASES[request.param]
    return case


def cheapest(api: "Api", body: dict[str, Any]) -> float:
    options = api.ask("recommendations", {**body, "limit": 1})["recommendations"]
    return options[0]["monthly_usd"] if options else float("inf")


def test_the_parts_of_an_option_add_up(api: "Api", body: dict[str, Any]) -> None:
    environments = body.get("operation", {}).get("environments", [])
    options = api.ask("recommendations", {**body, "limit": 30})["recommendations"]
    assert len(options) >= 5
    assert [option["rank"] for option in options] == list(range(1, len(options) + 1))
    assert [option["monthly_usd"] for option in options] == sorted(option["monthly_usd"] for option in options)
    for option in options:
        layout = option["parallelism"]
        assert option["gpus_per_replica"] == layout["tensor"] * layout["pipeline"] * layout["data"]
        assert option["replicas"] == sum(option["replica_breakdown"].values())
        paid = option["instances"] * option["gpus_per_instance"]
        assert option["idle_gpus"] == paid - option["replicas"] * option["gpus_per_replica"] >= 0
        per_instance = option["gpus_per_instance"] // option["gpus_per_replica"]
        assert per_instance >= 1
        assert option["instances"] == -(-option["replicas"] // per_instance)
        offer, monthly = option["offer"], option["cost"]["monthly_usd"]
        assert offer["gpus"] == option["gpus_per_instance"]
        assert offer["price_usd_per_gpu_hour"] == offer["price_usd_per_hour"] / offer["gpus"]
        beside = sum(
            -(-one["replicas"] // per_instance) * offer["price_usd_per_hour"] * one["hours_per_month"]
            for one in environments
            if one.get("replicas", 1)
        )
        assert option["monthly_usd"] == pytest.approx(monthly["total"] + beside, rel=1e-12)
        assert monthly["total"] == pytest.approx(sum(value for name, value in monthly.items() if name != "total"))
        assert option["meets_targets"]["likely"]
        assert option["vram"]["verdict"] == option["performance"]["verdict"] == "starts"
        assert not option["performance"]["saturated"]


def test_likely_and_safe_are_what_the_estimate_says(api: "Api", body: dict[str, Any]) -> None:
    unsafe = render(Message("risk_targets_not_safe"), "en")
    for option in api.ask("recommendations", {**body, "limit": 20})["recommendations"]:
        held = []
        for metric, bound in body.get("targets", {}).items():
            latency = option["performance"][metric]
            assert latency["p95"] <= bound["p95"] * 1.001
            held.append(latency["intervals"]["p95"]["high"] <= bound["p95"] * 1.001)
        safe = option["meets_targets"]["safe"]
        assert all(held) or not safe
        assert (unsafe in option["risks"]) is not safe


def test_every_accelerator_is_recommended_or_rejected_once(
    api: "Api", snapshot: Snapshot, body: dict[str, Any]
) -> None:
    answer = api.ask("recommendations", body)
    recommended = {option["gpu"] for option in answer["recommendations"]}
    rejected = Counter(row["gpu"] for row in answer["rejected"])
    assert not recommended & rejected.keys()
    assert set(rejected.values()) == {1}
    cards = {gpu for gpu in snapshot.accelerators if "/" not in gpu}
    assert cards <= recommended | rejected.keys()
    assert recommended | rejected.keys() <= snapshot.accelerators.keys()
    assert [row["gpu"] for row in answer["rejected"]] == sorted(rejected)
    for row in answer["rejected"]:
        limit, value = row["detail"]["limit"], row["detail"]["value"]
        assert (limit is None) == (value is None)
        if limit is not None and row["reason_code"] != "less_throughput_per_usd":
            assert value >= limit, row


def test_every_provider_has_one_verdict(api: "Api", snapshot: Snapshot, body: dict[str, Any]) -> None:
    answer = api.ask("recommendations", body)
    assert [row["provider"] for row in answer["by_provider"]] == sorted(snapshot.providers)
    ranked = sorted((row["best_rank"], row) for row in answer["by_provider"] if row["best_rank"] is not None)
    assert [rank for rank, _ in ranked] == list(range(1, len(ranked) + 1))
    first = answer["recommendations"][0]
    assert ranked[0][1]["provider"] == first["offer"]["provider"]
    assert ranked[0][1]["option"]["monthly_usd"] == first["monthly_usd"]
    for row in answer["by_provider"]:
        assert (row["option"] is None) == (row["best_rank"] is None) == (row["reason_code"] is not None)
        if row["option"] is not None:
            assert snapshot.offers[row["option"]["offer_id"]].provider == row["provider"]


def test_no_point_of_the_front_beats_another(api: "Api", body: dict[str, Any]) -> None:
    answer = api.ask("recommendations", body)
    points = [(point["monthly_usd"], point["ttft_ms_p95"], point["tpot_ms_p95"] or 0.0) for point in answer["pareto"]]
    assert points
    assert points == sorted(points)
    assert points[0][0] == answer["recommendations"][0]["monthly_usd"]
    for one in points:
        assert not any(other != one and all(a <= b for a, b in zip(other, one, strict=True)) for other in points), one


def load_of(body: dict[str, Any], factor: float) -> dict[str, Any]:
    traffic = dict(body["traffic"])
    if "batch" in traffic:
        traffic["batch"] = {**traffic["batch"], "requests": traffic["batch"]["requests"] * factor}
    elif "users" in traffic:
        traffic["users"] = {**traffic["users"], "registered": traffic["users"]["registered"] * factor}
    else:
        name = "concurrent_requests" if "concurrent_requests" in traffic else "requests_per_second"
        traffic[name] = traffic[name] * factor
    return {**body, "traffic": traffic}


def test_more_load_never_costs_less(api: "Api", body: dict[str, Any]) -> None:
    costs = [cheapest(api, load_of(body, factor)) for factor in (0.1, 0.5, 0.9, 1.0, 1.1, 2.0, 5.0, 20.0)]
    assert costs == sorted(costs)
    assert costs[0] < costs[-1]


def test_longer_requests_never_cost_less(api: "Api", body: dict[str, Any]) -> None:
    # Under a bound on time per token they may: prompts of others interrupt a short answer more often per token.
    for name in ("input_tokens", "output_tokens"):
        costs = [
            cheapest(api, {**body, "targets": None, "traffic": {**body["traffic"], name: tokens}})
            for tokens in (50, 200, 1000, 4000)
        ]
        assert costs == sorted(costs), name


@pytest.mark.parametrize(
    ("metric", "level"), [("ttft_ms", "p95"), ("tpot_ms", "p95"), ("e2e_ms", "p95"), ("ttft_ms", "p50")]
)
def test_a_stricter_target_never_costs_less(api: "Api", metric: str, level: str) -> None:
    bounds = {"ttft_ms": (5000, 1000, 400, 150), "tpot_ms": (100, 40, 20, 8), "e2e_ms": (60_000, 15_000, 6000, 2000)}
    for case in (BASE, SMALL):
        costs = [cheapest(api, {**case, "targets": {metric: {level: bound}}}) for bound in bounds[metric]]
        assert costs == sorted(costs)
        assert cheapest(api, {**case, "targets": None}) <= costs[0]


CONSTRAINTS: dict[str, dict[str, Any]] = {
    "gpus": {"gpus": ["h100-sxm-80gb", "l40s-48gb", "mi300x-192gb"]},
    "providers": {"providers": ["runpod", "aws"]},
    "regions": {"regions": ["EU"]},
    "tenancy": {"tenancy": ["dedicated"]},
    "terms": {"terms": ["monthly"]},
    "max_gpus": {"max_gpus": 4},
    "max_monthly_usd": {"max_monthly_usd": 20_000},
    "max_age_days": {"max_age_days": 30},
    "min_reliability": {"min_reliability": 0.999},
}


@pytest.mark.parametrize("name", CONSTRAINTS)
def test_a_constraint_never_makes_it_cheaper_and_is_kept(api: "Api", name: str, body: dict[str, Any]) -> None:
    constraints = CONSTRAINTS[name]
    answer = api.ask("recommendations", {**body, "constraints": constraints, "limit": 12})
    options = answer["recommendations"]
    if options:
        assert options[0]["monthly_usd"] >= cheapest(api, body)
    else:
        assert name in {"max_gpus", "max_monthly_usd", "max_age_days", "terms"}, "nothing is left"
    for option in options:
        offer = option["offer"]
        kept = {
            "gpus": option["gpu"] in constraints.get("gpus", ()),
            "providers": offer["provider"] in constraints.get("providers", ()),
            "regions": offer["region"] is not None or offer["country"] is not None,
            "tenancy": offer["tenancy"] in constraints.get("tenancy", ()),
            "terms": offer["term"] in constraints.get("terms", ()),
            "max_gpus": option["instances"] * option["gpus_per_instance"] <= constraints.get("max_gpus", 0),
            "max_monthly_usd": option["monthly_usd"] <= constraints.get("max_monthly_usd", 0),
            "max_age_days": offer["age_days"] <= constraints.get("max_age_days", 0),
            "min_reliability": True,
        }
        assert kept[name], (name, option["gpu"], offer)


def test_the_order_of_lists_does_not_matter(api: "Api") -> None:
    lists = {
        "gpus": ["h100-sxm-80gb", "h200-sxm-141gb", "mi300x-192gb", "l40s-48gb"],
        "providers": ["runpod", "aws", "lambda", "verda"],
        "terms": ["monthly", "on_demand", "reserved"],
        "regions": ["EU", "US", "GB"],
        "tenancy": ["dedicated", "shared"],
    }
    there = api.ask("recommendations", {**BASE, "constraints": lists})
    back = api.ask("recommendations", {**BASE, "constraints": {name: list(reversed(v)) for name, v in lists.items()}})
    for key in ("recommendations", "pareto", "rejected", "by_provider", "revisit_when"):
        assert there[key] == back[key], key


def test_the_limit_cuts_the_list_and_nothing_else(api: "Api", body: dict[str, Any]) -> None:
    few, many = (api.ask("recommendations", {**body, "limit": limit}) for limit in (2, 20))
    for short, long in zip(few["recommendations"], many["recommendations"], strict=False):
        short["reasons"] = long["reasons"] = []  # the last option has no next one to be compared with
        assert short == long
    assert few["by_provider"] == many["by_provider"]
    assert [p["monthly_usd"] for p in few["pareto"]] == [p["monthly_usd"] for p in many["pareto"]]


def test_the_same_question_has_the_same_bytes(api: "Api", tmp_path: "Path", body: dict[str, Any]) -> None:
    first = api.post("recommendations", body).content
    api.post("recommendations", load_of(body, 3.0))
    assert api.post("recommendations", body).content == first
    dated = {"evaluated_on": "2026-08-01", **body}
    with TestClient(create_app(Settings(store_path=tmp_path / "other.sqlite"))) as other:
        assert other.post("/v1/recommendations", json=dated).content == first
