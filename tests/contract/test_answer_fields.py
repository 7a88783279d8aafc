"""Every answer has the fields that clients read, with null exactly where the contract says so."""

from collections.abc import Iterator
from datetime import date
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from conftest import Api

LLAMA = "meta-llama/Llama-3.1-8B-Instruct"
TOKENS = {"input_tokens": 1000, "output_tokens": 200}
RATE: dict[str, Any] = {"requests_per_second": 1.0, **TOKENS}
STARTS: dict[str, Any] = {"model": LLAMA, "gpu": "h100-sxm-80gb"}
TOO_SMALL: dict[str, Any] = {"model": "meta-llama/Llama-3.3-70B-Instruct", "gpu": "l4-24gb"}
NO_POOL: dict[str, Any] = {"model": LLAMA, "gpu": "l4-24gb", "engine": {"gpu_memory_utilization": 0.6}}
TOO_LONG: dict[str, Any] = {"model": LLAMA, "gpu": "l4-24gb", "engine": {"max_model_len": 131_072}}


def words(text: str) -> frozenset[str]:
    return frozenset(text.split())


PROVENANCE = ("catalog_revision", "profile_revision", "service_version", "evaluated_on")
PARTS = ["total", "budget", "weights", "activation", "cuda_graph", "non_torch", "kv_cache", "unused"]
LEVELS = ("mean", "p50", "p95", "p99")
BOTTLENECKS = words(
    """weights_memory kv_capacity prefill_compute decode_compute decode_bandwidth interconnect host_overhead scheduler
    queue network"""
)


