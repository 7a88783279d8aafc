"""Every body within the bounds of its schema, the bounds themselves above all, is answered or refused with a meaning.

Bodies are drawn from the wire types, so a new field is covered as soon as it is declared; ids come from the catalogs.
numpy's warnings are errors here, and an answer is searched for NaN and infinity before the encoder turns them into null.
"""

import json
import math
import time
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from litestar.testing import TestClient
from msgspec import inspect as mi

from service.api import operation
from service.api.encoding import encode
from service.api.wire import (
    ConcurrencyRequest,
    CostRequest,
    PerformanceRequest,
    RecommendationRequest,
    VramBudgetRequest,
)
from service.app import create_app
from service.catalog.snapshot import load_snapshot
from service.domain.message import Message
from service.settings import read_settings

MEANINGS = {"unknown_id", "impossible_combination"}
MOST_CPU_S = 1.0
HOURS_OF_A_DAY = 24

CATALOG = load_snapshot()
IDS: dict[str, list[str]] = {
    "model": sorted(CATALOG.models),
    "id": sorted(CATALOG.models),
    "draft_model": sorted(CATALOG.models),
    "gpu": sorted(CATALOG.accelerators),
    "gpus": sorted(CATALOG.accelerators),
    "weights": ["auto", *(name for name, one in CATALOG.quantizations.items() if one.quantizes)],
    "kv_cache": ["auto", *(name for name, one in CATALOG.quantizations.items() if one.kv_bits is not None)],
    "providers": sorted(CATALOG.providers),
    "regions": ["US", "EU", "Europe", "eu-west-1", "nowhere"],
    "offer": sorted(CATALOG.offers),
    "version": ["0.0", "0.6.3", "0.19.0", "b4000", "99999", "latest"],
}
"""Ids by the field that takes them."""
EXCLUSIVE = {
    "Traffic": [{"requests_per_second"}, {"concurrent_requests"}, {"users"}, {"batch"}],
    "Users": [{"active_at_peak"}, {"registered", "active_share_at_peak"}],
    "CostRequest": [{"price_usd_per_hour"}, {"offer"}],
    "ConcurrencyRequest": [{"request_duration_s"}, {"model", "gpu"}],
}
"""Groups of members of which exactly one is drawn, by Struct."""
NEEDED = {
    "Traffic": [{"input_tokens", "output_tokens"}],
    "ModelSpec": [{"id"}, {"config"}, {"parameters"}],
    "PercentileTargets": [{"p50"}, {"p95"}, {"p99"}, {"mean"}],
}
"""Groups of members of which at least one is drawn."""
DATES = ["0001-01-01", "2026-12-01", "9999-12-31"]
SIZES = st.sampled_from([1, 2, 8, 64, 128, 4096, 10**6, 10**9])
NUMBERS = SIZES | st.sampled_from([0, 7, 2**53, 0.5, 1e300, -1])
CONFIGS = st.fixed_dictionaries(
    {
        "model_type": st.sampled_from(["llama", "qwen3_moe", "deepseek_v3", "gemma3_text", "mamba2", "gpt2", "x"]),
        "hidden_size": SIZES,
        "num_hidden_layers": st.sampled_from([1, 3, 80, 10_000]),
        "num_attention_heads": SIZES,
        "vocab_size": SIZES,
        "intermediate_size": SIZES,
    },
    optional={
        "num_key_value_heads": SIZES,
        "head_dim": SIZES,
        "max_position_embeddings": NUMBERS,
        "sliding_window": NUMBERS,
        "num_experts": NUMBERS,
        "num_experts_per_tok": NUMBERS,
        "moe_intermediate_size": NUMBERS,
        "n_routed_experts": NUMBERS,
        "kv_lora_rank": NUMBERS,
        "qk_rope_head_dim": NUMBERS,
        "first_k_dense_replace": NUMBERS,
        "state_size": NUMBERS,
    },
)


def _number(kind: mi.FloatType | mi.IntType, name: str) -> st.SearchStrategy[float]:
    assert kind.le is not None, f"{name} has no upper bound"
    if isinstance(kind, mi.IntType):
        assert kind.ge is not None, f"{name} has no lower bound"
        return st.sampled_from([kind.ge, kind.le]) | st.integers(kind.ge, kind.le)
    low = (
        math.nextafter(kind.gt, math.inf) if kind.gt is not None else float(kind.ge if kind.ge is not None else -1e300)
    )
    high = float(kind.le)
    return st.sampled_from([low, high, min(max(1.0, low), high)]) | st.floats(low, high)


def _text(kind: mi.StrType, name: str) -> st.SearchStrategy[str]:
    return st.sampled_from(IDS[name] if name in IDS else ["x", "ü" * (kind.max_length or 50)])


def _list(kind: mi.VarTupleType, name: str) -> st.SearchStrategy[list[Any]]:
    item, least = legal(kind.item_type, name), kind.min_length or 0
    if least == HOURS_OF_A_DAY:
        return st.sampled_from([24, 168]).flatmap(lambda hours: item.map(lambda value: [value] * hours))
    return st.lists(item, min_size=least, max_size=least + 2)


def _dictionary(kind: mi.DictType, name: str) -> st.SearchStrategy[dict[str, Any]]:
    if name == "dense_tflops":
        value = legal(kind.value_type)
        return st.fixed_dictionaries({"bf16": value}, optional={"fp8": value, "int8": value, "fp4": value})
    return CONFIGS if name == "config" else st.just({})


