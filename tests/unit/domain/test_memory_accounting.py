"""Golden figures of memory accounting: what engines printed for models whose dimensions are public."""

from pathlib import Path

import msgspec
import pytest
from samples import GPT_OSS_120B, HYBRID_27B, LLAMA_8B, memory_parts

from service.catalog.engines import behaviour, load_engines
from service.catalog.quantizations import load_quantizations
from service.domain.architecture import Architecture, CacheLayers
from service.domain.deployment import Card, Deployment, EngineSettings, Layout
from service.domain.kv_cache import group_plan, served_kv_format
from service.domain.memory import kv_capacity
from service.domain.units import GIB
from service.domain.weights import precision, stage_layers

DATA = Path("service/catalog/data")
ENGINES = load_engines(DATA / "engines")
FORMATS = load_quantizations(DATA / "quantizations.json")
H100_GIB = 79.19


def deployment(
    architecture: Architecture,
    *,
    weights: str = "bf16",
    kv: str = "auto",
    layout: Layout | None = None,
    total_gib: float = H100_GIB,
    **fields: float,
) -> Deployment:
    settings = {
        "memory_fraction": 0.95,
        "max_model_len": 8192.0,
        "max_num_seqs": 1024.0,
        "max_num_batched_tokens": 8192.0,
    }
    cache = FORMATS[served_kv_format(architecture, kv)]
    return Deployment(
        layout=layout or Layout(),
        card=Card(
            usable_memory_bytes=total_gib * GIB,
            bandwidth_bytes_per_s=3.35e12,
            weight_flops_per_s=9.89e14,
            flops_per_s=9.89e14,
            link_bytes_per_s=450e9,
        ),
        precision=precision(architecture, FORMATS[weights], cache),
        settings=EngineSettings(block_size=16.0, **(settings | fields)),
    )


@pytest.mark.parametrize(
    ("layout", "weights", "printed_gib"),
    [
        ({}, "bf16", 14.99),
        ({"tensor": 2.0}, "bf16", 7.51),
        ({"tensor": 4.0}, "bf16", 3.77),
        ({"pipeline": 2.0}, "bf16", 7.51),
        ({"pipeline": 4.0}, "bf16", 4.26),
        ({}, "fp8", 8.49),
    ],
)
def test_weights_of_llama_8b_are_what_vllm_prints(layout: dict[str, float], weights: str, printed_gib: float) -> None:
    held = deployment(LLAMA_8B, weights=weights, layout=Layout(**layout))
    parts = memory_parts(LLAMA_8B, held, behaviour(ENGINES["vllm"], "0.19.0"))
    assert float(parts.weights) / GIB == pytest.approx(printed_gib, abs=0.006)


def test_the_pool_of_llama_8b_is_what_vllm_prints() -> None:
    rules, held = behaviour(ENGINES["vllm"], "0.19.0"), deployment(LLAMA_8B)
    parts = memory_parts(LLAMA_8B, held, rules)
    capacity = kv_capacity(LLAMA_8B, held, rules, parts)
    assert float(parts.activation) / GIB == pytest.approx(1.89, abs=0.02)
    assert float(parts.kv_cache) / GIB == pytest.approx(58.11, abs=0.05)
    assert capacity.bytes_per_token == 131_072
    assert float(capacity.capacity_tokens) == pytest.approx(476_016, rel=0.001)
    assert float(capacity.max_concurrency) == pytest.approx(58.11, rel=0.001)


def test_fp8_kv_doubles_the_tokens() -> None:
    rules = behaviour(ENGINES["vllm"], "0.19.0")
    tokens = []
    for kv in ("auto", "fp8"):
        held = deployment(LLAMA_8B, kv=kv)
        tokens.append(float(kv_capacity(LLAMA_8B, held, rules, memory_parts(LLAMA_8B, held, rules)).capacity_tokens))
    assert tokens[1] == pytest.approx(2 * tokens[0], abs=16)


def test_hybrid_groups_of_gpt_oss_give_the_printed_concurrency() -> None:
    """vLLM 0.10.1.1, 4 x A100: 45.32 GiB, 2,640,144 tokens, 284.25 requests of 16,384."""
    rules = behaviour(ENGINES["vllm"], "0.10.1.1")
    held = deployment(
        GPT_OSS_120B,
        weights="mxfp4",
        layout=Layout(tensor=4.0),
        max_model_len=16_384.0,
        max_num_batched_tokens=2048.0,
        kv_cache_memory_bytes=45.32 * GIB,
    )
    parts = memory_parts(GPT_OSS_120B, held, rules)
    capacity = kv_capacity(GPT_OSS_120B, held, rules, parts)
    assert float(parts.weights) / GIB == pytest.approx(17.22, rel=0.005)
    assert float(capacity.max_concurrency) == pytest.approx(284.25, abs=0.05)
    assert float(capacity.capacity_tokens) == pytest.approx(2_640_144, rel=0.0002)