def members(value: object, pointer: str = "") -> Iterator[tuple[str, object]]:
    """Every member of a JSON document with its pointer."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, inner in pairs:
        yield f"{pointer}/{name}", inner
        yield from members(inner, f"{pointer}/{name}")


def assert_common(answer: dict[str, Any]) -> None:
    """What holds of every answer."""
    assert tuple(answer["provenance"]) == PROVENANCE
    date.fromisoformat(answer["provenance"]["evaluated_on"])
    for one in answer["assumptions"]:
        assert one.keys() == {"field", "value", "why"}
        assert one["field"].startswith("/")
        assert one["why"].endswith((".", "%"))
    for pointer, value in members(answer):
        if isinstance(value, dict) and {"low", "high", "confidence", "basis"} <= value.keys():
            assert value["low"] <= value["high"], pointer
            assert value["confidence"] == 0.9
            assert value["basis"] in {"measured", "calibrated", "analytic"}


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (STARTS, None),
        ({**STARTS, "context_tokens": 8000, "concurrent_sequences": 4}, None),
        ({**STARTS, "context_tokens": 8000, "concurrent_sequences": 90}, None),
        (TOO_SMALL, "weights_exceed_memory"),
        (NO_POOL, "no_room_for_kv"),
        (TOO_LONG, "context_does_not_fit"),
        ({**STARTS, "parallelism": {"tensor": 3}}, "layout_illegal"),
        ({**STARTS, "gpu": "v100-sxm-32gb", "weights": "nvfp4"}, "weights_format_unsupported"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_vram_budgets(api: "Api", body: dict[str, Any], reason: str | None) -> None:
    answer = api.ask("vram-budgets", body)
    assert_common(answer)
    assert answer["verdict"] == ("starts" if reason is None else "does_not_fit")
    assert answer["reason_code"] == reason
    assert (answer["reason"] is None) == (reason is None)
    per_gpu = answer["per_gpu"]
    for part in PARTS:
        assert isinstance(per_gpu[f"{part}_bytes"], int)
        assert per_gpu[f"{part}_gib"] == pytest.approx(per_gpu[f"{part}_bytes"] / 2**30, abs=6e-4)
    assert sum(per_gpu[f"{part}_bytes"] for part in PARTS[2:]) == per_gpu["total_bytes"]
    kv_cache = answer["kv_cache"]
    for name in ("bytes_per_token", "capacity_tokens", "block_size", "at_tokens"):
        assert isinstance(kv_cache[name], int)
    assert isinstance(kv_cache["max_concurrency"], int | float)
    assert kv_cache["interval"]["low"] <= kv_cache["capacity_tokens"] <= kv_cache["interval"]["high"]
    fit = answer["workload_fit"]
    assert (fit is not None) == ("context_tokens" in body)
    if fit is not None:
        assert fit["fits"] is (body["concurrent_sequences"] == 4)
        assert (fit["shortfall_sequences"] == 0) is fit["fits"]
        for name in ("required_tokens", "max_context_at_concurrency", "max_concurrency_at_context"):
            assert fit[name] >= 0
    assert answer["launch"]["args"][:2] == ["vllm", "serve"]
    assert answer["launch"]["command"].startswith("vllm serve")
    assert isinstance(answer["warnings"], list)
    needs_remedy = reason is not None or (fit is not None and not fit["fits"])
    assert bool(answer["remedies"]) is needs_remedy


def assert_latency(value: dict[str, Any]) -> None:
    assert all(value[level] > 0 for level in LEVELS)
    assert value["p50"] <= value["p95"] <= value["p99"]
    assert value["intervals"]["p95"]["low"] <= value["p95"] <= value["intervals"]["p95"]["high"]


OBJECTS = ("ttft_ms", "tpot_ms", "e2e_ms", "ttft_breakdown", "throughput", "single_stream")


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("open", {**STARTS, "traffic": RATE}),
        ("open with targets", {**STARTS, "traffic": RATE, "targets": {"ttft_ms": {"p95": 500}}}),
        ("closed", {**STARTS, "traffic": {"concurrent_requests": 16, **TOKENS}}),
        ("closed above the ceiling", {**STARTS, "traffic": {"concurrent_requests": 20_000, **TOKENS}}),
        ("batch", {**STARTS, "traffic": {"batch": {"requests": 1e5, "deadline_s": 28_800}, **TOKENS}}),
        ("as batch", {**STARTS, "traffic": RATE, "kind": "batch"}),
        ("application", {**STARTS, "traffic": RATE, "application": {"retrieval_ms": 150, "network_rtt_ms": 30}}),
        ("run", {**STARTS, "traffic": {**RATE, "requests_per_second": 1000}, "run": {"requests": 500}}),
    ],
)
def test_performance_estimates_of_what_starts(api: "Api", name: str, body: dict[str, Any]) -> None:
    answer = api.ask("performance-estimates", body)
    assert_common(answer)
    assert (answer["verdict"], answer["reason_code"]) == ("starts", None)
    for field in ("ttft_ms", "tpot_ms", "e2e_ms"):
        assert_latency(answer[field])
    assert answer["ttft_breakdown"].keys() >= {"queue_ms", "prefill_ms", "host_ms"}
    assert sum(answer["ttft_breakdown"].values()) == pytest.approx(answer["ttft_ms"]["mean"], rel=1e-6)
    throughput = answer["throughput"]
    for field in [
        "output_tokens_per_second",
        "output_tokens_per_second_per_user",
        "total_tokens_per_second",
        "requests_per_second",
    ]:
        assert throughput[field] > 0
    assert throughput["output_tokens_per_second"] == pytest.approx(throughput["requests_per_second"] * 200)
    assert answer["single_stream"]["ttft_ms"] > 0
    assert answer["single_stream"]["tpot_ms"] > 0
    assert answer["bottleneck"] in BOTTLENECKS
    assert answer["max_requests_per_second"] > 0
    assert len(answer["curve"]) >= 3
    assert (answer["user_visible"] is not None) == ("application" in body)
    if answer["user_visible"] is not None:
        assert answer["user_visible"]["ttft_ms"]["mean"] == pytest.approx(answer["ttft_ms"]["mean"] + 180, rel=1e-6)
        assert answer["user_visible"]["e2e_ms"]["mean"] == pytest.approx(answer["e2e_ms"]["mean"] + 180, rel=1e-6)
    assert answer["saturated"] is (name in {"closed above the ceiling", "run"})
    assert (answer["batch"] is not None) == (name == "batch")


def test_above_capacity_an_open_loop_has_throughput_but_no_latency(api: "Api") -> None:
    answer = api.ask("performance-estimates", {**STARTS, "traffic": {**RATE, "requests_per_second": 1000}})
    assert_common(answer)
    assert answer["saturated"] is True
    assert answer["bottleneck"] == "queue"
    assert answer["ttft_ms"] is answer["e2e_ms"] is answer["ttft_breakdown"] is None
    assert_latency(answer["tpot_ms"])
    assert answer["throughput"]["requests_per_second"] == pytest.approx(answer["max_requests_per_second"], rel=0.05)
    assert answer["throughput"]["requests_per_second"] < 1000


@pytest.mark.parametrize(
    ("body", "bottleneck"), [(TOO_SMALL, "weights_memory"), (NO_POOL, "kv_capacity"), (TOO_LONG, "kv_capacity")]
)
def test_what_does_not_fit_has_no_numbers(api: "Api", body: dict[str, Any], bottleneck: str) -> None:
    answer = api.ask("performance-estimates", {**body, "traffic": RATE})
    assert_common(answer)
    assert answer["verdict"] == "does_not_fit"
    assert answer["reason_code"] == api.ask("vram-budgets", body)["reason_code"]
    assert answer["saturated"] is False
    assert answer["bottleneck"] == bottleneck
    for field in (*OBJECTS, "max_requests_per_second", "user_visible"):
        assert answer[field] is None
    assert answer["curve"] == []
    concurrency = api.ask("concurrency-estimates", {**body, "traffic": RATE})
    assert concurrency["active_requests"] is concurrency["with_headroom"] is None
    assert concurrency["verdict"] == "does_not_fit"
    assert concurrency["reason_code"] == answer["reason_code"]


@pytest.mark.parametrize("body", [{"request_duration_s": 4.0}, {**STARTS, "headroom": 0.5}])
def test_concurrency_estimates(api: "Api", body: dict[str, Any]) -> None:
    answer = api.ask("concurrency-estimates", {**body, "traffic": RATE})
    assert_common(answer)
    share = 1.0 + body.get("headroom", 0.3)
    for part in (answer, answer["with_headroom"]):
        active, demand = part["active_requests"], part["demand"]
        assert active["p50"] <= active["p95"] <= active["p99"]
        assert active["mean"] == pytest.approx(demand["requests_per_second"] * answer["request_duration_s"])
        assert demand["input_tokens_per_second"] == pytest.approx(demand["requests_per_second"] * 1000)
        assert demand["output_tokens_per_second"] == pytest.approx(demand["requests_per_second"] * 200)
    assert answer["with_headroom"]["demand"]["requests_per_second"] == pytest.approx(share)
    assumed = {one["field"] for one in answer["assumptions"]}
    assert ("/headroom" in assumed) == ("headroom" not in body)


FULL_COST: dict[str, Any] = {
    "price_usd_per_hour": 2.5,
    "replicas": 3,
    "throughput": {"output_tokens_per_hour": 1e6, "input_tokens_per_hour": 5e6, "requests_per_hour": 5e3},
    "utilization": 0.4,
    "storage_gb": 500,
    "egress_gb": 100,
    "backup_usd_per_month": 20,
    "platform_usd_per_month": 50,
    "engineering_usd_per_month": 1000,
    "failure_reserve_share": 0.05,
    "owned": {"price_usd": 30_000, "power_w": 700, "usd_per_kwh": 0.15},
    "managed_api": {"usd_per_million_input_tokens": 0.2, "usd_per_million_output_tokens": 0.8},
}


def test_cost_projections(api: "Api") -> None:
    answer = api.ask("cost-projections", FULL_COST)
    assert_common(answer)
    monthly = answer["monthly_usd"]
    parts = {"compute", "storage", "bandwidth", "backup", "platform", "engineering", "failure_reserve"}
    assert monthly.keys() == {"total", *parts}
    assert all(monthly[part] > 0 for part in parts)
    assert monthly["total"] == pytest.approx(sum(monthly[part] for part in parts))
    assert monthly["compute"] == pytest.approx(2.5 * 3 * 730)
    for field in ("output_tokens", "input_tokens", "cached_input_tokens", "tokens"):
        assert answer[f"usd_per_million_{field}"] > 0
    assert answer["usd_per_request"] == pytest.approx(monthly["total"] / (5e3 * 0.4 * 730))
    assert answer["usd_per_million_output_tokens"] == pytest.approx(monthly["total"] / (0.4 * 730))
    assert answer["utilization"] == 0.4
    assert [one["utilization"] for one in answer["at_utilization"]] == [0.1, 0.3, 0.5, 1.0]
    assert len(answer["break_even"]) == 2
    bare = api.ask("cost-projections", {"price_usd_per_hour": 1})
    for field in ("output_tokens", "input_tokens", "cached_input_tokens", "tokens"):
        assert bare[f"usd_per_million_{field}"] is None
    assert bare["usd_per_request"] is bare["utilization"] is None
    assert bare["break_even"] == []


OPTION = words(
    """rank gpu gpus_per_replica parallelism weights kv_cache engine replicas replica_breakdown instances gpus_per_instance
    idle_gpus vram performance cost offer meets_targets reasons risks verify cold_start_s"""
)
OFFER = words(
    """id provider instance_type region country tenancy term min_term_months gpus price_usd_per_hour
    price_usd_per_gpu_hour setup_fee_usd as_of age_days stale evidence source availability"""
)


@pytest.mark.parametrize(
    "body",
    [
        {"traffic": RATE, "targets": {"ttft_ms": {"p95": 1000}}},
        {"traffic": {"concurrent_requests": 16, **TOKENS}},
        {"traffic": {"batch": {"requests": 1e5, "deadline_s": 28_800}, **TOKENS}},
        {"traffic": RATE, "constraints": {"max_monthly_usd": 1}},
    ],
)
def test_recommendations(api: "Api", body: dict[str, Any]) -> None:
    answer = api.ask("recommendations", {"model": LLAMA, **body})
    assert_common(answer)
    assert bool(answer["recommendations"]) is ("constraints" not in body)
    assert len(answer["recommendations"]) in {0, 5}
    for option in answer["recommendations"]:
        assert option.keys() >= OPTION
        assert option["replica_breakdown"].keys() == {"for_load", "headroom", "spare"}
        assert option["replica_breakdown"]["spare"] == (0 if "batch" in body["traffic"] else 1)
        assert option["parallelism"].keys() >= {"tensor", "pipeline", "data", "expert", "context"}
        assert option["meets_targets"].keys() == {"likely", "safe"}
        assert option["offer"].keys() >= OFFER
        assert option["offer"]["source"]
        assert option["offer"]["as_of"] is not None
        assert option["reasons"]
        assert option["verify"]
        assert 60 <= option["cold_start_s"] < 3600
        assert option["engine"]["name"] == "vllm"
    for row in answer["rejected"]:
        assert row.keys() >= {"gpu", "reason_code", "detail", "would_fit_if"}
        assert row["detail"].keys() == {"limit", "value"}
    for row in answer["by_provider"]:
        assert row.keys() >= {"provider", "best_rank", "option", "reason_code", "verify"}
        assert isinstance(row["verify"], list)
    if answer["recommendations"]:
        assert answer["pareto"]
        assert answer["revisit_when"]
        assert {"field", "why"} <= answer["revisit_when"][0].keys()


def test_the_default_reply_is_small(api: "Api") -> None:
    for model, weights in (
        ("meta-llama/Llama-3.3-70B-Instruct", "fp8"),
        (LLAMA, None),
        ("deepseek-ai/DeepSeek-R1", None),
        ("Qwen/Qwen3-30B-A3B", None),
    ):
        targets = {"ttft_ms": {"p95": 2000}, "tpot_ms": {"p95": 60}}
        traffic = {"requests_per_second": 2, "input_tokens": 3000, "output_tokens": 200}
        body = {"model": model, "weights": weights, "traffic": traffic, "targets": targets}
        assert len(api.post("recommendations", body).content) <= 100_000, model
