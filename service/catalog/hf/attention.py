"""Softmax attention with cached keys and values (MHA, GQA, MQA), layer kind by layer kind."""

from collections import Counter
from collections.abc import Iterable, Mapping

import msgspec

from service.catalog.hf.fault import contradiction
from service.catalog.hf.fields import MOST_HEADS, MOST_LAYERS, MOST_POSITIONS, MOST_WIDTH, Fields
from service.catalog.hf.layer_kinds import LayerKind, read_window
from service.catalog.hf.parts import Part
from service.catalog.hf.traits import Bias, QkNorm, Traits
from service.catalog.hf.widths import Widths
from service.domain.architecture import CacheKind, CacheLayers, ParameterCounts

SOFTMAX: frozenset[LayerKind] = frozenset({"full", "sliding", "chunked", "cross", "parallel"})
_INDEX_BYTES = 2
"""Block-sparse attention (MiniMax-M3) keeps its index key in 16 bits beside K and V."""


class Heads(msgspec.Struct, frozen=True):
    """Attention geometry of one kind of layer."""

    kind: LayerKind
    query: int
    kv: int
    key_dim: int
    value_dim: int
    reuses_cache: bool = False
    """Reads an earlier layer's keys and values: no cache (checkpoints still store its own projections)."""
    shared_values: bool = False
    """Values are the keys: cached twice, projected once."""
    index_dim: int = 0
    """Width of the cached index key of block-sparse attention."""


class AttentionFacts(msgspec.Struct, frozen=True):
    """What all attention layers of a model have in common."""

    bias: Bias
    norm: QkNorm
    gated: bool
    """The query projection is doubled by a gate of the output."""
    head_gate: bool
    """One gate per head."""
    sinks: bool
    window: int
    chunk: int
    image_tokens: int
    """Tokens that a cross-attention layer caches."""
    index_heads: int
    sparse_tokens: int


def read_facts(fields: Fields, traits: Traits, image_tokens: int) -> AttentionFacts:
    """Biases, norms, gates and windows."""
    norm = traits.qk_norm
    if fields.has("use_qk_norm", "qk_layernorm", "qk_norm") and not isinstance(fields.raw("qk_norm"), str):
        on = fields.flag("use_qk_norm", "qk_layernorm", "qk_norm", default=False)
        norm = traits.qk_norm_if if on else "none"
    gate = fields.flag("attn_output_gate", "attention_output_gate", default=traits.output_gate)
    sparse = fields.section("sparse_attention_config")
    blocks = 0
    index_heads = 0
    if sparse is not None:
        index_heads = sparse.integer("sparse_num_index_heads", high=MOST_HEADS) or 0
        top = sparse.integer("sparse_topk_blocks", high=MOST_POSITIONS) or 0
        blocks = top * (sparse.integer("sparse_block_size", high=MOST_WIDTH) or 0)
    return AttentionFacts(
        bias=_bias(fields, traits),
        norm=norm,
        gated=gate,
        head_gate=fields.flag("use_head_wise_attn_gate", default=traits.head_gate),
        sinks=traits.sinks,
        window=read_window(fields) or 0,
        chunk=fields.integer("attention_chunk_size", high=MOST_POSITIONS) or 0,
        image_tokens=image_tokens,
        index_heads=index_heads,
        sparse_tokens=min(blocks, MOST_POSITIONS),
    )


def _bias(fields: Fields, traits: Traits) -> Bias:
    given = ("attention_bias", "use_qkv_bias", "qkv_bias", "use_bias", "add_qkv_bias", "bias")
    if not fields.has(*given) or isinstance(fields.raw("bias"), str):
        return traits.bias or "none"
    if not fields.flag(*given, default=False):
        return "none"
    reach = "qkv" if fields.has("qkv_bias", "use_qkv_bias", "add_qkv_bias") else traits.bias_reach
    return traits.bias if traits.bias not in (None, "none") else reach


def read_heads(fields: Fields, widths: Widths, kinds: tuple[LayerKind, ...]) -> Counter[Heads]:
    """How many attention layers have which geometry."""
    own_heads = fields.items("num_attention_heads_per_layer")
    own_dims = _per_layer_dims(fields, widths.layers)
    if own_heads:
        heads_of = fields.integers("num_attention_heads_per_layer", low=1, high=MOST_HEADS)
        if len(heads_of) < widths.layers:
            raise contradiction(fields.pointer, "num_attention_heads_per_layer", "num_hidden_layers")
    first_reusing = widths.layers - min(fields.integer("num_kv_shared_layers", high=MOST_LAYERS) or 0, widths.layers)
    sparse = _sparse_layers(fields, widths.layers)
    by_kind = {kind: _of_kind(fields, widths, kind) for kind in set(kinds) & SOFTMAX}
    counted: Counter[Heads] = Counter()
    for index, kind in enumerate(kinds):
        heads = by_kind.get(kind)
        if heads is None:
            continue
        if own_heads:
            heads = msgspec.structs.replace(heads, query=heads_of[index])
        if index in own_dims:
            heads = msgspec.structs.replace(heads, key_dim=own_dims[index], value_dim=own_dims[index])
        if index >= first_reusing:
            heads = msgspec.structs.replace(heads, reuses_cache=True)
        if index in sparse:
            heads = msgspec.structs.replace(heads, index_dim=sparse[index])
        counted[heads] += 1
    return counted


