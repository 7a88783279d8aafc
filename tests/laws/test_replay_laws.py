"""Every option of every recommendation is what the single endpoints answer when they are asked about it."""

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from conftest import Api

LENGTHS: dict[str, Any] = {"input_tokens": 1000, "output_tokens": 200}
SPREAD: dict[str, Any] = {"input_tokens": {"mean": 1000, "p95": 4000, "max": 8000}, "output_tokens": {"mean": 100}}

LOADS: dict[str, dict[str, Any]] = {
    "rate": {"requests_per_second": 2.0, **LENGTHS},
    "closed": {"concurrent_requests": 64, **LENGTHS},
    "registered": {
        "users": {"registered": 10_000, "active_share_at_peak": 0.05, "requests_per_active_user_hour": 20},
        **LENGTHS,
    },
    "bursts": {
        "users": {"active_at_peak": 3000, "requests_per_active_user_hour": 20},
        "burst_factor": 1.5,
        "arrivals": {"process": "gamma", "cv": 2.0},
        "prefix_cache_hit_rate": 0.3,
        "hourly_profile": [0.1] * 8 + [1.0] * 8 + [0.5] * 8,
        **SPREAD,
    },
    "paced": {"requests_per_second": 5.0, "arrivals": {"process": "constant"}, **SPREAD},
    "batch": {"batch": {"requests": 200_000, "deadline_s": 28_800, "runs_per_month": 30}, **LENGTHS},
    "small batch": {"batch": {"requests": 3, "deadline_s": 600}, **LENGTHS},
    "trickle": {"requests_per_second": 1e-6, **LENGTHS},
}
MODELS: dict[str, Any] = {
    "dense": "meta-llama/Llama-3.1-8B-Instruct",
    "dense large": "meta-llama/Llama-3.3-70B-Instruct",
    "named loosely": "llama-3.1-8b",
    "moe": "Qwen/Qwen3-30B-A3B",
    "mxfp4": "openai/gpt-oss-120b",
    "mla": "deepseek-ai/DeepSeek-R1",
    "nvfp4 published": "deepseek-ai/DeepSeek-V3.1",
    "window": "google/gemma-3-27b-it",
    "state space": "ibm-granite/granite-4.0-h-small",
    "linear attention": "Qwen/Qwen3-Next-80B-A3B-Instruct",
    "awq repository": "Qwen/Qwen2.5-72B-Instruct-AWQ",
    "only a size": {"parameters": 7_000_000_000},
    "config": {
        "id": "org/name",
        "config": {
            "model_type": "llama",
            "hidden_size": 4096,
            "num_hidden_layers": 32,
            "num_attention_heads": 32,
            "num_key_value_heads": 8,
            "intermediate_size": 14_336,
            "vocab_size": 128_256,
        },
    },
    "encoder": "BAAI/bge-m3",
}
WISHES: dict[str, dict[str, Any]] = {
    "plain": {},
    "targets": {"targets": {"ttft_ms": {"p95": 2000}, "tpot_ms": {"p95": 60}}},
    "application": {
        "objective": "min_latency",
        "application": {"retrieval_ms": 150, "network_rtt_ms": 30, "llm_calls_per_request": 3},
        "targets": {"e2e_ms": {"p95": 120_000}},
    },
    "throughput": {"objective": "max_throughput_per_usd", "constraints": {"max_gpus": 16}},
    "regret": {
        "objective": "least_regret",
        "operation": {
            "environments": [{"name": "test", "replicas": 2, "hours_per_month": 200}],
            "hours_per_month": 500,
        },
    },
    "engine": {
        "kv_cache": "fp8",
        "engine": {"name": "vllm", "version": "v0.19.0+cu128", "gpu_memory_utilization": 0.85, "enforce_eager": True},
    },
    "speculative": {"engine": {"speculative": {"method": "ngram", "tokens": 3, "acceptance_rate": 0.6}}},
    "sglang": {"engine": {"name": "sglang"}},
    "tensorrt-llm": {"engine": {"name": "tensorrt-llm"}},
    "llama.cpp": {"engine": {"name": "llama.cpp"}},
    "all terms": {"constraints": {"terms": ["spot", "reserved", "on_demand", "monthly"], "allow_undated": True}},
    "draft model": {
        "engine": {"speculative": {"tokens": 4, "acceptance_rate": 0.7, "draft_model": "llama-3.2-1b"}},
        "constraints": {"gpus": ["h100-sxm-80gb", "mi300x-192gb"]},
    },
    "amd": {"constraints": {"gpus": ["mi300x-192gb", "mi325x-256gb", "mi355x-288gb"]}},
    "as batch": {"kind": "batch", "headroom": 0.0, "spare_replicas": 0},
}
PARTS = {
    "vram": ("vram_budget", "vram-budgets"),
    "performance": ("performance_estimate", "performance-estimates"),
    "cost": ("cost_projection", "cost-projections"),
}


def requests_for(model: str) -> list[tuple[str, str]]:
    """Loads and wishes so spread over the models that each load and wish meets several of them."""
    at = list(MODELS).index(model)
    loads, wishes = list(LOADS), list(WISHES)
    return [(load, wishes[(at * 5 + n * 7) % len(wishes)]) for n, load in enumerate(loads)]


@pytest.mark.parametrize("model", MODELS)
def test_each_part_is_the_single_endpoints_answer(api: "Api", model: str) -> None:
    options = 0
    for load, wish in requests_for(model):
        body = {"model": MODELS[model], "traffic": LOADS[load], "limit": 2, **WISHES[wish]}
        answer = api.ask("recommendations", body)
        for option in answer["recommendations"]:
            options += 1
            for part, (replay, endpoint) in PARTS.items():
                again = option["replay"][replay]
                if part != "cost" and "model" not in again:  # a config of the caller's own is not sent back
                    again = {"model": MODELS[model], **again}
                single = api.ask(endpoint, again)
                assert single.pop("provenance") == answer["provenance"]
                assert single == option[part], f"{part} of {option['gpu']} under {load}, {wish}"
    assert options >= 6
