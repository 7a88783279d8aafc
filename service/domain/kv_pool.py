"""What a KV pool of a given size holds, by the cache rule of the engine."""

from collections.abc import Callable
from typing import TypeAlias

from service.domain.architecture import Architecture
from service.domain.deployment import Deployment, KvCapacity
from service.domain.engine import EngineBehaviour
from service.domain.kv_cache import (
    WINDOWED,
    CacheRule,
    GroupPlan,
    Pool,
    block_pool,
    blocks_in,
    group_plan,
    layer_bytes_per_token,
)
from service.domain.numeric import Number, ceil, choose, floor, greater, lesser

SLIDING_POOL_SHARE = 0.8
"""SGLang's swa_full_tokens_ratio: tokens of the sliding pool over tokens of the full pool (server_args.py)."""

STATE_POOL_RATIO = 0.9
"""SGLang's mamba_full_memory_ratio: bytes of the state pool over bytes of the KV pool (server_args.py)."""

LLAMA_PADDING_TOKENS = 256.0
"""llama.cpp pads cache cells to this (llama_kv_cache::get_padding with flash attention)."""

PHYSICAL_BATCH_TOKENS = 512.0
"""llama.cpp's --ubatch-size; a sliding cache also holds one such batch."""

PoolRule: TypeAlias = Callable[[Architecture, Deployment, EngineBehaviour, Number, Number], KvCapacity]


def stage_share(architecture: Architecture, deployment: Deployment) -> Number:
    """Share of the layers on the fullest pipeline stage."""
    return ceil(architecture.layers / deployment.layout.pipeline) / architecture.layers


def _plan(architecture: Architecture, deployment: Deployment, behaviour: EngineBehaviour) -> GroupPlan:
    return group_plan(architecture.cache, deployment.settings.draft_layers, behaviour.group_padding_ratio)


def pool_of(architecture: Architecture, deployment: Deployment, behaviour: EngineBehaviour, tokens: Number) -> Pool:
    """Blocks of the engine's pool for requests of ``tokens``."""
    return block_pool(
        _plan(architecture, deployment, behaviour),
        deployment,
        stage_share(architecture, deployment),
        tokens,
        grouped=behaviour.cache_rule == "grouped_blocks",
    )


def _blocks(
    architecture: Architecture, deployment: Deployment, behaviour: EngineBehaviour, pool_bytes: Number, tokens: Number
) -> KvCapacity:
    pool = pool_of(architecture, deployment, behaviour, tokens)
    blocks = blocks_in(pool, pool_bytes)
    each = greater(pool.request_blocks, 1.0)
    concurrency = blocks / each
    printed = floor(blocks / pool.groups) * pool.block_tokens
    if behaviour.print_rule == "concurrency_times_length":
        printed = choose(pool.groups > 1.0, floor(concurrency * tokens), printed)
    return KvCapacity(
        bytes_per_token=pool.growth_bytes_per_token,
        capacity_tokens=printed,
        request_bytes=pool.request_blocks * pool.block_bytes,
        max_concurrency=concurrency * deployment.layout.data,
        at_tokens=tokens,
        block_tokens=pool.block_tokens,
        start_bytes=pool.start_bytes,
    )


def slot_parts(
    architecture: Architecture, deployment: Deployment, behaviour: EngineBehaviour
) -> tuple[Number, Number, Number]:
    """SGLang's bytes: a token's growth of a long sequence, a slot of the token pool, one request's recurrent state."""
    settings, tensor, kv_bytes = deployment.settings, deployment.layout.tensor, deployment.precision.kv_bytes
    share = stage_share(architecture, deployment)
    plan = _plan(architecture, deployment, behaviour)
    windowed_share = choose(settings.hybrid_kv_cache > 0.0, SLIDING_POOL_SHARE, 1.0) if plan.kinds[1:] else 1.0
    growth: Number = 0.0
    slot: Number = 0.0
    state: Number = 0.0
    for group in plan.kinds:
        layers = ceil(group.count * share)
        if group.layers.kind == "state":
            state = state + layers * group.layers.state_bytes / tensor
            continue
        size = layers * layer_bytes_per_token(group.layers, tensor, kv_bytes)
        slot = slot + (size * windowed_share if group.layers.kind in WINDOWED else size)
        growth = growth + (size if group.layers.kind in plan.growing else 0.0 * size)
    return growth, slot, state


