"""With ``?explain=true`` every step gives the number of the answer, and its formula gives it again from its inputs."""

import math
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from conftest import Api

FUNCTIONS = {"ceil": math.ceil, "floor": math.floor, "min": min, "max": max, "round": round}
LENGTHS = {"input_tokens": 1500, "output_tokens": 250}
SPREAD = {"input_tokens": {"mean": 1500, "p95": 6000, "max": 12000}, "output_tokens": {"mean": 250}}

DEPLOYMENTS: dict[str, dict[str, Any]] = {
    "dense": {"model": "meta-llama/Llama-3.1-8B-Instruct", "gpu": "h100-sxm-80gb"},
    "no graphs, eager": {
        "model": "meta-llama/Llama-3.1-8B-Instruct",
        "gpu": "l4-24gb",
        "engine": {"enforce_eager": True, "gpu_memory_utilization": 0.85, "version": "0.10.0", "max_model_len": 8192},
    },
    "does not fit": {"model": "meta-llama/Llama-3.3-70B-Instruct", "gpu": "l4-24gb"},
    "tensor": {"model": "meta-llama/Llama-3.3-70B-Instruct", "gpu": "h100-sxm-80gb", "parallelism": {"tensor": 4}},
    "more ranks than heads": {
        "model": "Qwen/Qwen2.5-72B-Instruct-AWQ",
        "gpu": "a100-sxm-80gb",
        "parallelism": {"tensor": 16},
    },
    "pipeline": {
        "model": "meta-llama/Llama-3.3-70B-Instruct",
        "gpu": "h100-sxm-80gb",
        "parallelism": {"tensor": 2, "pipeline": 3},
    },
    "tied, pipeline": {"model": "meta-llama/Llama-3.2-3B-Instruct", "gpu": "l4-24gb", "parallelism": {"pipeline": 2}},
    "moe, data, expert": {
        "model": "Qwen/Qwen3-30B-A3B",
        "gpu": "h100-sxm-80gb",
        "parallelism": {"data": 4, "expert": True},
    },
    "moe over data": {"model": "Qwen/Qwen3-30B-A3B", "gpu": "h100-sxm-80gb", "parallelism": {"data": 2}},
    "mxfp4": {"model": "openai/gpt-oss-120b", "gpu": "h100-sxm-80gb", "parallelism": {"tensor": 4}},
    "latent": {"model": "deepseek-ai/DeepSeek-R1", "gpu": "h200-sxm-141gb", "parallelism": {"tensor": 8}},
    "latent, fp8 cache": {
        "model": "deepseek-ai/DeepSeek-V3.2",
        "gpu": "b200-sxm-180gb",
        "parallelism": {"tensor": 8},
        "kv_cache": "fp8",
    },
    "windows": {"model": "google/gemma-3-27b-it", "gpu": "h100-sxm-80gb", "kv_cache": "fp8"},
    "windows billed as full": {
        "model": "google/gemma-3-27b-it",
        "gpu": "h100-sxm-80gb",
        "engine": {"hybrid_kv_cache": False},
    },
    "state": {"model": "ibm-granite/granite-4.0-h-small", "gpu": "h100-sxm-80gb"},
    "linear attention": {
        "model": "Qwen/Qwen3-Next-80B-A3B-Instruct",
        "gpu": "h100-sxm-80gb",
        "parallelism": {"tensor": 4},
    },
    "encoder": {"model": "BAAI/bge-m3", "gpu": "l4-24gb"},
    "offload, adapters, given pool": {
        "model": "meta-llama/Llama-3.1-8B-Instruct",
        "gpu": "h100-sxm-80gb",
        "engine": {
            "cpu_offload_bytes": 2_000_000_000,
            "lora": {"max_loras": 4, "max_rank": 32},
            "kv_cache_memory_bytes": 20_000_000_000,
        },
    },
    "speculative": {
        "model": "meta-llama/Llama-3.3-70B-Instruct",
        "gpu": "h200-sxm-141gb",
        "parallelism": {"tensor": 2},
        "engine": {"speculative": {"method": "ngram", "tokens": 3, "acceptance_rate": 0.6}, "chunked_prefill": False},
    },
    "sglang": {
        "model": "meta-llama/Llama-3.3-70B-Instruct",
        "gpu": "h100-sxm-80gb",
        "parallelism": {"tensor": 4},
        "engine": {"name": "sglang"},
    },
    "sglang, windows": {"model": "google/gemma-3-27b-it", "gpu": "h100-sxm-80gb", "engine": {"name": "sglang"}},
    "sglang, state": {
        "model": "Qwen/Qwen3-Next-80B-A3B-Instruct",
        "gpu": "h200-sxm-141gb",
        "parallelism": {"tensor": 2},
        "engine": {"name": "sglang"},
    },
    "tensorrt-llm": {
        "model": "meta-llama/Llama-3.1-8B-Instruct",
        "gpu": "h100-sxm-80gb",
        "engine": {"name": "tensorrt-llm"},
    },
    "llama.cpp": {
        "model": "meta-llama/Llama-3.1-8B-Instruct",
        "gpu": "rtx-4090-24gb",
        "weights": "gguf-q4-k-m",
        "engine": {"name": "llama.cpp", "ctx_size": 16384, "parallel": 4},
    },
    "llama.cpp, latent": {
        "model": "deepseek-ai/DeepSeek-R1",
        "gpu": "b200-sxm-180gb",
        "weights": "gguf-q4-k-m",
        "parallelism": {"tensor": 8},
        "engine": {"name": "llama.cpp", "ctx_size": 8192, "parallel": 2},
    },
}
LOADS: dict[str, dict[str, Any]] = {
    "rate": {"traffic": {"requests_per_second": 0.5, **SPREAD}},
    "closed": {"traffic": {"concurrent_requests": 24, **LENGTHS}, "targets": {"tpot_ms": {"p95": 60}}},
    "batch": {"traffic": {"batch": {"requests": 100_000, "deadline_s": 28_800}, **LENGTHS}},
    "above capacity": {"traffic": {"requests_per_second": 1e5, **LENGTHS}, "run": {"requests": 5000}},
    "without end": {"traffic": {"requests_per_second": 1e5, **LENGTHS}},
    "application": {
        "traffic": {"requests_per_second": 0.2, "prefix_cache_hit_rate": 0.4, **SPREAD},
        "application": {"retrieval_ms": 150, "network_rtt_ms": 30, "llm_calls_per_request": 3},
    },
}
MEMBERS = {"derivation", "explanation", "checklist"}


