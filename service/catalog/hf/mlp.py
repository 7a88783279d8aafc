"""MLPs: dense, routed and shared experts, latent experts, and which layer has which."""

from collections.abc import Iterable

import msgspec

from service.catalog.hf.fault import contradiction, missing
from service.catalog.hf.fields import MOST_EXPERTS, MOST_LAYERS, MOST_WIDTH, Fields
from service.catalog.hf.layer_kinds import block_letters
from service.catalog.hf.parts import Part
from service.catalog.hf.traits import Traits
from service.catalog.hf.widths import Widths
from service.domain.architecture import ParameterCounts

UNGATED = frozenset({"relu2", "xielu", "relu", "gelu_new", "gelu_fast"})
"""Activations of MLPs with two matrices (``hidden_act``), whatever the family."""

_EXPERTS = ("num_local_experts", "n_routed_experts", "num_experts", "moe_num_experts", "num_moe_experts")
_CHOSEN = (
    "num_experts_per_tok", "num_experts_per_token", "top_k_experts", "moe_topk", "moe_k", "moe_top_k",
    "num_selected_experts", "experts_per_token",
)  # fmt: skip
_EXPERT_WIDTH = ("moe_intermediate_size", "expert_intermediate_size", "expert_ffn_hidden_size", "moe_ffn_hidden_size")
_SHARED_WIDTH = (
    "shared_expert_intermediate_size", "moe_shared_expert_intermediate_size", "shared_intermediate_size",
    "share_expert_dim",
)  # fmt: skip
_SHARED_COUNT = ("n_shared_experts", "num_shared_experts", "moe_num_shared_experts", "num_shared_expert")
_DENSE_WIDTH = (
    "dense_intermediate_size", "intermediate_size_mlp", "prefix_dense_intermediate_size", "dense_ffn_hidden_size",
)  # fmt: skip


class Experts(msgspec.Struct, frozen=True):
    """One mixture-of-experts layer."""

    count: int = 0
    chosen: int = 0
    width: int = 0
    shared_width: int = 0
    """Width of all shared experts together."""
    idle: int = 0
    """Choices of the router that pass the token through (LongCat's zero experts)."""
    latent: int = 0
    """Width that experts work at where tokens are projected down first; 0: the hidden size."""


class Mlp(msgspec.Struct, frozen=True):
    """What stands behind the token mixers."""

    experts: Experts
    dense_width: int
    dense_layers: int
    moe_layers: int
    gated: bool


def read_mlp(fields: Fields, traits: Traits, widths: Widths) -> Mlp:
    """Read widths and the layers of each kind."""
    experts = _read_experts(fields, widths)
    sparse = _sparse_layers(fields, widths.layers) if experts.count else frozenset()
    dense = widths.layers - len(sparse) if traits.mlp else 0
    letters = block_letters(fields)
    if letters:
        own = letters[: widths.layers]
        dense, sparse_count = own.count("-"), own.count("E")
    else:
        sparse_count = len(sparse)
    if traits.attention_blocks > 1:
        dense = traits.attention_blocks * widths.layers
    elif traits.residual_mlp or fields.flag("enable_moe_block", default=False):
        dense = widths.layers  # Gemma 4 and Arctic run a dense MLP beside the experts of the same layer
    return Mlp(
        experts=experts if sparse_count else Experts(),
        dense_width=_dense_width(fields, traits, widths, experts) if dense else 0,
        dense_layers=dense,
        moe_layers=sparse_count,
        gated=_gated(fields, traits),
    )


def _gated(fields: Fields, traits: Traits) -> bool:
    activation = fields.raw("mlp_hidden_act") or fields.raw("hidden_act")
    return traits.gated_mlp and not (isinstance(activation, str) and activation in UNGATED)


def _read_experts(fields: Fields, widths: Widths) -> Experts:
    own = fields.section("ffn_config") or fields
    count = own.largest(*_EXPERTS, high=MOST_EXPERTS) or 0
    if count <= 1 or not fields.flag("enable_moe_block", default=True):
        return Experts()
    chosen = own.largest(*_CHOSEN, low=1, high=MOST_EXPERTS)
    if chosen is None:
        raise missing(own.pointer, _CHOSEN[0])
    if chosen > count:
        raise contradiction(own.pointer, _CHOSEN[0], _EXPERTS[0])
    width = fields.largest(*_EXPERT_WIDTH, low=1, high=MOST_WIDTH) or widths.intermediate
    if width is None:
        raise missing(fields.pointer, "moe_intermediate_size")
    shared_count = fields.largest(*_SHARED_COUNT, high=MOST_EXPERTS)
    shared = fields.integer(*_SHARED_WIDTH, high=MOST_WIDTH)
    if shared is None:
        shared = (shared_count or 0) * width
    elif shared_count == 0:
        shared = 0
    if fields.has("interleave_moe_layer_step"):
        shared = width
    return Experts(
        count=count,
        chosen=chosen,
        width=width,
        shared_width=shared,
        idle=fields.integer("zero_expert_num", high=MOST_EXPERTS) or 0,
        latent=fields.integer("moe_latent_size", "routed_expert_hidden_size", high=MOST_WIDTH) or 0,
    )


