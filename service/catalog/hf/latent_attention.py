"""Latent attention (MLA), with or without the sparse indexer (DSA), and the compressed attention of DeepSeek-V4."""

from collections import Counter
from collections.abc import Iterable

import msgspec

from service.catalog.hf.fault import contradiction
from service.catalog.hf.fields import MOST_HEADS, MOST_POSITIONS, MOST_WIDTH, Fields
from service.catalog.hf.layer_kinds import LayerKind
from service.catalog.hf.parts import Part
from service.catalog.hf.widths import Widths
from service.domain.architecture import CacheLayers, ParameterCounts

INDEX_SCALE_BYTES = 4
"""The indexer caches one fp8 key with an fp32 scale per token (vLLM DeepseekV32IndexerCache)."""

FP4_BYTES = 0.5
"""DeepSeek-V4 caches its index keys in 4 bits."""

COMPRESSOR_STATE_BYTES = 4
"""Pending entries of a compressor are fp32."""

_OVERLAPPING_RATIO = 4
"""Compressed sparse attention (ratio 4) overlaps its windows and has the indexer; ratio 128 has neither."""


class Latent(msgspec.Struct, frozen=True):
    """MLA geometry."""

    query_rank: int
    """0: queries are projected at once."""
    kv_rank: int
    rope: int
    nope: int
    value: int
    index_heads: int
    index_dim: int
    index_tokens: int
    gated: bool


def has_latent(fields: Fields) -> bool:
    """Whether softmax layers cache a latent."""
    return fields.has("kv_lora_rank") and fields.integer("kv_lora_rank", high=MOST_WIDTH) != 0


def has_compression(fields: Fields) -> bool:
    """Whether this is DeepSeek-V4's attention, with one shared head of keys that are values too."""
    return fields.has("compress_ratios") and fields.has("o_lora_rank")


def latent_parts(fields: Fields, widths: Widths, kinds: tuple[LayerKind, ...]) -> Iterable[Part]:
    """Projections and caches of the MLA layers: those that index for themselves, and those that share an indexer."""
    latent = _read(fields, widths)
    attending = [index for index, kind in enumerate(kinds) if kind in {"full", "sliding"}]
    indexing = len(attending) if latent.index_dim else 0
    words = fields.texts("indexer_types")
    if words and latent.index_dim:
        if len(words) < widths.layers:
            raise contradiction(fields.pointer, "indexer_types", "num_hidden_layers")
        indexing = sum(words[index] == "full" for index in attending)
    for layers, indexes in ((indexing, True), (len(attending) - indexing, False)):
        if layers:
            yield Part(
                layers=layers,
                each=_parameters(latent, widths, indexes=indexes),
                caches=(_cache(latent, widths, layers, indexes=indexes),),
            )


def _read(fields: Fields, widths: Widths) -> Latent:
    rope = fields.integer("qk_rope_head_dim", high=MOST_WIDTH)
    if rope is None:
        rope = 64
        fields.estimated.append("qk_rope_head_dim")
    nope = fields.integer("qk_nope_head_dim", high=MOST_WIDTH)
    if nope is None:
        nope = widths.head_dim
        fields.estimated.append("qk_nope_head_dim")
    return Latent(
        query_rank=fields.integer("q_lora_rank", high=MOST_WIDTH) or 0,
        kv_rank=fields.required("kv_lora_rank", high=MOST_WIDTH),
        rope=rope,
        nope=nope,
        value=fields.integer("v_head_dim", low=1, high=MOST_WIDTH) or nope,
        index_heads=fields.integer("index_n_heads", high=MOST_HEADS) or 0,
        index_dim=fields.integer("index_head_dim", high=MOST_WIDTH) or 0,
        index_tokens=fields.integer("index_topk", high=MOST_POSITIONS) or 0,
        gated=fields.flag("mla_use_output_gate", default=False),
    )


def _parameters(latent: Latent, widths: Widths, *, indexes: bool) -> ParameterCounts:
    hidden, heads = widths.hidden, widths.heads
    queries = heads * (latent.nope + latent.rope)
    up = latent.query_rank * queries if latent.query_rank else hidden * queries
    up += latent.kv_rank * heads * (latent.nope + latent.value) + heads * latent.value * hidden
    if latent.gated:
        up += heads * latent.value * hidden
    down = hidden * (latent.query_rank + latent.kv_rank + latent.rope)
    indexer = 0
    if indexes:
        source = latent.query_rank or hidden
        indexer = source * latent.index_heads * latent.index_dim
        indexer += hidden * (latent.index_dim + latent.index_heads) + 2 * latent.index_dim
    return ParameterCounts(attention=up, attention_replicated=down + indexer, norms=latent.query_rank + latent.kv_rank)