def at(document: Any, pointer: str) -> Any:  # noqa: ANN401 - any JSON value
    for part in pointer.split("/")[1:]:
        document = document[int(part)] if isinstance(document, list) else document[part]
    return document


def check_steps(answer: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Every step's result stands at its pointer, and follows from its formula; returns the steps by pointer."""
    for step in answer["derivation"]:
        result = step["result"]
        assert result == at(answer, step["field"]), step
        name, expression = step["formula"].split(" = ")
        assert name.isidentifier()
        names = {**FUNCTIONS, **step["inputs"]}
        again = eval(expression, {"__builtins__": {}}, names)  # noqa: S307 - the service's own formula
        cut = isinstance(result, int) and abs(again - result) < 1.0
        assert cut or math.isclose(again, result, rel_tol=1e-9, abs_tol=1e-12), (again, step)
        used = compile(expression, "formula", "eval").co_names
        assert set(step["inputs"]) == set(used) - FUNCTIONS.keys(), step
        assert step["unit"]
        assert step["source"]
    return {step["field"]: step for step in answer["derivation"]}


def explained(api: "Api", endpoint: str, body: dict[str, Any]) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """The answer with its explanation, which changes nothing else."""
    plain = api.ask(endpoint, body)
    answer = api.ask(endpoint, body, explain="true")
    assert not MEMBERS & plain.keys()
    assert {name: value for name, value in answer.items() if name not in MEMBERS} == plain
    assert answer["explanation"]["summary"]
    assert answer["explanation"]["not_considered"]
    sentences = [answer["explanation"]["summary"], *answer["explanation"]["risks"], *answer["checklist"]]
    assert all(" " in sentence and "{" not in sentence for sentence in sentences)
    return answer, check_steps(answer)


@pytest.mark.parametrize("name", DEPLOYMENTS)
def test_memory(api: "Api", name: str) -> None:
    body = {**DEPLOYMENTS[name], "context_tokens": 4000, "concurrent_sequences": 8}
    answer, steps = explained(api, "vram-budgets", body)
    assert steps.keys() >= {"/per_gpu/weights_bytes", "/per_gpu/budget_bytes", "/per_gpu/unused_bytes"}
    if answer["verdict"] == "starts" and answer["kv_cache"]["capacity_tokens"]:
        assert steps.keys() >= {"/per_gpu/kv_cache_bytes", "/kv_cache/bytes_per_token", "/kv_cache/max_concurrency"}
        assert "/kv_cache/capacity_tokens" in steps
    made_of_parameters = answer["weights"].keys() - {"adapters", "draft", "in_host_memory"}
    assert {f"/weights/{name}" for name in made_of_parameters} <= steps.keys()


@pytest.mark.parametrize("load", LOADS)
@pytest.mark.parametrize("name", DEPLOYMENTS)
def test_performance(api: "Api", name: str, load: str) -> None:
    answer, steps = explained(api, "performance-estimates", {**DEPLOYMENTS[name], **LOADS[load]})
    if answer["throughput"] is None:
        assert not steps
        return
    assert steps.keys() >= {"/max_requests_per_second", "/throughput/total_tokens_per_second"}
    for member in ("ttft_ms", "tpot_ms", "e2e_ms"):
        assert (f"/{member}/mean" in steps) == (answer[member] is not None), member


@pytest.mark.parametrize(
    "body",
    [
        {"traffic": {"requests_per_second": 4.0}, "request_duration_s": 12.5},
        {"traffic": {"concurrent_requests": 40, **LENGTHS}, "request_duration_s": 8, "headroom": 0.1},
        {"traffic": {"users": {"active_at_peak": 200, "requests_per_active_user_hour": 20}, **SPREAD}, "headroom": 0.0}
        | DEPLOYMENTS["dense"],
    ],
)
def test_concurrency(api: "Api", body: dict[str, Any]) -> None:
    _, steps = explained(api, "concurrency-estimates", body)
    assert "/with_headroom/active_requests/mean" in steps
    assert ("/request_duration_s" in steps) == ("model" in body)


def test_concurrency_without_a_duration(api: "Api") -> None:
    answer, steps = explained(api, "concurrency-estimates", {**DEPLOYMENTS["dense"], **LOADS["without end"]})
    assert answer["active_requests"] is None
    assert not steps


@pytest.mark.parametrize(
    "body",
    [
        {"price_usd_per_hour": 2.5},
        {"price_usd_per_hour": 2.5, "throughput": {"output_tokens_per_hour": 1e6}},
        {
            "price_usd_per_hour": 30.0,
            "replicas": 3,
            "hours_per_month": 400,
            "idle_hours": 30,
            "starts_per_month": 20,
            "start_up_s": 300,
            "throughput": {
                "output_tokens_per_hour": 1e6,
                "input_tokens_per_hour": 5e6,
                "requests_per_hour": 9000,
                "prefix_cache_hit_rate": 0.3,
            },
            "utilization": 0.4,
            "storage_gb": 500,
            "egress_gb": 20,
            "failure_reserve_share": 0.05,
            "engineering_usd_per_month": 1000,
            "managed_api": {"usd_per_million_input_tokens": 0.5, "usd_per_million_output_tokens": 1.5},
        },
    ],
)
def test_cost(api: "Api", body: dict[str, Any]) -> None:
    answer, steps = explained(api, "cost-projections", body)
    assert steps.keys() >= {"/monthly_usd/compute", "/monthly_usd/total"}
    for member in ("usd_per_million_output_tokens", "usd_per_million_input_tokens", "usd_per_request"):
        assert (f"/{member}" in steps) == (answer[member] is not None), member


WORKLOADS: dict[str, dict[str, Any]] = {
    "rate": {"traffic": {"requests_per_second": 20.0, **SPREAD}, "targets": {"ttft_ms": {"p95": 2000}}},
    "closed": {"traffic": {"concurrent_requests": 500, **LENGTHS}},
    "batch": {"traffic": {"batch": {"requests": 2_000_000, "deadline_s": 28_800}, **LENGTHS}},
    "more instances than a body may ask for": {"traffic": {"requests_per_second": 1e6, **LENGTHS}},
    "trickle": {"traffic": {"requests_per_second": 1e-6, **LENGTHS}},
    "environments, by the month": {
        "traffic": {"requests_per_second": 5.0, **LENGTHS},
        "operation": {
            "hours_per_month": 300,
            "environments": [{"name": "test", "replicas": 2, "hours_per_month": 100}],
        },
        "constraints": {"terms": ["monthly", "reserved"], "max_min_term_months": 12},
        "application": {"retrieval_ms": 150, "llm_calls_per_request": 2},
    },
}
MODELS = ("meta-llama/Llama-3.3-70B-Instruct", "openai/gpt-oss-120b", "BAAI/bge-m3", "google/gemma-3-27b-it")


@pytest.mark.parametrize("load", WORKLOADS)
@pytest.mark.parametrize("model", MODELS)
def test_the_first_recommendation(api: "Api", model: str, load: str) -> None:
    answer, steps = explained(api, "recommendations", {"model": model, "limit": 2, **WORKLOADS[load]})
    first = answer["recommendations"][0]
    ends = ("replicas", "instances", "monthly_usd", "vram/per_gpu/weights_bytes", "performance/max_requests_per_second")
    assert steps.keys() >= {f"/recommendations/0/{end}" for end in ends}
    assert first["gpu"] in answer["explanation"]["summary"]
    assert answer["explanation"]["risks"] == first["risks"]
    assert set(first["verify"]) <= set(answer["checklist"])
    assert len(set(answer["explanation"]["not_considered"])) == len(answer["explanation"]["not_considered"])


def test_no_recommendation(api: "Api") -> None:
    body = {"model": MODELS[0], **WORKLOADS["rate"], "constraints": {"max_monthly_usd": 1}}
    answer, steps = explained(api, "recommendations", body)
    assert answer["recommendations"] == []
    assert not steps
