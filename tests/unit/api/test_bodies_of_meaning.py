"""Bodies that are well formed and mean something impossible, and bodies that say the same in two ways."""

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from conftest import Api

LLAMA = "meta-llama/Llama-3.1-8B-Instruct"
SMALL = {"model": LLAMA, "gpu": "l4-24gb"}
TRAFFIC: dict[str, Any] = {"requests_per_second": 1, "input_tokens": 100, "output_tokens": 100}
CARD: dict[str, Any] = {"memory_bytes": 80 * 2**30, "memory_bandwidth_gb_per_s": 3000, "dense_tflops": {"bf16": 900}}


@pytest.mark.parametrize(
    ("endpoint", "body", "pointer"),
    [
        ("vram-budgets", {"model": {}, "gpu": "l4-24gb"}, "/model"),
        ("vram-budgets", {"model": {"checkpoint_bytes": 10**9}, "gpu": "l4-24gb"}, "/model"),
        ("vram-budgets", {"model": LLAMA, "gpu": {**CARD, "dense_tflops": {"fp8": 9}}}, "/gpu/dense_tflops"),
        ("vram-budgets", {"model": LLAMA, "gpu": {**CARD, "dense_tflops": {}}}, "/gpu/dense_tflops"),
        (
            "vram-budgets",
            {"model": LLAMA, "gpu": {**CARD, "usable_memory_bytes": 81 * 2**30}},
            "/gpu/usable_memory_bytes",
        ),
        (
            "performance-estimates",
            {**SMALL, "traffic": {**TRAFFIC, "batch": {"requests": 1, "deadline_s": 9}}},
            "/traffic",
        ),
        ("performance-estimates", {**SMALL, "traffic": {"input_tokens": 1, "output_tokens": 1}}, "/traffic"),
        ("recommendations", {"model": LLAMA, "traffic": TRAFFIC, "targets": {"ttft_ms": {}}}, "/targets/ttft_ms"),
        (
            "recommendations",
            {"model": LLAMA, "traffic": {**TRAFFIC, "hourly_profile": [1.0] * 25}},
            "/traffic/hourly_profile",
        ),
        ("concurrency-estimates", {"traffic": TRAFFIC}, ""),
        ("concurrency-estimates", {"traffic": TRAFFIC, "model": LLAMA}, ""),
        ("cost-projections", {}, ""),
        ("cost-projections", {"price_usd_per_hour": 1, "offer": "runpod/x"}, "/offer"),
    ],
)
def test_what_is_impossible_is_named(api: "Api", endpoint: str, body: dict[str, Any], pointer: str) -> None:
    response = api.post(endpoint, body)
    assert response.status_code == 422
    assert response.headers["content-type"] == "application/problem+json"
    problem = response.json()
    assert problem.keys() >= {"type", "title", "status", "detail", "instance", "errors"}
    assert problem["instance"] == f"/v1/{endpoint}"
    [error] = problem["errors"]
    assert error["pointer"] == pointer
    assert error["code"] in {"impossible_combination", "invalid_value", "out_of_range"}
    assert error["message"].endswith(".")
    assert api.client.get(problem["type"]).status_code == 200


def test_a_catalog_model_says_the_same_as_its_id_in_an_object(api: "Api") -> None:
    plain = api.ask("vram-budgets", {"model": LLAMA, "gpu": "l4-24gb"})
    assert api.ask("vram-budgets", {"model": {"id": LLAMA}, "gpu": "l4-24gb"}) == plain
    other_case = api.ask("vram-budgets", {"model": LLAMA.upper(), "gpu": "l4-24gb"})
    assert other_case["per_gpu"] == plain["per_gpu"]
    assert other_case["kv_cache"] == plain["kv_cache"]


def test_given_counts_replace_those_of_the_config(api: "Api") -> None:
    known = api.get(f"/v1/models/{LLAMA}")
    body = {"model": {"id": LLAMA, "parameters": 2 * known["total_parameters"]}, "gpu": "h100-sxm-80gb"}
    single = api.ask("vram-budgets", {"model": LLAMA, "gpu": "h100-sxm-80gb"})["per_gpu"]["weights_bytes"]
    assert api.ask("vram-budgets", body)["per_gpu"]["weights_bytes"] == pytest.approx(2 * single, rel=2e-3)


def test_a_concurrency_estimate_takes_its_duration_from_the_deployment(api: "Api") -> None:
    body = {"model": LLAMA, "gpu": "h100-sxm-80gb", "traffic": TRAFFIC}
    duration_s = api.ask("performance-estimates", body)["e2e_ms"]["mean"] / 1000
    answer = api.ask("concurrency-estimates", body)
    assert answer["request_duration_s"] == pytest.approx(duration_s)
    told = api.ask("concurrency-estimates", {"traffic": TRAFFIC, "request_duration_s": duration_s})
    assert answer["active_requests"] == told["active_requests"]


def test_an_overloaded_deployment_has_no_number_of_active_requests(api: "Api") -> None:
    body = {"model": LLAMA, "gpu": "h100-sxm-80gb", "traffic": {**TRAFFIC, "requests_per_second": 1000}}
    answer = api.ask("concurrency-estimates", body)
    assert answer["active_requests"] is None
    assert answer["reason_code"] == "traffic_above_capacity"
    assert answer["reason"]


def test_faults_of_several_members_are_told_together(api: "Api") -> None:
    body = {
        "model": "nothing-like-it",
        "traffic": {"input_tokens": 1, "output_tokens": 1},
        "weights": "fp9",
        "constraints": {"gpus": ["h101"], "providers": ["runpot"]},
    }
    response = api.post("recommendations", body)
    assert response.status_code == 422
    pointers = {error["pointer"] for error in response.json()["errors"]}
    assert pointers >= {"/model", "/constraints/gpus/0", "/constraints/providers/0", "/traffic"}


def test_answers_come_in_the_language_asked_for(api: "Api") -> None:
    body = {"model": LLAMA, "gpu": "l4-24gb"}
    response = api.post("vram-budgets", body)
    assert response.headers["content-language"] == "en"
    assert "accept-language" in response.headers["vary"].lower()