def _slots(
    architecture: Architecture, deployment: Deployment, behaviour: EngineBehaviour, pool_bytes: Number, tokens: Number
) -> KvCapacity:
    """SGLang: one slot a token; a smaller pool for sliding layers, a separate one for recurrent state."""
    plan = _plan(architecture, deployment, behaviour)
    growth, slot, state = slot_parts(architecture, deployment, behaviour)
    usable = greater(pool_bytes, 0.0)
    of_tokens = usable / (1.0 + STATE_POOL_RATIO) if plan.has_state else usable
    capacity = choose(slot > 0.0, floor(of_tokens / greater(slot, 1.0)), 0.0)
    concurrency = capacity / greater(tokens, 1.0)
    if plan.has_state:
        concurrency = lesser(concurrency, floor((usable - of_tokens) / greater(state, 1.0)))
    return KvCapacity(
        bytes_per_token=growth if plan.has_windows else slot,
        capacity_tokens=capacity,
        request_bytes=slot * tokens + state,
        max_concurrency=concurrency * deployment.layout.data,
        at_tokens=tokens,
    )


def context_parts(
    architecture: Architecture, deployment: Deployment, behaviour: EngineBehaviour
) -> tuple[Number, Number]:
    """Bytes per cell of the whole context, and bytes of the windows and states of all slots (llama.cpp)."""
    settings, kv_bytes = deployment.settings, deployment.precision.kv_bytes
    # llama.cpp splits layers, not heads, over cards: every layer caches all its heads on one card.
    cards = deployment.layout.tensor * deployment.layout.pipeline
    share = ceil(architecture.layers / cards) / architecture.layers
    cell: Number = 0.0
    fixed: Number = 0.0
    for group in _plan(architecture, deployment, behaviour).kinds:
        layers = ceil(group.count * share)
        kind = group.layers
        size = layers * layer_bytes_per_token(kind, 1.0, kv_bytes)
        if kind.kind == "latent" and behaviour.latent_as_heads:
            size = layers * kind.query_heads * kind.score_dim * kv_bytes
        if kind.kind == "state":
            fixed = fixed + layers * kind.state_bytes * settings.max_num_seqs
        elif kind.kind in WINDOWED and behaviour.windowed_cache:
            window = kind.window_tokens * settings.max_num_seqs + PHYSICAL_BATCH_TOKENS
            cells = lesser(ceil(window / LLAMA_PADDING_TOKENS) * LLAMA_PADDING_TOKENS, settings.max_model_len)
            fixed = fixed + size * cells
        else:
            cell = cell + size
    return cell, fixed


def whole_context_bytes(architecture: Architecture, deployment: Deployment, behaviour: EngineBehaviour) -> Number:
    """Pool that llama.cpp reserves at start: every cell of the context, windows and states of all slots."""
    cell, fixed = context_parts(architecture, deployment, behaviour)
    return cell * deployment.settings.max_model_len + fixed


def _context(
    architecture: Architecture, deployment: Deployment, behaviour: EngineBehaviour, pool_bytes: Number, tokens: Number
) -> KvCapacity:
    """llama.cpp: the context is shared by the slots; it holds it whole or does not start."""
    cell, fixed = context_parts(architecture, deployment, behaviour)
    longest = deployment.settings.max_model_len
    room = greater(pool_bytes - fixed, 0.0)
    cells = choose(cell > 0.0, lesser(floor(room / greater(cell, 1.0)), longest), longest)
    cells = choose(pool_bytes > 0.0, cells, 0.0)
    concurrency = lesser(cells / greater(tokens, 1.0), deployment.settings.max_num_seqs)
    return KvCapacity(
        bytes_per_token=cell,
        capacity_tokens=cells,
        request_bytes=cell * tokens + fixed / greater(deployment.settings.max_num_seqs, 1.0),
        max_concurrency=concurrency * deployment.layout.data,
        at_tokens=tokens,
    )


POOLS: dict[CacheRule, PoolRule] = {
    "grouped_blocks": _blocks,
    "uniform_blocks": _blocks,
    "token_slots": _slots,
    "whole_context": _context,
}


def resident_bytes(
    architecture: Architecture, deployment: Deployment, behaviour: EngineBehaviour, pool_bytes: Number, tokens: Number
) -> Number:
    """Pool bytes that one request of ``tokens`` holds while it decodes.

    Windows come without the prefill chunk that the engine's own concurrency figure adds to every request.
    """
    if behaviour.cache_rule in {"grouped_blocks", "uniform_blocks"}:
        pool = pool_of(architecture, deployment, behaviour, tokens)
        return pool.resident_blocks * pool.block_bytes
    return POOLS[behaviour.cache_rule](architecture, deployment, behaviour, pool_bytes, tokens).request_bytes
