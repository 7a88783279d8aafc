"""KV and state cache: bytes per token, whole blocks per request, and one pool shared by kinds of layers.

vLLM puts layers of one kind into groups of equal size; all groups draw blocks of one size from one pool (vLLM
v1/core/kv_cache_utils.py). A sliding group holds ``window - 1 + max_num_batched_tokens`` tokens of a request at most, a
recurrent group one page and one more per speculative token. Where layers differ in bytes per token, the thinner ones
put more tokens into a block; where a model has recurrent state, the attention block grows until its page holds a state.
"""

from functools import lru_cache
from typing import Literal

import msgspec

from service.domain.architecture import Architecture, CacheLayers
from service.domain.deployment import Deployment
from service.domain.numeric import Number, ceil, choose, floor, greater, lesser

SPARSE_FP8_EXTRA_BYTES = 80.0
"""fp8 latents of sparse-attention models keep 64 rotary elements in 16 bits and four fp32 scales: 656 instead of 576
bytes per layer and token (vLLM fp8_ds_mla)."""

WIDE_BYTES = 2.0
"""A 16-bit element."""

BLOCK_ALIGNMENT_TOKENS = 16
"""Attention blocks that grow for recurrent state stay multiples of this (784, 800, 1072, 1600, 8432 in logs)."""

PACKED_RATIO = 8
"""DeepSeek-V4 keeps one entry of 4 tokens on some layers and one of 128 on others; each group takes a whole slab of 256
tokens (vLLM pull request 48993; 20.4 requests of 1 M tokens on 8 x B200)."""

GROWING = frozenset({"full", "latent"})
WINDOWED = frozenset({"sliding", "chunked"})

CacheRule = Literal["grouped_blocks", "uniform_blocks", "token_slots", "whole_context"]
"""grouped_blocks: vLLM's hybrid manager. uniform_blocks: every attention layer holds the whole sequence, in blocks.
token_slots: SGLang's pools of single tokens. whole_context: llama.cpp reserves the context of all slots at start."""


class CacheGroups(msgspec.Struct, frozen=True):
    """Layers of one kind, cut into groups of equal size."""

    layers: CacheLayers
    count: int
    """Layers of this kind, with those of a draft module."""
    groups: int


class GroupPlan(msgspec.Struct, frozen=True):
    """How one model's cached layers share the block pool."""

    kinds: tuple[CacheGroups, ...]
    group_layers: int
    """Layers of one group; the last group of a kind may be padded to it."""
    groups: int
    uniform: bool
    """All layers grow with the sequence: one group, whatever their widths."""
    has_state: bool
    has_windows: bool
    packed: bool
    """Growing kinds differ so much that the thin ones are padded to the page of the others, not put into longer blocks."""

    @property
    def growing(self) -> frozenset[str]:
        """Kinds whose bytes per token are a sequence's growth: those that never stop, else windows until they are full."""
        kinds = frozenset(group.layers.kind for group in self.kinds)
        return (kinds & GROWING) or (kinds & WINDOWED)