def _cache(latent: Latent, widths: Widths, layers: int, *, indexes: bool) -> CacheLayers:
    return CacheLayers(
        kind="latent",
        layers=layers,
        elements_per_head=latent.kv_rank + latent.rope,
        extra_bytes_per_token=latent.index_dim + INDEX_SCALE_BYTES if indexes else 0,
        query_heads=widths.heads,
        score_dim=latent.nope + latent.rope + latent.value,
        sparse_tokens=latent.index_tokens if latent.index_dim else 0,
    )


def compressed_parts(fields: Fields, widths: Widths) -> Iterable[Part]:
    """DeepSeek-V4: a window on every layer, and on most a cache of compressed entries (AIC deepseek_v4.py).

    Ratio 4 keeps a quarter of the tokens, with index keys; ratio 128 one in 128. Compressors hold ``2 x ratio x
    overlap x head_dim`` fp32 values, which are counted per token of the window so that they sum to the same.
    """
    ratios = fields.integers("compress_ratios", high=MOST_POSITIONS)
    if len(ratios) < widths.layers:
        raise contradiction(fields.pointer, "compress_ratios", "num_hidden_layers")
    window = fields.required("sliding_window", high=MOST_POSITIONS)
    for ratio, layers in Counter(ratios[: widths.layers]).items():
        yield Part(
            layers=layers,
            each=_compressed_parameters(fields, widths, ratio),
            caches=tuple(_compressed_caches(fields, widths, ratio, window, layers)),
        )


def _overlap(ratio: int) -> int:
    return 2 if ratio == _OVERLAPPING_RATIO else 1


def _compressed_parameters(fields: Fields, widths: Widths, ratio: int) -> ParameterCounts:
    hidden, heads, dim = widths.hidden, widths.heads, widths.head_dim
    query_rank = fields.required("q_lora_rank", high=MOST_WIDTH)
    output_rank = fields.required("o_lora_rank", high=MOST_WIDTH)
    groups = fields.integer("o_groups", low=1, high=MOST_HEADS) or 1
    attention = query_rank * heads * dim + heads * dim * output_rank + groups * output_rank * hidden
    replicated = hidden * (query_rank + dim)
    norms = query_rank + dim + heads
    if ratio:
        overlap = _overlap(ratio)
        replicated += 2 * hidden * overlap * dim + ratio * overlap * dim
        norms += dim
    if ratio == _OVERLAPPING_RATIO:
        index_heads = fields.integer("index_n_heads", high=MOST_HEADS) or 0
        index_dim = fields.integer("index_head_dim", high=MOST_WIDTH) or 0
        replicated += query_rank * index_heads * index_dim + hidden * index_heads
        replicated += 4 * hidden * index_dim + 2 * ratio * index_dim + index_dim
    return ParameterCounts(attention=attention, attention_replicated=replicated, norms=norms)


def _compressed_caches(fields: Fields, widths: Widths, ratio: int, window: int, layers: int) -> Iterable[CacheLayers]:
    dim = widths.head_dim
    state = 2 * ratio * _overlap(ratio) * dim * COMPRESSOR_STATE_BYTES
    yield CacheLayers(
        kind="sliding",
        layers=layers,
        elements_per_head=dim,
        window_tokens=window,
        extra_bytes_per_token=state // window,
        query_heads=widths.heads,
        score_dim=2 * dim,
    )
    if not ratio:
        return
    index = 0
    if ratio == _OVERLAPPING_RATIO:
        index_dim = fields.integer("index_head_dim", high=MOST_WIDTH) or 0
        index = round(index_dim * FP4_BYTES / ratio)
    yield CacheLayers(
        kind="full",
        layers=layers,
        elements_per_head=max(dim // ratio, 1),
        extra_bytes_per_token=index,
        query_heads=widths.heads,
        score_dim=max(2 * dim // ratio, 1),
        sparse_tokens=ratio * (fields.integer("index_topk", high=MOST_POSITIONS) or 0) if index else 0,
    )