def _object(kind: mi.StructType, name: str) -> st.SearchStrategy[dict[str, Any]]:
    del name
    fields = {field.encode_name: legal(field.type, field.encode_name) for field in kind.fields}
    required = {field.encode_name for field in kind.fields if field.required}
    exclusive, needed = EXCLUSIVE.get(kind.cls.__name__, []), NEEDED.get(kind.cls.__name__, [])
    kept_out: set[str] = set().union(*exclusive)

    def with_members(members: set[str]) -> st.SearchStrategy[dict[str, Any]]:
        always = required | members
        return st.fixed_dictionaries(
            {name: fields[name].filter(lambda value: value is not None) for name in sorted(always)},
            optional={name: value for name, value in fields.items() if name not in always | kept_out},
        )

    drawn = st.builds(lambda one, other: one | other, _one_of(exclusive), _one_of(needed)).flatmap(with_members)
    return drawn if kind.tag is None else drawn.map(lambda value: {kind.tag_field: kind.tag, **value})


def _one_of(groups: list[set[str]]) -> st.SearchStrategy[set[str]]:
    return st.sampled_from(groups or [set()])


READERS: dict[type[mi.Type], Callable[[Any, str], st.SearchStrategy[Any]]] = {
    mi.Metadata: lambda kind, name: legal(kind.type, name),
    mi.BoolType: lambda _, __: st.booleans(),
    mi.FloatType: _number,
    mi.IntType: _number,
    mi.StrType: _text,
    mi.DateType: lambda _, __: st.sampled_from(DATES),
    mi.LiteralType: lambda kind, _: st.sampled_from(kind.values),
    mi.NoneType: lambda _, __: st.none(),
    mi.UnionType: lambda kind, name: st.one_of(*(legal(one, name) for one in kind.types)),
    mi.VarTupleType: _list,
    mi.DictType: _dictionary,
    mi.StructType: _object,
}


def legal(kind: mi.Type, name: str = "") -> st.SearchStrategy[Any]:
    """JSON values that a type of the wire admits; ``name`` is the field that holds them."""
    return READERS[type(kind)](kind, name)


def _numbers(value: object) -> Iterator[float]:
    match value:
        case float():
            yield value
        case dict():
            for member in value.values():
                yield from _numbers(member)
        case list() | tuple():
            for member in value:
                yield from _numbers(member)


def _encode_finite(answer: object, language: str) -> bytes:
    plain = msgspec.to_builtins(answer, enc_hook=lambda value: value.code if isinstance(value, Message) else str(value))
    wrong = [number for number in _numbers(plain) if not math.isfinite(number)]
    assert not wrong, plain
    return encode(answer, language)


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient[Any]]:
    store = tmp_path_factory.mktemp("extremes") / "store.sqlite"
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(operation, "encode", _encode_finite)
        with TestClient(create_app(read_settings({"SIZING_STORE_PATH": str(store)}))) as client:
            yield client


ENDPOINTS = {
    "vram-budgets": VramBudgetRequest,
    "concurrency-estimates": ConcurrencyRequest,
    "performance-estimates": PerformanceRequest,
    "recommendations": RecommendationRequest,
    "cost-projections": CostRequest,
}


FOUND_WANTING: dict[str, dict[str, Any]] = {
    "a deadline that no number of replicas meets": {
        "model": "internlm/internlm2_5-7b-chat",
        "traffic": {"batch": {"requests": 1, "deadline_s": 1}, "input_tokens": 3000, "output_tokens": 200},
    },
    "a length that hardly varies": {
        "model": "upstage/SOLAR-10.7B-Instruct-v1.0",
        "traffic": {
            "concurrent_requests": 1e6,
            "input_tokens": 1e7,
            "output_tokens": {"mean": 1.0000000000000002},
        },
    },
}
"""Bodies that were once answered with a 500."""


@pytest.mark.parametrize("name", FOUND_WANTING)
def test_what_was_found_wanting_has_an_answer(client: TestClient[Any], name: str) -> None:
    answer = client.post("/v1/recommendations", json=FOUND_WANTING[name])
    assert answer.status_code == 200, answer.text


def test_a_deadline_that_is_missed_is_a_reason(client: TestClient[Any]) -> None:
    body = FOUND_WANTING["a deadline that no number of replicas meets"]
    rejected = client.post("/v1/recommendations", json=body).json()["rejected"]
    missed = [row for row in rejected if row["reason_code"] == "load_above_capacity"]
    assert missed
    assert all(row["detail"]["limit"] < row["detail"]["value"] for row in missed)


@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_every_body_within_its_bounds_has_an_answer(client: TestClient[Any], endpoint: str) -> None:
    @settings(max_examples=100, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
    @given(legal(mi.type_info(ENDPOINTS[endpoint])))
    def holds(body: dict[str, Any]) -> None:
        started_at = time.process_time()
        answer = client.post(f"/v1/{endpoint}", json=body)
        assert time.process_time() - started_at < MOST_CPU_S, body
        if answer.status_code == 200:
            json.loads(answer.content, parse_constant=pytest.fail)
            return
        assert answer.status_code == 422, (answer.text, body)
        assert {fault["code"] for fault in answer.json()["errors"]} <= MEANINGS, (answer.text, body)

    holds()