def _of_kind(fields: Fields, widths: Widths, kind: LayerKind) -> Heads:
    """Sliding layers may have heads of their own (MiMo-V2, Step), and so may full ones (Gemma 4)."""
    query, kv, key_dim = widths.heads, widths.kv_heads, widths.head_dim
    value_dim = fields.integer("v_head_dim", low=1, high=MOST_WIDTH) or key_dim
    shared = False
    if kind == "sliding":
        other = fields.section("attention_other_setting")
        if other is not None:
            query = other.integer("num_attention_heads", low=1, high=MOST_HEADS) or query
            kv = other.integer("num_attention_groups", low=1, high=MOST_HEADS) or kv
        query = fields.integer("swa_num_attention_heads", low=1, high=MOST_HEADS) or query
        kv = fields.integer("swa_num_key_value_heads", low=1, high=MOST_HEADS) or kv
        key_dim = fields.integer("swa_head_dim", low=1, high=MOST_WIDTH) or key_dim
        value_dim = fields.integer("swa_v_head_dim", low=1, high=MOST_WIDTH) or value_dim
    elif kind == "full" and fields.has("global_head_dim", "num_global_key_value_heads", "attention_k_eq_v"):
        kv = fields.integer("num_global_key_value_heads", low=1, high=MOST_HEADS) or kv
        key_dim = value_dim = fields.integer("global_head_dim", low=1, high=MOST_WIDTH) or key_dim
        shared = fields.flag("attention_k_eq_v", default=False)
    return Heads(kind, query, min(kv, query), key_dim, value_dim, shared_values=shared)


def _per_layer_dims(fields: Fields, layers: int) -> dict[int, int]:
    """Head widths of single layers (``per_layer_config``)."""
    nested = fields.section("per_layer_config")
    dims: dict[int, int] = {}
    if nested is None:
        return dims
    for index in range(layers):
        own = nested.section(f"{index:02d}", str(index))
        if own is not None:
            dim = own.integer("head_dim", low=1, high=MOST_WIDTH)
            if dim is not None:
                dims[index] = dim
    return dims


def _sparse_layers(fields: Fields, layers: int) -> dict[int, int]:
    """Index key width of the layers with block-sparse attention (MiniMax-M3)."""
    nested = fields.section("sparse_attention_config")
    if nested is None or not nested.flag("use_sparse_attention", default=True):
        return {}
    dim = nested.integer("sparse_index_dim", high=MOST_WIDTH) or 0
    switched = nested.integers("sparse_attention_freq", high=1) or (1,) * layers
    return {index: dim for index, on in enumerate(switched[:layers]) if on and dim}


def attention_parts(
    counted: Mapping[Heads, int], facts: AttentionFacts, widths: Widths, *, causal: bool
) -> Iterable[Part]:
    """Projections and caches of the softmax attention layers."""
    for heads, layers in counted.items():
        cache = _cache(heads, facts, widths, layers) if causal and not heads.reuses_cache else ()
        yield Part(layers=layers, each=_parameters(heads, facts, widths.hidden), caches=cache)


def _parameters(heads: Heads, facts: AttentionFacts, hidden: int) -> ParameterCounts:
    queries, keys, values = heads.query * heads.key_dim, heads.kv * heads.key_dim, heads.kv * heads.value_dim
    outputs = heads.query * heads.value_dim
    projected = keys if heads.shared_values else keys + values
    matrices = hidden * (queries * (2 if facts.gated else 1) + projected + outputs)
    matrices += hidden * heads.query if facts.head_gate else 0
    biases = 0 if facts.bias == "none" else queries + projected
    if facts.bias == "all":
        biases += hidden
    index_dim = heads.index_dim
    indexer = index_dim * (hidden * (facts.index_heads + 1) + 2) if index_dim else 0
    return ParameterCounts(
        attention=matrices + biases,
        attention_replicated=indexer,
        norms=_norms(heads, facts, queries, keys)
        + (heads.query if facts.sinks else 0)
        + (2 if heads.kind == "cross" else 0),
    )


def _norms(heads: Heads, facts: AttentionFacts, queries: int, keys: int) -> int:
    if heads.kind == "cross":
        return 2 * heads.key_dim
    if facts.norm == "full":
        return queries + keys
    if facts.norm == "head":
        return 2 * heads.key_dim
    return 0


def _cache(heads: Heads, facts: AttentionFacts, widths: Widths, layers: int) -> tuple[CacheLayers, ...]:
    kind: CacheKind = "full"
    window = 0
    if heads.kind == "sliding" and 0 < facts.window < widths.positions:
        kind, window = "sliding", facts.window
    elif heads.kind == "chunked" and 0 < facts.chunk < widths.positions:
        kind, window = "chunked", facts.chunk
    elif heads.kind == "cross":
        kind, window = "cross", facts.image_tokens
    return (
        CacheLayers(
            kind=kind,
            layers=layers,
            kv_heads=heads.kv,
            elements_per_head=heads.key_dim + heads.value_dim,
            window_tokens=window,
            extra_bytes_per_token=heads.index_dim * _INDEX_BYTES,
            query_heads=heads.query,
            score_dim=heads.key_dim + heads.value_dim,
            sparse_tokens=facts.sparse_tokens if heads.index_dim else 0,
        ),
    )
