"""What is given is used or said to be unused; what does not apply is null; parameters are refused where they do nothing."""

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from conftest import Api

LLAMA = "meta-llama/Llama-3.1-8B-Instruct"
ENCODER = "BAAI/bge-base-en-v1.5"
TRAFFIC: dict[str, Any] = {"requests_per_second": 1.0, "input_tokens": 1000, "output_tokens": 200}
READING: dict[str, Any] = {"requests_per_second": 5.0, "input_tokens": 300, "output_tokens": 1}
PLACED: dict[str, Any] = {"model": LLAMA, "gpu": "h100-sxm-80gb", "traffic": TRAFFIC}


@pytest.mark.parametrize("endpoint", ["recommendations", "performance-estimates"])
def test_what_changes_nothing_is_listed(api: "Api", endpoint: str) -> None:
    plain = PLACED if endpoint == "performance-estimates" else {"model": LLAMA, "traffic": TRAFFIC, "limit": 1}
    given = {"targets": {"availability": 0.999}, "application": {"users_region": "eu-west"}}
    listed = {one["field"]: one for one in api.ask(endpoint, {**plain, **given})["assumptions"]}
    assert listed["/targets/availability"]["value"] == 0.999
    assert "spare" in listed["/targets/availability"]["why"]
    assert listed["/application/users_region"]["value"] == "eu-west"
    assert "network_rtt_ms" in listed["/application/users_region"]["why"]
    silent = {one["field"] for one in api.ask(endpoint, {**plain, "targets": {}, "application": {}})["assumptions"]}
    assert not silent & {"/targets/availability", "/application/users_region"}


@pytest.mark.parametrize(
    "path", ["models/" + LLAMA, "gpus/h100-sxm-80gb", "quantizations/fp8", "engines/vllm", "providers/runpod"]
)
def test_details_have_nothing_to_explain(api: "Api", path: str) -> None:
    assert api.client.get(f"/v1/{path}").status_code == 200
    assert api.client.get(f"/v1/{path}", params={"explain": "true"}).status_code == 422


def test_models_that_only_read_have_no_pace_of_output(api: "Api") -> None:
    body = {"model": ENCODER, "gpu": "l4-24gb", "traffic": READING}
    answer = api.ask("performance-estimates", body, explain="true")
    assert answer["tpot_ms"] is None
    assert answer["throughput"]["output_tokens_per_second"] == 0.0
    assert answer["throughput"]["output_tokens_per_second_per_user"] is None
    assert answer["throughput"]["intervals"].keys() == {"requests_per_second"}
    assert answer["single_stream"]["ttft_ms"] > 0.0
    assert answer["single_stream"]["tpot_ms"] is None
    assert answer["curve"]
    for point in answer["curve"]:
        assert (point["tpot_ms_p95"], point["output_tokens_per_second"]) == (None, 0.0)


def test_an_estimate_without_numbers_keeps_its_assumptions(api: "Api") -> None:
    answer = api.ask("concurrency-estimates", {**PLACED, "traffic": {**TRAFFIC, "requests_per_second": 10_000.0}})
    assert answer["active_requests"] is None
    assert "under no targets" not in answer["reason"]
    assert {"/traffic/arrivals/process", "/headroom", "/weights"} <= {one["field"] for one in answer["assumptions"]}


def test_intervals_of_tokens_are_of_one_kind(api: "Api") -> None:
    found = api.ask("vram-budgets", {"model": LLAMA, "gpu": "h100-sxm-80gb"})["kv_cache"]["interval"]
    assert type(found["low"]) is type(found["high"])


def test_the_newest_version_is_written_like_the_others(api: "Api") -> None:
    for engine in api.get("/v1/engines")["items"]:
        assert engine["newest_version"] in {row["version"] for row in engine["versions"]}


def test_the_objective_says_what_it_ranks_by(api: "Api") -> None:
    schemas = api.get("/openapi.json")["components"]["schemas"]
    told = " ".join(schemas["RecommendationRequest"]["properties"]["objective"]["description"].split())
    assert "min_latency: the shortest time to the last token at p95" in told


def test_a_config_of_the_callers_own_is_explained_but_not_sent_back(api: "Api") -> None:
    config = {
        "model_type": "llama",
        "hidden_size": 4096,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "intermediate_size": 14336,
        "vocab_size": 128256,
        "id2label": {str(number): "label" for number in range(1000)},
    }
    body = {
        "model": {"id": "own/model", "config": config},
        "traffic": {"requests_per_second": 1, "input_tokens": 500, "output_tokens": 100},
    }
    answer = api.ask("recommendations", body, explain="true")
    assert answer["derivation"]
    assert "id2label" not in repr(answer)
    assert "model" not in answer["recommendations"][0]["replay"]["vram_budget"]