@lru_cache(maxsize=2048)
def group_plan(cache: tuple[CacheLayers, ...], draft_layers: int, padding_ratio: float) -> GroupPlan:
    """Groups of vLLM's hybrid manager.

    The group size is the smallest count of layers of a kind, unless the largest is within ``padding_ratio`` of it: then
    the largest. A draft module's layers join the first growing kind.
    """
    counts = [group.layers for group in cache]
    for index, group in enumerate(cache):
        if group.kind in GROWING:
            counts[index] += draft_layers
            break
    kinds = {group.kind for group in cache}
    uniform = kinds <= GROWING
    smallest, largest = min(counts, default=1), max(counts, default=1)
    size = largest if largest < smallest * padding_ratio else smallest
    wide = [group.kv_heads * group.elements_per_head for group in cache if group.kind in GROWING]
    groups = tuple(
        CacheGroups(layers=group, count=count, groups=1 if uniform else -(-count // size))
        for group, count in zip(cache, counts, strict=True)
    )
    return GroupPlan(
        kinds=groups,
        group_layers=size,
        groups=1 if uniform else sum(group.groups for group in groups),
        uniform=uniform,
        has_state="state" in kinds,
        has_windows=bool(kinds & WINDOWED),
        packed=not uniform and len(wide) > 1 and min(wide) * PACKED_RATIO <= max(wide),
    )


def served_kv_format(architecture: Architecture, name: str) -> str:
    """Id of the KV format that ``kv_cache`` stands for in a request: ``auto`` is the checkpoint's, else its dtype."""
    return (architecture.checkpoint_kv_cache or architecture.dtype) if name == "auto" else name


def layer_bytes_per_token(layers: CacheLayers, tensor: Number, kv_bytes: Number) -> Number:
    """Bytes that one layer caches per token on one tensor rank.

    KV heads divide over ranks and repeat once there are more ranks than heads; a latent is whole on every rank.
    """
    size = layers.elements_per_head * kv_bytes
    if layers.kind != "latent":
        return ceil(layers.kv_heads / tensor) * size + layers.extra_bytes_per_token
    sparse = SPARSE_FP8_EXTRA_BYTES if layers.extra_bytes_per_token else 0.0
    return size + layers.extra_bytes_per_token + choose(kv_bytes < WIDE_BYTES, sparse, 0.0)


class Pool(msgspec.Struct, frozen=True):
    """What a pool of blocks (or slots) costs on one accelerator, before its size is known."""

    block_bytes: Number
    """Bytes that one block of the pool takes over all layers of the stage."""
    block_tokens: Number
    """Tokens of the smallest block: the ``block_size`` of the answer."""
    groups: Number
    """Groups of layers that share the pool."""
    growth_bytes_per_token: Number
    """Bytes that one long sequence adds per token."""
    request_blocks: Number
    """Blocks that the engine counts for one request of ``tokens``."""
    resident_blocks: Number
    """Blocks that such a request holds while it decodes (windows without a prefill chunk)."""
    start_bytes: Number
    """Bytes that the start-up check wants for one such request."""


def _window_tokens(layers: CacheLayers, tokens: Number, chunk: Number) -> Number:
    if layers.kind == "sliding":
        return lesser(layers.window_tokens - 1.0 + chunk, tokens)
    return lesser(layers.window_tokens + chunk, tokens)


def _blocks_of(group: CacheGroups, block: Number, tokens: Number, chunk: Number, draft: Number) -> Number:
    """Blocks of one group for a request of ``tokens`` while it prefills ``chunk`` tokens."""
    layers = group.layers
    if layers.kind == "state":
        return 1.0 + draft
    if layers.kind == "cross":
        return ceil(layers.window_tokens / block)
    if layers.kind == "sliding":
        return ceil(_window_tokens(layers, tokens, chunk) / block) + 1.0
    if layers.kind == "chunked":
        return ceil(_window_tokens(layers, tokens, chunk) / block)
    return ceil(tokens / block)


def block_pool(plan: GroupPlan, deployment: Deployment, stage_share: Number, tokens: Number, *, grouped: bool) -> Pool:
    """Blocks of vLLM (V0 and V1) and TensorRT-LLM for requests of ``tokens``.

    ``stage_share``: share of the model's layers on the binding pipeline stage. ``grouped``: the engine has the hybrid
    manager; without it (or with ``hybrid_kv_cache`` off) windowed layers hold whole sequences.
    """
    settings, tensor, kv_bytes = deployment.settings, deployment.layout.tensor, deployment.precision.kv_bytes
    token_bytes = [layer_bytes_per_token(group.layers, tensor, kv_bytes) for group in plan.kinds]
    flat = _flat_pool(plan, token_bytes, deployment, stage_share, tokens)
    if plan.uniform or not grouped:
        return flat
    shared = _grouped_pool(plan, token_bytes, deployment, stage_share, tokens)
    if not plan.has_windows or plan.has_state:
        return shared
    on = settings.hybrid_kv_cache > 0.0
    return Pool(
        block_bytes=choose(on, shared.block_bytes, flat.block_bytes),
        block_tokens=choose(on, shared.block_tokens, flat.block_tokens),
        groups=choose(on, shared.groups, flat.groups),
        growth_bytes_per_token=choose(on, shared.growth_bytes_per_token, flat.growth_bytes_per_token),
        request_blocks=choose(on, shared.request_blocks, flat.request_blocks),
        resident_blocks=choose(on, shared.resident_blocks, flat.resident_blocks),
        start_bytes=choose(on, shared.start_bytes, _windowed_bytes(plan, token_bytes, deployment, stage_share, tokens)),
    )


def _flat_pool(
    plan: GroupPlan, token_bytes: list[Number], deployment: Deployment, share: Number, tokens: Number
) -> Pool:
    """One block holds every attention layer; recurrent state is billed beside it as blocks of a request."""
    block, draft = deployment.settings.block_size, deployment.settings.draft_tokens
    growth: Number = 0.0
    fixed: Number = 0.0
    for group, size in zip(plan.kinds, token_bytes, strict=True):
        layers = ceil(group.count * share)
        if group.layers.kind == "state":
            fixed = fixed + layers * group.layers.state_bytes * (1.0 + draft)
        elif group.layers.kind == "cross":
            fixed = fixed + layers * group.layers.window_tokens * size
        else:
            growth = growth + layers * size
    block_bytes = growth * block
    blocks = ceil(tokens / block) + ceil(fixed / greater(block_bytes, 1.0))
    return Pool(
        block_bytes=block_bytes,
        block_tokens=block,
        groups=1.0,
        growth_bytes_per_token=growth,
        request_blocks=blocks,
        resident_blocks=blocks,
        start_bytes=blocks * block_bytes,
    )


def _windowed_bytes(
    plan: GroupPlan, token_bytes: list[Number], deployment: Deployment, share: Number, tokens: Number
) -> Number:
    """What the start-up check counts with the hybrid manager off: windows, before layers are made full.

    Llama-4-Scout started at 5.24 M tokens so, though its pool holds 0.75 of such a request (vLLM get_kv_cache_configs).
    """
    settings = deployment.settings
    total: Number = 0.0
    for group, size in zip(plan.kinds, token_bytes, strict=True):
        blocks = _blocks_of(group, settings.block_size, tokens, settings.max_num_batched_tokens, settings.draft_tokens)
        total = total + ceil(group.count * share) * size * settings.block_size * blocks
    return total


def _grouped_pool(
    plan: GroupPlan, token_bytes: list[Number], deployment: Deployment, share: Number, tokens: Number
) -> Pool:
    settings = deployment.settings
    widest: Number = 0.0
    state: Number = 0.0
    growth: Number = 0.0
    thickest: Number = 0.0
    for group, size in zip(plan.kinds, token_bytes, strict=True):
        if group.layers.kind in GROWING:
            thickest = greater(thickest, size)
        if group.layers.kind == "state":
            state = greater(state, group.layers.state_bytes / deployment.layout.tensor)
            continue
        widest = greater(widest, size)
        if group.layers.kind in plan.growing:
            growth = growth + ceil(group.count * share) * size
    per_alignment = greater(widest, 1.0) * BLOCK_ALIGNMENT_TOKENS
    grown = ceil(state / per_alignment) * BLOCK_ALIGNMENT_TOKENS
    # A model of recurrent layers alone has no attention block to grow: one page is one request.
    block = choose(widest > 0.0, greater(settings.block_size, grown), settings.max_model_len)
    page = greater(block * widest, state)

    request: Number = 0.0
    resident: Number = 0.0
    smallest = block
    for group, size in zip(plan.kinds, token_bytes, strict=True):
        packed = plan.packed and group.layers.kind in GROWING
        group_block = block if group.layers.kind == "state" else page / (thickest if packed else size)
        smallest = lesser(smallest, group_block)
        counted = _blocks_of(group, group_block, tokens, settings.max_num_batched_tokens, settings.draft_tokens)
        held = _blocks_of(group, group_block, tokens, 1.0, settings.draft_tokens)
        request = request + group.groups * counted
        resident = resident + group.groups * lesser(held, counted)
    return Pool(
        block_bytes=page * ceil(plan.group_layers * share),
        block_tokens=smallest,
        groups=float(plan.groups),
        growth_bytes_per_token=growth,
        request_blocks=request,
        resident_blocks=resident,
        start_bytes=request * (page * ceil(plan.group_layers * share)),
    )


def blocks_in(pool: Pool, pool_bytes: Number) -> Number:
    """Whole blocks of a pool of ``pool_bytes``; 0 for a model that caches nothing."""
    size = greater(pool.block_bytes, 1.0)
    return choose(pool.block_bytes > 0.0, floor(greater(pool_bytes, 0.0) / size), 0.0)