def test_attention_blocks_grow_until_they_hold_a_state() -> None:
    """vLLM 0.19.0 on an H20: blocks of 784 tokens, 290,864 tokens printed, 33.04 requests of 32,768."""
    rules = behaviour(ENGINES["vllm"], "0.19.0")
    pool = 1487 * 784 * 4096 * 16
    held = deployment(HYBRID_27B, total_gib=139.7, max_model_len=32_768.0, kv_cache_memory_bytes=float(pool))
    capacity = kv_capacity(HYBRID_27B, held, rules, memory_parts(HYBRID_27B, held, rules))
    assert capacity.block_tokens == 784
    assert capacity.capacity_tokens == 290_864
    assert float(capacity.max_concurrency) == pytest.approx(33.04, abs=0.01)
    assert capacity.bytes_per_token == 65_536


def test_newer_versions_print_concurrency_times_length() -> None:
    rules = behaviour(ENGINES["vllm"], "0.25.1")
    held = deployment(HYBRID_27B, total_gib=139.7, max_model_len=262_144.0, kv_cache_memory_bytes=80.0 * GIB)
    capacity = kv_capacity(HYBRID_27B, held, rules, memory_parts(HYBRID_27B, held, rules))
    assert float(capacity.capacity_tokens) == pytest.approx(float(capacity.max_concurrency) * 262_144, abs=1.0)


@pytest.mark.parametrize(
    ("full", "sliding", "groups"),
    [(23, 23, 2), (18, 18, 2), (8, 40, 6), (10, 52, 7), (5, 29, 7), (12, 36, 4)],
    ids=["gemma-2", "gpt-oss", "gemma-3-12b", "gemma-3-27b", "gemma-3-4b", "scout"],
)
def test_group_counts_seen_in_logs(full: int, sliding: int, groups: int) -> None:
    cache = (
        CacheLayers(kind="full", layers=full, kv_heads=8, elements_per_head=256),
        CacheLayers(kind="sliding", layers=sliding, kv_heads=8, elements_per_head=256, window_tokens=1024),
    )
    assert group_plan(cache, 0, 1.25).groups == groups


def test_llama_cpp_reserves_the_whole_context() -> None:
    """b3216, Llama-3-70B at 8,192 tokens: 2,560 MiB of KV cache over two cards."""
    rules = behaviour(ENGINES["llama.cpp"], "b3216")
    llama_70b = msgspec.structs.replace(
        LLAMA_8B, layers=80, cache=(msgspec.structs.replace(LLAMA_8B.cache[0], layers=80),)
    )
    held = deployment(
        llama_70b, kv="fp16", layout=Layout(pipeline=2.0), max_num_seqs=1.0, max_num_batched_tokens=2048.0
    )
    parts = memory_parts(llama_70b, held, rules)
    assert float(parts.kv_cache) == 2560 / 2 * 2**20
    assert kv_capacity(llama_70b, held, rules, parts).capacity_tokens == 8192


def test_sglang_pool_is_the_fraction_of_what_was_free() -> None:
    """0.4.7.post1 on an H100: 75.02 GiB free before, 0.74 GiB of weights, fraction 0.874: 64.82 GiB of pool."""
    rules = msgspec.structs.replace(
        behaviour(ENGINES["sglang"], "0.4.7.post1"), context_gib=0.0, non_torch_single_gib=0.0
    )
    held = deployment(LLAMA_8B, total_gib=75.02, memory_fraction=0.874)
    parts = memory_parts(LLAMA_8B, held, rules)
    assert float(parts.kv_cache + parts.weights) / GIB == pytest.approx(0.874 * 75.02, abs=1e-6)


@pytest.mark.parametrize(
    ("layers", "stages", "expected"),
    [(32, 1, (32, 32, 32)), (32, 4, (8, 8, 8)), (61, 3, (20, 21, 20)), (61, 2, (31, 31, 30)), (7, 4, (2, 2, 1))],
)
def test_stages_are_uneven_as_vllm_cuts_them(layers: int, stages: int, expected: tuple[int, int, int]) -> None:
    assert stage_layers(layers, float(stages)) == expected


def test_a_checkpoint_of_known_size_rescales_its_own_format() -> None:
    own = precision(LLAMA_8B, FORMATS["bf16"], FORMATS["bf16"], checkpoint_bytes=8e9)
    stored = sum(getattr(LLAMA_8B.parameters, name) * size for name, size in own.weight_bytes.items())
    assert stored == pytest.approx(8e9)
    other = precision(LLAMA_8B, FORMATS["fp8"], FORMATS["bf16"], checkpoint_bytes=8e9)
    assert other.weight_bytes["embedding"] == 2.0
    assert other.weight_bytes["dense_mlp"] == 1.0


def test_the_checkpoint_says_what_stays_wide() -> None:
    checkpoint = msgspec.structs.replace(
        LLAMA_8B, checkpoint_format="nvfp4", unquantized=("embedding", "lm_head", "attention", "norms")
    )
    sizes = precision(checkpoint, FORMATS["nvfp4"], FORMATS["fp8"]).weight_bytes
    assert sizes["attention"] == 2.0
    assert sizes["dense_mlp"] == 4.5 / 8
