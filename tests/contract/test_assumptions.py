"""Each default that the caller did not give is listed; none that was given is."""

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from conftest import Api

LLAMA = "meta-llama/Llama-3.1-8B-Instruct"
TRAFFIC: dict[str, Any] = {"requests_per_second": 1.0, "input_tokens": 1000, "output_tokens": 200}
PLAIN: dict[str, Any] = {"model": LLAMA, "traffic": TRAFFIC}

GIVEN: dict[str, Any] = {
    "model": LLAMA,
    "weights": "fp8",
    "kv_cache": "fp8",
    "traffic": {**TRAFFIC, "arrivals": {"process": "poisson"}, "hourly_profile": [1.0] * 24},
    "engine": {"name": "vllm", "version": "0.19.0", "max_model_len": 2000},
    "headroom": 0.2,
    "spare_replicas": 0,
    "operation": {"hours_per_month": 700, "horizon_months": 12},
    "constraints": {
        "terms": ["on_demand"],
        "max_min_term_months": 1,
        "min_reliability": 0.98,
        "allow_unverified": False,
        "allow_undated": False,
    },
}

DEFAULTS = {
    "/weights": "bf16",
    "/kv_cache": "bf16",
    "/engine/version": None,
    "/engine/max_model_len": 1200,
    "/headroom": 0.3,
    "/spare_replicas": 1,
    "/operation/hours_per_month": 730.0,
    "/traffic/arrivals/process": "poisson",
    "/traffic/hourly_profile": 1.0,
    "/constraints/terms": "on_demand, monthly",
    "/constraints/max_min_term_months": 1.0,
    "/constraints/min_reliability": 0.98,
}


