"""Weight bytes of one accelerator: by tensor class, under tensor, pipeline, data and expert parallelism.

Engines shard attention and MLP matrices over tensor ranks, shard embeddings over a padded vocabulary, replicate norms,
routers and latent down-projections, and give pipeline stages whole layers: the first also holds the embedding, the last
the output head (vLLM distributed/utils.py ``get_pp_indices``; checked on Llama-3.1-8B: 14.99, 7.51 and 3.77 GiB at
TP 1, 2, 4 and 7.51, 4.26 GiB at PP 2, 4).
"""

from collections.abc import Mapping
from typing import Literal, cast

import msgspec

from service.domain.architecture import Architecture, CacheLayers, ParameterCounts, TensorClass
from service.domain.deployment import Layout, Precision
from service.domain.kv_cache import GROWING, WINDOWED
from service.domain.numeric import Number, ceil, choose, floor, greater, lesser
from service.domain.quantization import Quantization

FLOAT_BYTES = {"fp32": 4.0, "bf16": 2.0, "fp16": 2.0}
"""Formats that every tensor class is stored in alike."""

MXFP4_HIDDEN_MULTIPLE = 256
"""MXFP4 kernels pad the hidden size to this (vLLM quantization/mxfp4.py); ``expert_width_multiple`` says what the width."""

VOCABULARY_PADDING = 64
"""vLLM and SGLang pad the vocabulary to this before sharding (vocab_parallel_embedding.py)."""

MOST_ROTARY_DIM = 128
"""Wide heads (256 and up) rotate a part only, so their rotary tables are no wider than this."""

LATENT_ROTARY_DIM = 64
"""Rotary width of latent attention (qk_rope_head_dim of every DeepSeek, Kimi, GLM and Mistral model with it)."""

ABSORBED_BYTES = 2.0
"""The second copy is 16-bit (vLLM MLACommonImpl.process_weights_after_loading): 0.12 GiB a card for R1 at TP 16."""

_CLASSES = cast("tuple[TensorClass, ...]", ParameterCounts.__struct_fields__)

Layers = Literal["all", "dense", "moe"]
"""Which layers hold a tensor class, and so how pipeline stages share it."""

SHARED_AS: dict[TensorClass, Layers] = {
    "attention": "all",
    "attention_replicated": "all",
    "dense_mlp": "dense",
    "routed_experts": "moe",
    "shared_experts": "moe",
    "router": "moe",
    "state_mixer": "all",
    "norms": "all",
}
"""Tensor classes of the layers; the others stand beside them, on the first or the last stage."""


def precision(
    architecture: Architecture,
    weights: Quantization,
    kv_cache: Quantization,
    checkpoint_bytes: float | None = None,
) -> Precision:
    """Bytes per parameter of each tensor class, and per cached element.

    ``weights`` is the format served (give the checkpoint's own where nothing else is asked for). A class it does not
    quantize stays in ``architecture.dtype``; where the format is the checkpoint's, its own list of unquantized classes
    wins, and so do the bits of classes that it stores in another format. ``kv_cache`` is the format of cached keys and
    values (``served_kv_format`` resolves ``auto``). ``checkpoint_bytes`` (the safetensors total) rescales the
    checkpoint's own format to what is stored.
    """
    base = FLOAT_BYTES.get(architecture.dtype, 2.0)
    published = weights.id == architecture.checkpoint_format
    kept = architecture.unquantized if published else None
    stored = dict(architecture.stored_bits) if published else {}
    quantized = weights.bits_per_weight / 8.0
    by_class: dict[TensorClass, Number] = {}
    for name in _CLASSES:
        if weights.id in FLOAT_BYTES:
            by_class[name] = FLOAT_BYTES[weights.id]
        elif name in stored:
            by_class[name] = stored[name] / 8.0
        elif kept is not None:
            by_class[name] = base if name in kept else quantized
        else:
            by_class[name] = quantized if name in weights.quantizes else base
    if checkpoint_bytes is not None and published:
        counted = sum(getattr(architecture.parameters, name) * size for name, size in by_class.items())
        by_class = {name: size * (checkpoint_bytes / counted) for name, size in by_class.items()}
    return Precision(
        weight_bytes=by_class,
        kv_bytes=(kv_cache.bits_per_weight if kv_cache.kv_bits is None else kv_cache.kv_bits) / 8.0,
        mxfp4_experts=1.0 if weights.id == "mxfp4" else 0.0,
    )


