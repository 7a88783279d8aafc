"""The main dimensions of a decoder or encoder, under their many names."""

import msgspec

from service.catalog.hf.fault import contradiction
from service.catalog.hf.fields import (
    MOST_HEADS,
    MOST_HIDDEN,
    MOST_LAYERS,
    MOST_POSITIONS,
    MOST_VOCABULARY,
    MOST_WIDTH,
    Fields,
)
from service.catalog.hf.traits import Traits

_ASSUMED_POSITIONS = 4096
_STATE_HEAD = 64
"""Channels that a model without attention shards together, where it has no heads."""

HEADS = ("num_attention_heads", "n_head", "n_heads", "num_heads")
KV_HEADS = (
    "num_key_value_heads", "num_kv_heads", "n_head_kv", "multi_query_group_num", "num_query_groups",
    "num_attention_groups", "kv_n_heads",
)  # fmt: skip
_POSITIONS = (
    "max_position_embeddings", "n_positions", "max_sequence_length", "max_seq_len", "model_max_length", "seq_length",
    "max_seq_length", "n_ctx",
)  # fmt: skip


class Widths(msgspec.Struct, frozen=True):
    """Sizes that every part reads."""

    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    vocabulary: int
    positions: int
    intermediate: int | None
    """Width of a dense MLP; None where the config has none (all experts, or another reader's key)."""


def read_widths(fields: Fields, traits: Traits) -> Widths:
    """Read the main dimensions; without hidden size, layers, heads and vocabulary there is no model."""
    hidden = fields.required("hidden_size", "n_embd", "d_model", "dim", high=MOST_HIDDEN)
    layers = read_layers(fields)
    heads = fields.largest(*HEADS, low=1, high=MOST_HEADS)
    inner = read_intermediate(fields)
    if heads is None:
        heads = _heads_without_attention(fields, hidden)
    head_dim = fields.largest("head_dim", "attention_head_dim", "kv_channels", "head_size", high=MOST_WIDTH)
    if not head_dim:
        if hidden < heads:
            raise contradiction(fields.pointer, HEADS[0], "hidden_size")
        head_dim = hidden // heads
    if inner is None and not traits.gated_mlp:
        inner = 4 * hidden
    return Widths(
        hidden=hidden,
        layers=layers,
        heads=heads,
        kv_heads=_kv_heads(fields, heads),
        head_dim=head_dim,
        vocabulary=fields.required("vocab_size", "padded_vocab_size", high=MOST_VOCABULARY),
        positions=fields.assumed(*_POSITIONS, high=MOST_POSITIONS, default=_ASSUMED_POSITIONS),
        intermediate=inner,
    )


def read_layers(fields: Fields) -> int:
    """Layers; a list of blocks is as good as a number (Nemotron-3)."""
    names = ("num_hidden_layers", "n_layer", "n_layers", "num_layers")
    for listed in ("layers_block_type", "hybrid_override_pattern", "layer_types"):
        if not fields.has(*names) and fields.has(listed):
            pattern = fields.raw(listed)
            count = len(pattern) if isinstance(pattern, str) else len(fields.items(listed))
            if 0 < count <= MOST_LAYERS:
                return count
    return fields.required(*names, high=MOST_LAYERS)


def read_intermediate(fields: Fields) -> int | None:
    """Width of the dense MLP; the largest of a per-layer list."""
    inner = fields.largest(
        "intermediate_size", "n_inner", "ffn_dim", "ffn_hidden_size", "d_ff", "inner_dim", "ff_intermediate_size",
        "moe_intermediate_size", low=1, high=MOST_WIDTH,
    )  # fmt: skip
    nested = fields.section("ffn_config")
    if inner is None and nested is not None:
        inner = nested.integer("ffn_hidden_size", low=1, high=MOST_WIDTH)
    return inner


def _kv_heads(fields: Fields, heads: int) -> int:
    """Heads of keys and values: as many as queries where nothing says otherwise (``transformers``' own default)."""
    kv_heads = fields.largest(*KV_HEADS, low=1, high=MOST_HEADS)
    nested = fields.section("attn_config")
    if kv_heads is None and nested is not None:
        kv_heads = nested.integer("kv_n_heads", low=1, high=MOST_HEADS)
    if kv_heads is None and fields.flag("multi_query", default=False):
        kv_heads = 1 if not fields.flag("new_decoder_architecture", default=False) else heads
    return heads if kv_heads is None else min(kv_heads, heads)


def _heads_without_attention(fields: Fields, hidden: int) -> int:
    """A pure state-space model has no attention heads: what tensor parallelism divides is its inner width."""
    if not fields.has("state_size", "ssm_state_size", "mamba_d_state", "time_step_rank"):
        return fields.required(*HEADS, high=MOST_HEADS)
    return max(2 * hidden // _STATE_HEAD, 1)