def assumed(answer: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for one in answer["assumptions"]:
        found.setdefault(one["field"], one["value"])
    return found


@pytest.mark.parametrize("field", DEFAULTS)
def test_recommendations_list_what_they_assume(api: "Api", field: str) -> None:
    found = assumed(api.ask("recommendations", PLAIN))
    assert field in found
    if DEFAULTS[field] is not None:
        assert found[field] == DEFAULTS[field]


def test_what_was_given_is_not_assumed(api: "Api") -> None:
    answer = api.ask("recommendations", GIVEN)
    assert not DEFAULTS.keys() & assumed(answer).keys()


def test_a_weight_format_is_assumed_by_what_is_published(api: "Api") -> None:
    found = [a for a in api.ask("recommendations", PLAIN)["assumptions"] if a["field"] == "/weights"]
    assert {"bf16", "fp8"} <= {a["value"] for a in found}
    only = api.ask("recommendations", {**PLAIN, "weights": "bf16"})
    assert {option["weights"] for option in only["recommendations"]} == {"bf16"}
    four_bit = api.ask("recommendations", {**PLAIN, "weights": "awq-int4"})
    for option in four_bit["recommendations"]:
        assert option["weights"] == "awq-int4"
        assert any("awq-int4" in risk for risk in option["risks"])


def test_no_format_below_eight_bits_unless_asked_for_or_published(api: "Api") -> None:
    for model in (LLAMA, "Qwen/Qwen2.5-7B-Instruct", "mistralai/Mistral-7B-Instruct-v0.3"):
        answer = api.ask("recommendations", {**PLAIN, "model": model, "limit": 50})
        for option in answer["recommendations"]:
            assert option["weights"] in {"bf16", "fp16", "fp8"} or option["checkpoint"] != model


@pytest.mark.parametrize(
    ("traffic", "kind", "spare"),
    [
        (TRAFFIC, None, 1),
        (TRAFFIC, "batch", 0),
        ({"batch": {"requests": 1e4, "deadline_s": 3600}, "input_tokens": 100, "output_tokens": 100}, None, 0),
    ],
)
def test_a_spare_stands_by_for_people_only(api: "Api", traffic: dict[str, Any], kind: str | None, spare: int) -> None:
    answer = api.ask("recommendations", {"model": LLAMA, "traffic": traffic, "kind": kind, "limit": 1})
    assert assumed(answer)["/spare_replicas"] == spare
    assert answer["recommendations"][0]["replica_breakdown"]["spare"] == spare


def test_batches_are_assumed_to_run_daily(api: "Api") -> None:
    batch = {"batch": {"requests": 1e4, "deadline_s": 3600}, "input_tokens": 100, "output_tokens": 100}
    found = assumed(api.ask("recommendations", {"model": LLAMA, "traffic": batch}))
    assert found["/traffic/batch/runs_per_month"] == 30


def test_the_default_length_is_the_longest_input_and_output(api: "Api") -> None:
    spread = {
        **TRAFFIC,
        "input_tokens": {"mean": 1000, "p95": 3000, "max": 8000},
        "output_tokens": {"mean": 200, "max": 600},
    }
    option = api.ask("recommendations", {"model": LLAMA, "traffic": spread, "limit": 1})["recommendations"][0]
    assert option["engine"]["max_model_len"] == option["vram"]["kv_cache"]["at_tokens"] == 8600


@pytest.mark.parametrize("endpoint", ["vram-budgets", "performance-estimates"])
def test_single_deployments_take_the_engines_own_defaults(api: "Api", endpoint: str) -> None:
    traffic = {} if endpoint == "vram-budgets" else {"traffic": TRAFFIC}
    found = assumed(api.ask(endpoint, {"model": LLAMA, "gpu": "h100-sxm-80gb", **traffic}))
    assert found["/engine/max_model_len"] == 131_072
    assert {"/engine/version", "/engine/gpu_memory_utilization", "/weights", "/kv_cache"} <= found.keys()


def test_names_that_mean_several_cards_say_which_was_taken(api: "Api") -> None:
    answer = api.ask("vram-budgets", {"model": LLAMA, "gpu": "NVIDIA A100"})
    [one] = [a for a in answer["assumptions"] if a["field"] == "/gpu"]
    assert one["value"].startswith("a100")
    assert "a100" in one["why"].lower()


@pytest.mark.parametrize(
    ("name", "base", "weights"),
    [
        ("someone/Meta-Llama-3.1-8B-Instruct-AWQ-INT4", LLAMA, "awq-int4"),
        ("RedHatAI/Llama-3.3-70B-Instruct-FP8-dynamic", "meta-llama/Llama-3.3-70B-Instruct", "fp8"),
        ("someone/Qwen2.5-7B-Instruct-GPTQ-Int4", "Qwen/Qwen2.5-7B-Instruct", "gptq-int4"),
        ("unsloth/Llama-3.1-8B-Instruct-bnb-4bit", LLAMA, "bnb-nf4"),
    ],
)
def test_repositories_outside_the_catalog_are_read_by_their_name(
    api: "Api", name: str, base: str, weights: str
) -> None:
    answer = api.ask("vram-budgets", {"model": name, "gpu": "h100-sxm-80gb"})
    found = assumed(answer)
    assert found["/model"] == base
    assert found["/weights"] == weights
    assert name in answer["launch"]["args"]


def test_custom_cards_say_what_was_assumed_of_them(api: "Api") -> None:
    card = {"memory_bytes": 96 * 2**30, "memory_bandwidth_gb_per_s": 3000, "dense_tflops": {"bf16": 800}}
    found = assumed(api.ask("vram-budgets", {"model": LLAMA, "gpu": card}))
    assert {"/gpu/usable_memory_bytes", "/gpu/interconnect/kind"} <= found.keys()
    known = api.get("/v1/gpus/h100-sxm-80gb")
    by_figures = api.ask("vram-budgets", {"model": LLAMA, "gpu": known})
    by_id = api.ask("vram-budgets", {"model": LLAMA, "gpu": "h100-sxm-80gb"})
    assert by_figures == by_id


def test_a_version_that_is_read_loosely_is_listed(api: "Api") -> None:
    body = {"model": LLAMA, "gpu": "h100-sxm-80gb"}
    answer = api.ask("vram-budgets", {**body, "engine": {"version": "0.19.2rc1.dev134+gfe9c3d6c5"}})
    assert assumed(answer)["/engine/version"] == "0.19.2rc1.dev134"
    ranked = api.ask("recommendations", {**PLAIN, "limit": 1, "engine": {"version": "0.19.2rc1.dev134+gfe9c3d6c5"}})
    assert assumed(ranked)["/engine/version"] == ranked["recommendations"][0]["engine"]["version"] == "0.19.2rc1.dev134"
    exact = api.ask("vram-budgets", {**body, "engine": {"version": "0.19.0"}})
    assert "/engine/version" not in assumed(exact)