class StageWeights(msgspec.Struct, frozen=True):
    """Bytes that one rank would hold if it had every layer, and the layers of each pipeline stage."""

    by_class: Mapping[TensorClass, Number]
    even: Number
    """Classes that all layers share alike."""
    dense: Number
    moe: Number
    rotary: Number
    """Cosine and sine tables, whole on every rank."""
    ends: tuple[Number, Number, Number]
    """Bytes beside the layers on the first, a middle and the last stage: embedding, head, vision, rotary tables."""
    layers: tuple[Number, Number, Number]
    """Whole layers on the first, a middle and the last stage."""
    dense_share: tuple[Number, Number, Number]
    """Share of all dense MLP layers on each."""
    moe_share: tuple[Number, Number, Number]

    def total(self, stage: int, all_layers: int) -> Number:
        """Bytes of stage 0 (first), 1 (middle) or 2 (last)."""
        return (
            self.even * (self.layers[stage] / all_layers)
            + self.dense * self.dense_share[stage]
            + self.moe * self.moe_share[stage]
            + self.ends[stage]
        )

    def share(self, name: str, stage: int, all_layers: int) -> Number:
        """Share of a tensor class that a stage holds; 1.0 for what stands beside the layers (tables, adapters too)."""
        match SHARED_AS.get(cast("TensorClass", name)):
            case "all":
                return self.layers[stage] / all_layers
            case "dense":
                return self.dense_share[stage]
            case "moe":
                return self.moe_share[stage]
            case None:
                return 1.0


