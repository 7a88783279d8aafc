"""Laws of memory accounting: parts add up, one formula for floats and arrays, and what may grow with what."""

from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import memory_parts

from service.catalog.engines import EngineTable, behaviour, load_engines
from service.domain.architecture import Architecture, CacheLayers, ParameterCounts
from service.domain.columns import at
from service.domain.deployment import Card, Deployment, EngineSettings, KvCapacity, Layout, MemoryParts, Precision
from service.domain.engine import EngineBehaviour, EngineName
from service.domain.legal_layout import layout_fault, layout_is_legal
from service.domain.memory import kv_capacity
from service.domain.units import GIB

ENGINES: dict[EngineName, EngineTable] = load_engines(Path("service/catalog/data/engines"))
VERSIONS: tuple[tuple[EngineName, str], ...] = (
    ("vllm", "0.6.6"),
    ("vllm", "0.8.5"),
    ("vllm", "0.19.0"),
    ("vllm", "0.25.1"),
    ("sglang", "0.4.8"),
    ("sglang", "0.5.5"),
    ("tensorrt-llm", "1.0.0"),
    ("llama.cpp", "b5894"),
)
CLASSES = ("embedding", "lm_head", "attention", "attention_replicated", "dense_mlp", "routed_experts", "shared_experts")
CLASSES_OF_16_BITS = ("router", "state_mixer", "norms", "vision", "mtp")


def architecture(name: str) -> Architecture:
    """Invented models, one for each way of caching."""
    full = CacheLayers(kind="full", layers=8, kv_heads=8, elements_per_head=256, query_heads=32, score_dim=256)
    caches: dict[str, tuple[CacheLayers, ...]] = {
        "full": (msgspec.structs.replace(full, layers=32),),
        "latent": (CacheLayers(kind="latent", layers=32, elements_per_head=576, query_heads=32, score_dim=320),),
        "sliding": (full, msgspec.structs.replace(full, kind="sliding", layers=24, window_tokens=1024)),
        "chunked": (full, msgspec.structs.replace(full, kind="chunked", layers=24, window_tokens=8192)),
        "state": (full, CacheLayers(kind="state", layers=24, state_bytes=3_207_168)),
        "none": (),
    }
    experts = name == "latent"
    return Architecture(
        model_type="invented",
        role="encoder" if name == "none" else "decoder",
        layers=32,
        hidden_size=4096,
        vocab_size=128_256,
        query_heads=32,
        kv_heads=8,
        max_position_embeddings=131_072,
        intermediate_size=14_336,
        parameters=ParameterCounts(
            embedding=128_256 * 4096,
            lm_head=128_256 * 4096,
            attention=32 * 4096 * 10_240,
            attention_replicated=32 * 4096 * 576 if experts else 0,
            dense_mlp=0 if experts else 32 * 3 * 4096 * 14_336,
            routed_experts=32 * 64 * 3 * 4096 * 1024 if experts else 0,
            router=32 * 64 * 4096 if experts else 0,
            norms=65 * 4096,
        ),
        cache=caches[name],
        dense_layers=0 if experts else 32,
        moe_layers=32 if experts else 0,
        experts=64 if experts else 0,
        experts_per_token=4 if experts else 0,
        moe_intermediate_size=1024 if experts else 0,
    )


MODELS = ("full", "latent", "sliding", "chunked", "state", "none")


def deployment(row: dict[str, float]) -> Deployment:
    size = row["weight_bytes"]
    return Deployment(
        layout=Layout(tensor=row["tensor"], pipeline=row["pipeline"], data=row["data"], expert=row["expert"]),
        card=Card(
            usable_memory_bytes=row["memory"],
            bandwidth_bytes_per_s=3e12,
            weight_flops_per_s=9e14,
            flops_per_s=9e14,
            link_bytes_per_s=row["link"],
        ),
        precision=Precision(
            weight_bytes=dict.fromkeys(CLASSES, size) | dict.fromkeys(CLASSES_OF_16_BITS, 2.0),  # type: ignore[arg-type]
            kv_bytes=row["kv_bytes"],
        ),
        settings=EngineSettings(
            memory_fraction=row["fraction"],
            max_model_len=row["length"],
            max_num_seqs=row["seqs"],
            max_num_batched_tokens=row["batch"],
            block_size=row["block"],
            cuda_graphs=row["graphs"],
            hybrid_kv_cache=row["hybrid"],
        ),
    )


ROW = st.fixed_dictionaries(
    {
        "tensor": st.sampled_from([1.0, 2.0, 4.0, 8.0, 16.0]),
        "pipeline": st.sampled_from([1.0, 2.0, 3.0, 4.0, 8.0]),
        "data": st.sampled_from([1.0, 2.0, 8.0]),
        "expert": st.sampled_from([0.0, 1.0]),
        "memory": st.integers(8, 280).map(lambda gib: float(gib * GIB)),
        "link": st.sampled_from([0.0, 32e9, 450e9]),
        "weight_bytes": st.sampled_from([0.53125, 1.0, 2.0]),
        "kv_bytes": st.sampled_from([1.0, 2.0]),
        "fraction": st.floats(0.3, 0.97),
        "length": st.integers(512, 131_072).map(float),
        "seqs": st.sampled_from([1.0, 16.0, 256.0, 1024.0]),
        "batch": st.sampled_from([512.0, 2048.0, 8192.0, 16_384.0]),
        "block": st.sampled_from([16.0, 32.0, 128.0]),
        "graphs": st.sampled_from([0.0, 1.0]),
        "hybrid": st.sampled_from([0.0, 1.0]),
    }
)