def _dense_width(fields: Fields, traits: Traits, widths: Widths, experts: Experts) -> int:
    if traits.residual_mlp:
        return widths.hidden
    width = fields.integer(*_DENSE_WIDTH, low=1, high=MOST_WIDTH)
    if width is None and not experts.count:
        width = fields.integer("shared_intermediate_size", high=MOST_WIDTH) or None
    if fields.flag("block_auto_adjust_ff_dim", default=False) and widths.intermediate:
        return _adjusted(fields, widths.intermediate)
    width = width or widths.intermediate
    if width is None:
        raise missing(fields.pointer, "intermediate_size")
    return width


def _adjusted(fields: Fields, width: int) -> int:
    """LFM2 states the width before the two-thirds rule of gated MLPs; rounded up to a multiple."""
    multiple = fields.integer("block_multiple_of", low=1, high=MOST_WIDTH) or 256
    factor = fields.number("block_ffn_dim_multiplier", high=64.0) or 1.0
    return -(-int(factor * (2 * width // 3)) // multiple) * multiple


def _sparse_layers(fields: Fields, layers: int) -> frozenset[int]:
    """Indices of the layers with experts."""
    words = fields.texts("mlp_layer_types")
    if words:
        if len(words) < layers:
            raise contradiction(fields.pointer, "mlp_layer_types", "num_hidden_layers")
        return frozenset(index for index in range(layers) if words[index] in {"sparse", "moe"})
    every = fields.raw("moe_layer_freq")
    if isinstance(every, list | tuple):
        numbers = fields.integers("moe_layer_freq", high=1)
        if len(numbers) < layers:
            raise contradiction(fields.pointer, "moe_layer_freq", "num_hidden_layers")
        return frozenset(index for index in range(layers) if numbers[index])
    chosen = fields.integers("moe_layers", high=MOST_LAYERS)
    if chosen:
        return frozenset(chosen) & frozenset(range(layers))
    enumerated = fields.raw("moe_layers_enum")
    if isinstance(enumerated, str) and enumerated:
        named = {int(piece) for piece in enumerated.split(",") if piece.strip().isdecimal() and len(piece) < 8}  # noqa: PLR2004 - a layer number
        return frozenset(named & set(range(layers)))
    return _periodic(fields, layers)


def _periodic(fields: Fields, layers: int) -> frozenset[int]:
    """Layers with experts by where they start and end, by period, and less those listed as dense."""
    names = ("first_k_dense_replace", "moe_layer_start_index", "num_dense_layers")
    first = fields.largest(*names, high=MOST_LAYERS) or 0
    last = fields.largest("moe_layer_end_index", high=MOST_LAYERS)
    found = set(range(first, layers if last is None else min(last + 1, layers)))
    period = fields.integer("expert_layer_period", low=1, high=MOST_LAYERS)
    if period is not None:
        offset = (fields.integer("expert_layer_offset", high=MOST_LAYERS) or 0) % period
        found = {index for index in found if index % period == offset}
    step = fields.integer("interleave_moe_layer_step", "decoder_sparse_step", "moe_layer_interval", high=MOST_LAYERS)
    if step is not None:
        found = {index for index in found if step and (index + 1) % step == 0}
    return frozenset(found.difference(fields.integers("mlp_only_layers", high=MOST_LAYERS)))


def matrices(hidden: int, width: int, *, gated: bool) -> int:
    """Elements of an MLP without biases."""
    return hidden * width * (3 if gated else 2)


def mlp_parts(fields: Fields, traits: Traits, widths: Widths, mlp: Mlp) -> Iterable[Part]:
    """Parameters of all MLPs."""
    if mlp.dense_layers:
        yield Part(layers=mlp.dense_layers, each=_dense(fields, traits, widths, mlp))
        wider = min(fields.integer("num_kv_shared_layers", high=MOST_LAYERS) or 0, mlp.dense_layers)
        if wider and fields.flag("use_double_wide_mlp", default=False):
            yield Part(layers=wider, each=_dense(fields, traits, widths, mlp))
    if mlp.moe_layers:
        yield Part(layers=mlp.moe_layers, each=moe_parameters(traits, widths, mlp))


def _dense(fields: Fields, traits: Traits, widths: Widths, mlp: Mlp) -> ParameterCounts:
    count = matrices(widths.hidden, mlp.dense_width, gated=mlp.gated)
    if fields.flag("mlp_bias", default=traits.mlp_bias) and fields.flag("use_bias", "bias", default=True):
        count += mlp.dense_width * (2 if mlp.gated else 1) + widths.hidden
    return ParameterCounts(dense_mlp=count)


def moe_parameters(traits: Traits, widths: Widths, mlp: Mlp) -> ParameterCounts:
    """One layer of experts with its gate."""
    experts, hidden = mlp.experts, widths.hidden
    each = matrices(experts.latent or hidden, experts.width, gated=mlp.gated)
    router = hidden * (experts.count + experts.idle)
    if traits.expert_bias:
        each += 2 * experts.width + hidden
        router += experts.count
    if traits.router_bias:
        router += experts.count + experts.idle
    shared = matrices(hidden, experts.shared_width, gated=mlp.gated)
    latent = 2 * hidden * experts.latent
    return ParameterCounts(
        routed_experts=experts.count * each,
        shared_experts=shared + (hidden if traits.shared_gate and experts.shared_width else 0) + latent,
        router=router,
    )