def padded_vocabulary(architecture: Architecture) -> int:
    """Rows of the embedding after padding."""
    return -(-architecture.vocab_size // VOCABULARY_PADDING) * VOCABULARY_PADDING


def stage_layers(layers: int, pipeline: Number) -> tuple[Number, Number, Number]:
    """Layers of the first, a middle and the last stage.

    Each stage gets ``layers // pipeline``; the rest goes to the stages before the last, from the back (vLLM
    ``get_pp_indices``). The middle entry repeats the largest count where there is no middle stage.
    """
    base = floor(layers / pipeline)
    rest = layers - base * pipeline
    one_more = lesser(rest, 1.0)
    return base + choose(rest + 1.5 > pipeline, one_more, 0.0), base + one_more, base


def kv_projection_parameters(architecture: Architecture) -> float:
    """Parameters of the K and V projections that tensor ranks beyond the KV heads must repeat."""
    counted = sum(
        group.layers * group.kv_heads * group.elements_per_head * architecture.hidden_size
        for group in architecture.cache
        if group.kind in {"full", "sliding", "chunked"}
    )
    return float(min(counted, architecture.parameters.attention))


def _attention_on_rank(architecture: Architecture, tensor: Number) -> Number:
    """Attention parameters of one rank: queries and output by rank, keys and values by whole KV heads."""
    keys_values = kv_projection_parameters(architecture)
    heads = max((group.kv_heads for group in architecture.cache), default=1)
    return (architecture.parameters.attention - keys_values) / tensor + keys_values * (ceil(heads / tensor) / heads)


def absorbed_elements(architecture: Architecture) -> float:
    """Elements of the up-projections of latent attention, which engines keep a second time, transposed for decoding.

    Heads x latent width x (key width without rotary part + value width).
    """
    return float(
        sum(
            group.layers
            * group.query_heads
            * (group.elements_per_head - LATENT_ROTARY_DIM)
            * max(group.score_dim - LATENT_ROTARY_DIM, 0)
            for group in architecture.cache
            if group.kind == "latent"
        )
    )


def rotary_table_elements(architecture: Architecture) -> float:
    """Cosine and sine tables, one per rotary width: positions x width (14.96 GiB of Llama-3.1-8B print as 14.99).

    Linear scaling lengthens the table of the layers that see everything; windows keep one of their own (vLLM
    LinearScalingRotaryEmbedding; Gemma-3-4B prints 8.54 GiB, 0.56 of it tables).
    """
    if architecture.rotary_scale > 1.0:
        full = max((group.elements_per_head // 2 for group in architecture.cache if group.kind in GROWING), default=0)
        window = max(
            (group.elements_per_head // 2 for group in architecture.cache if group.kind in WINDOWED), default=0
        )
        return float(architecture.max_position_embeddings * (full * architecture.rotary_scale + window))
    widths = {_rotary_width(group) for group in architecture.cache if group.kind not in {"state", "cross"}}
    return float(architecture.max_position_embeddings * sum(widths))


def _rotary_width(group: CacheLayers) -> int:
    return LATENT_ROTARY_DIM if group.kind == "latent" else min(group.elements_per_head // 2, MOST_ROTARY_DIM)


def stage_weights(  # noqa: PLR0913 - a layout, formats, and what engines do differently
    architecture: Architecture,
    layout: Layout,
    precision: Precision,
    *,
    experts_span_data: bool,
    embedding_on_host: bool,
    expert_width_multiple: Number,
) -> StageWeights:
    """Bytes of one rank by class, and how pipeline stages share them.

    ``experts_span_data``: the engine slices experts over tensor x data ranks even without expert parallelism (vLLM).
    ``embedding_on_host``: an untied token embedding stays in host memory (llama.cpp).
    """
    counts = architecture.parameters
    size = precision.weight_bytes
    tensor = layout.tensor
    padding = padded_vocabulary(architecture) / architecture.vocab_size
    experts = max(architecture.experts, 1)
    ranks = tensor * layout.data
    slices = expert_slices(layout, span_data=experts_span_data)
    expert_share = choose(layout.expert > 0.0, ceil(experts / ranks) / experts, 1.0 / slices)

    embedding = counts.embedding * padding * size["embedding"] / tensor
    head = counts.lm_head * padding * size["lm_head"] / tensor
    untied_head = head if counts.lm_head else embedding
    if embedding_on_host and counts.lm_head:
        embedding = 0.0 * embedding
    vision = counts.vision * size["vision"] / tensor
    # llama.cpp computes the angles in its kernels: no tables.
    rotary = 0.0 if embedding_on_host else rotary_table_elements(architecture) * size["norms"]

    by_class: dict[TensorClass, Number] = {
        "embedding": embedding,
        "lm_head": head,
        "attention": _attention_on_rank(architecture, tensor) * size["attention"]
        + absorbed_elements(architecture) * ABSORBED_BYTES / tensor,
        "attention_replicated": counts.attention_replicated * size["attention_replicated"],
        "dense_mlp": counts.dense_mlp * size["dense_mlp"] / tensor,
        "routed_experts": counts.routed_experts
        * size["routed_experts"]
        * expert_share
        * expert_padding(architecture, slices, precision, expert_width_multiple),
        "shared_experts": counts.shared_experts * size["shared_experts"] / tensor,
        "router": counts.router * size["router"],
        "state_mixer": counts.state_mixer * size["state_mixer"] / tensor,
        "norms": counts.norms * size["norms"],
        "vision": vision,
    }
    layers = stage_layers(architecture.layers, layout.pipeline)
    dense_share, moe_share = _mlp_shares(architecture, layers)
    alone = choose(layout.pipeline > 1.0, 0.0, 1.0)
    return StageWeights(
        by_class=by_class,
        even=_total(by_class, "all"),
        dense=_total(by_class, "dense"),
        moe=_total(by_class, "moe"),
        rotary=rotary,
        ends=(embedding + vision + rotary + head * alone, rotary, untied_head + rotary),
        layers=layers,
        dense_share=dense_share,
        moe_share=moe_share,
    )


def expert_slices(layout: Layout, *, span_data: bool) -> Number:
    """Ranks that the width of each routed expert is cut over; 1 under expert parallelism, which keeps experts whole.

    ``span_data``: data ranks cut them too (``EngineBehaviour.experts_span_data``; vLLM flattens tensor and data ranks,
    fused_moe/config.py ``FusedMoEParallelConfig.make``).
    """
    cut = layout.tensor * layout.data if span_data else layout.tensor
    return choose(layout.expert > 0.0, 1.0, cut)


def expert_padding(architecture: Architecture, slices: Number, precision: Precision, width_multiple: Number) -> Number:
    """Growth of expert matrices by the padding of MXFP4 kernels; 1 for other formats. ``slices``: ``expert_slices``."""
    hidden, width = architecture.hidden_size, max(architecture.moe_intermediate_size, 1)
    on_rank = width / slices
    padded_width = ceil(on_rank / width_multiple) * width_multiple
    padded_hidden = -(-hidden // MXFP4_HIDDEN_MULTIPLE) * MXFP4_HIDDEN_MULTIPLE
    return choose(precision.mxfp4_experts > 0.0, (padded_hidden / hidden) * (padded_width / on_rank), 1.0)


def _total(by_class: Mapping[TensorClass, Number], layers: Layers) -> Number:
    total: Number = 0.0
    for name, holders in SHARED_AS.items():
        if holders == layers:
            total = total + by_class[name]
    return total


def _mlp_shares(
    architecture: Architecture, layers: tuple[Number, Number, Number]
) -> tuple[tuple[Number, Number, Number], tuple[Number, Number, Number]]:
    """Shares of the dense and of the expert layers on each stage.

    Few dense layers stand at the front (DeepSeek: 3 of 61); from a quarter of the others on they are interleaved.
    """
    dense, moe, every = architecture.dense_layers, architecture.moe_layers, architecture.layers
    if dense and moe and dense * 4 <= moe:
        first, middle, last = layers
        leading = lesser(first, float(dense))
        rest = tuple(lesser(count, float(moe)) / moe for count in (middle, last))
        return (leading / dense, 0.0 * middle, 0.0 * last), (greater(first - leading, 0.0) / moe, rest[0], rest[1])
    share = (layers[0] / every, layers[1] / every, layers[2] / every)
    return share, share