def of_version(version: tuple[EngineName, str]) -> EngineBehaviour:
    return behaviour(ENGINES[version[0]], version[1])


def fields(record: MemoryParts | KvCapacity) -> dict[str, float]:
    return {name: float(getattr(record, name)) for name in record.__struct_fields__}


@settings(max_examples=60, deadline=None)
@given(rows=st.lists(ROW, min_size=2, max_size=6), model=st.sampled_from(MODELS), version=st.sampled_from(VERSIONS))
def test_one_and_many_give_the_same_bits(
    rows: list[dict[str, float]], model: str, version: tuple[EngineName, str]
) -> None:
    shape, rules = architecture(model), of_version(version)
    many = deployment({name: np.array([row[name] for row in rows]) for name in rows[0]})  # type: ignore[misc]
    parts = memory_parts(shape, many, rules)
    capacity = kv_capacity(shape, many, rules, parts)
    for index, row in enumerate(rows):
        one = deployment(row)
        alone = memory_parts(shape, one, rules)
        assert fields(at(parts, index)) == fields(alone)
        assert fields(at(capacity, index)) == fields(kv_capacity(shape, one, rules, alone))
        assert all(type(value) is not np.ndarray for value in msgspec.structs.astuple(alone))


@settings(max_examples=80, deadline=None)
@given(row=ROW, model=st.sampled_from(MODELS), version=st.sampled_from(VERSIONS))
def test_parts_add_up_to_the_card(row: dict[str, float], model: str, version: tuple[EngineName, str]) -> None:
    parts = memory_parts(architecture(model), deployment(row), of_version(version))
    named = parts.weights + parts.activation + parts.cuda_graph + parts.non_torch + parts.kv_cache + parts.unused
    assert named == pytest.approx(parts.total, abs=1.0)


@settings(max_examples=60, deadline=None)
@given(row=ROW, model=st.sampled_from(MODELS), version=st.sampled_from(VERSIONS))
def test_more_ranks_never_hold_more_weights(row: dict[str, float], model: str, version: tuple[EngineName, str]) -> None:
    shape, rules = architecture(model), of_version(version)
    held = [
        float(memory_parts(shape, deployment(row | {"tensor": ranks}), rules).weights) for ranks in (1.0, 2.0, 4.0, 8.0)
    ]
    assert held == sorted(held, reverse=True)


@settings(max_examples=60, deadline=None)
@given(row=ROW, model=st.sampled_from(MODELS[:-1]), version=st.sampled_from(VERSIONS), more=st.integers(1, 64))
def test_more_memory_never_holds_fewer_tokens(
    row: dict[str, float], model: str, version: tuple[EngineName, str], more: int
) -> None:
    shape, rules = architecture(model), of_version(version)
    few, many = (
        kv_capacity(shape, held, rules, memory_parts(shape, held, rules))
        for held in (deployment(row), deployment(row | {"memory": row["memory"] + more * GIB}))
    )
    assert many.capacity_tokens >= few.capacity_tokens
    assert many.max_concurrency >= few.max_concurrency


@settings(max_examples=40, deadline=None)
@given(row=ROW, version=st.sampled_from(VERSIONS))
def test_a_latent_cache_is_whole_on_every_rank(row: dict[str, float], version: tuple[EngineName, str]) -> None:
    shape, rules = architecture("latent"), of_version(version)
    if version[0] == "llama.cpp":
        return
    sizes = set()
    for ranks in (1.0, 2.0, 8.0):
        held = deployment(row | {"tensor": ranks, "pipeline": 1.0})
        sizes.add(float(kv_capacity(shape, held, rules, memory_parts(shape, held, rules)).bytes_per_token))
    assert sizes == {32 * 576 * row["kv_bytes"]}


@settings(max_examples=40, deadline=None)
@given(row=ROW, model=st.sampled_from(MODELS[:-1]), shorter=st.floats(0.05, 1.0))
def test_a_shorter_request_never_holds_more(row: dict[str, float], model: str, shorter: float) -> None:
    shape, rules, held = architecture(model), of_version(("vllm", "0.19.0")), deployment(row)
    parts = memory_parts(shape, held, rules)
    whole = kv_capacity(shape, held, rules, parts)
    part = kv_capacity(shape, held, rules, parts, row["length"] * shorter)
    assert part.request_bytes <= whole.request_bytes
    assert part.max_concurrency >= whole.max_concurrency


@settings(max_examples=60, deadline=None)
@given(rows=st.lists(ROW, min_size=2, max_size=6), model=st.sampled_from(MODELS))
def test_a_layout_is_legal_where_no_fault_is_found(rows: list[dict[str, float]], model: str) -> None:
    shape = architecture(model)
    many = Layout(**{name: np.array([row[name] for row in rows]) for name in ("tensor", "pipeline", "data", "expert")})
    legal = np.broadcast_to(layout_is_legal(shape, many), (len(rows),))
    for row, flag in zip(rows, legal, strict=True):
        assert (layout_fault(shape, deployment(row).layout) is None) == bool(flag)
