"""Parts of a step worked out by hand: expert coverage, cache reads by kind of layer, prompt pairs, speculation."""

import math

import msgspec
import pytest

from service.domain.architecture import Architecture, CacheLayers, ParameterCounts
from service.domain.attention_work import cache_read_bytes, decode_flops, mean_prefill_flops, prefill_flops
from service.domain.deployment import Card, Deployment, EngineSettings, Layout, Precision
from service.domain.expert_work import ExpertWork, expert_s, touched_share
from service.domain.lengths import TokenLengths, lengths
from service.domain.numeric import as_float
from service.domain.request_shape import request_shape

FULL = CacheLayers(kind="full", layers=10, kv_heads=8, elements_per_head=256, query_heads=32, score_dim=256)
MODEL = Architecture(
    model_type="invented",
    role="decoder",
    layers=10,
    hidden_size=4096,
    vocab_size=32_000,
    query_heads=32,
    kv_heads=8,
    max_position_embeddings=131_072,
    intermediate_size=14_336,
    parameters=ParameterCounts(attention=1, dense_mlp=1),
    cache=(FULL,),
)


def deployment(tensor: float = 1.0, kv_bytes: float = 2.0) -> Deployment:
    return Deployment(
        layout=Layout(tensor=tensor),
        card=Card(8e10, 3.35e12, 2e15, 1e15, 4.5e11),
        precision=Precision(weight_bytes={}, kv_bytes=kv_bytes),
        settings=EngineSettings(0.9, 8192.0, 256.0, 8192.0, 16.0),
    )


def with_cache(*cache: CacheLayers) -> Architecture:
    return msgspec.structs.replace(MODEL, cache=cache)


def test_full_attention_reads_every_token_of_its_ranks_heads() -> None:
    assert cache_read_bytes(MODEL, deployment(), 1000.0) == 10 * 8 * 256 * 2 * 1000
    assert cache_read_bytes(MODEL, deployment(tensor=4.0), 1000.0) == 10 * 2 * 256 * 2 * 1000
    # More ranks than heads: each holds one head whole.
    assert cache_read_bytes(MODEL, deployment(tensor=16.0), 1000.0) == 10 * 256 * 2 * 1000


def test_windows_latents_and_states_read_what_they_hold() -> None:
    sliding = msgspec.structs.replace(FULL, kind="sliding", window_tokens=128)
    assert cache_read_bytes(with_cache(sliding), deployment(), 1000.0) == 10 * 8 * 256 * 2 * 128
    latent = CacheLayers(kind="latent", layers=10, elements_per_head=576, query_heads=32, score_dim=320)
    assert cache_read_bytes(with_cache(latent), deployment(tensor=8.0), 1000.0) == 10 * 576 * 2 * 1000
    state = CacheLayers(kind="state", layers=10, state_bytes=1000)
    assert cache_read_bytes(with_cache(state), deployment(tensor=2.0), 1e6) == 2 * 10 * 1000 / 2


def test_sparse_attention_reads_its_index_and_a_selection() -> None:
    sparse = CacheLayers(kind="latent", layers=1, elements_per_head=576, extra_bytes_per_token=132, sparse_tokens=2048)
    read = as_float(cache_read_bytes(with_cache(sparse), deployment(), 100_000.0))
    assert read == 2048 * 576 * 2 + 100_000 * 132


def test_decode_scores_grow_with_heads_and_context() -> None:
    assert decode_flops(MODEL, 1000.0) == 10 * 2 * 32 * 256 * 1000


def test_prompt_pairs_are_causal_and_skip_the_cached_prefix() -> None:
    shape = request_shape(MODEL, lengths(1000.0), lengths(10.0))
    each = 10 * 2 * 32 * 256
    assert prefill_flops(MODEL, shape, 1000.0) == each * 1000**2 / 2
    cached = request_shape(MODEL, lengths(1000.0), lengths(10.0), prefix_hit=0.5)
    assert prefill_flops(MODEL, cached, 1000.0) == each * (1000**2 - 500**2) / 2
    sliding = with_cache(msgspec.structs.replace(FULL, kind="sliding", window_tokens=100))
    assert prefill_flops(sliding, shape, 1000.0) == each * (100**2 / 2 + 900 * 100)


def test_spread_prompts_take_more_attention_than_equal_ones() -> None:
    even = request_shape(MODEL, lengths(1000.0), lengths(10.0))
    spread = request_shape(MODEL, lengths(TokenLengths(mean=1000)), lengths(10.0))
    assert mean_prefill_flops(MODEL, spread) > 1.5 * mean_prefill_flops(MODEL, even)


def test_experts_touched_by_a_batch() -> None:
    work = ExpertWork(
        read_s=1e-3,
        row_s=1e-6,
        miss_log=math.log1p(-8 / 256),
        padded_rows=0.0,
        rows_factor=1.0,
        exchange_s_per_row=0.0,
        exchange_latency_s=0.0,
    )
    assert touched_share(work, 1.0) == pytest.approx(8 / 256)
    assert touched_share(work, 32.0) == pytest.approx(1 - (1 - 8 / 256) ** 32)
    assert expert_s(work, 1e6) == pytest.approx(1.0, rel=1e-3)
    assert expert_s(work, 0.0) == 0.0


def test_speculation_yields_the_geometric_sum() -> None:
    shape = request_shape(MODEL, lengths(10.0), lengths(100.0), draft_tokens=3.0, acceptance_rate=0.5)
    assert shape.tokens_per_step == 1 + 0.5 + 0.25 + 0.125
    assert shape.rows_per_step == 4.0
    assert shape.steps == pytest.approx(100 / 1.875)
    sure = request_shape(MODEL, lengths(10.0), lengths(100.0), draft_tokens=3.0, acceptance_rate=1.0)
    assert sure.tokens_per_step == 4.0
