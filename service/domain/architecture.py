"""What a language model is, as far as memory, time and cost can see.

``service/catalog/hf`` makes it from a ``config.json``; everything else in the domain reads only this record.
"""

from typing import Literal

import msgspec

CacheKind = Literal["full", "sliding", "chunked", "latent", "state", "cross"]
TensorClass = Literal[
    "embedding",
    "lm_head",
    "attention",
    "attention_replicated",
    "dense_mlp",
    "routed_experts",
    "shared_experts",
    "router",
    "state_mixer",
    "norms",
    "vision",
    "mtp",
]
"""Parts of the weights that engines shard, replicate and quantize alike."""


class ParameterCounts(msgspec.Struct, frozen=True):
    """Parameters by tensor class, over all layers (elements, not bytes)."""

    embedding: int = 0
    """Token (and position) embeddings; sharded over the vocabulary by tensor parallelism."""
    lm_head: int = 0
    """Output projection; 0 where tied to the embedding."""
    attention: int = 0
    """Query, key, value and output projections that tensor parallelism shards (incl. biases)."""
    attention_replicated: int = 0
    """Projections every tensor rank holds whole: MLA down-projections, sparse-attention indexer."""
    dense_mlp: int = 0
    """MLP weights of dense layers."""
    routed_experts: int = 0
    """All routed experts together."""
    shared_experts: int = 0
    """Experts that see every token."""
    router: int = 0
    """Expert gates; replicated, kept 16-bit (or fp32) by every format."""
    state_mixer: int = 0
    """State-space, linear-attention and convolution mixers; sharded by heads."""
    norms: int = 0
    """Norms and other small replicated vectors."""
    vision: int = 0
    """Vision and audio towers with their projectors; kept 16-bit by nearly every format."""
    mtp: int = 0
    """Multi-token-prediction layers; loaded only when speculative decoding uses them."""

    @property
    def total(self) -> int:
        """All parameters a plain load holds (without ``mtp``)."""
        return (
            self.embedding + self.lm_head + self.attention + self.attention_replicated + self.dense_mlp
            + self.routed_experts + self.shared_experts + self.router + self.state_mixer + self.norms + self.vision
        )  # fmt: skip


class CacheLayers(msgspec.Struct, frozen=True):
    """Layers that cache alike. A model is a tuple of these; layers without a cache do not appear."""

    kind: CacheKind
    layers: int
    kv_heads: int = 1
    """Heads that tensor parallelism divides, ``ceil(kv_heads / tp)``; 1 for a latent cache, which every rank holds."""
    elements_per_head: int = 0
    """Elements cached per token and head: head_dim of K + head_dim of V; kv_lora_rank + qk_rope_head_dim for latent."""
    window_tokens: int = 0
    """Tokens a sliding or chunked layer can see, or the fixed tokens of a cross cache; 0 for full and latent layers."""
    extra_bytes_per_token: int = 0
    """Per layer and token at any KV precision, on every rank: sparse-attention index keys."""
    state_bytes: int = 0
    """Recurrent (state-space, linear-attention, convolution) state per sequence and layer; divided by tensor ranks."""
    query_heads: int = 0
    """Attention heads that read this cache (for FLOPs)."""
    score_dim: int = 0
    """Query-key width plus value width per head: attention does 2 x query_heads x score_dim FLOPs per token pair."""
    sparse_tokens: int = 0
    """Tokens that a query attends to at most, chosen by an index of its own or of another layer; 0: all it can see."""


class Architecture(msgspec.Struct, frozen=True):
    """One model: widths, parameters by tensor class, and what each layer caches."""

    model_type: str
    """``model_type`` of the config (``llama``, ``deepseek_v3`` ...); the engine support matrix goes by it."""
    role: Literal["decoder", "encoder", "encoder_decoder"]
    """``encoder`` models have no KV cache; ``encoder_decoder`` have self and cross caches."""
    layers: int
    hidden_size: int
    vocab_size: int
    query_heads: int
    """Attention heads; tensor parallelism must divide them."""
    kv_heads: int
    max_position_embeddings: int
    """Longest context the checkpoint declares (tokens)."""
    intermediate_size: int
    """Widest MLP activation per token: dense intermediate size, or experts_per_token x expert width where larger."""
    parameters: ParameterCounts
    cache: tuple[CacheLayers, ...]
    dense_layers: int = 0
    """Layers with a dense MLP."""
    moe_layers: int = 0
    experts: int = 0
    """Routed experts per MoE layer; 0 for dense models."""
    experts_per_token: int = 0
    moe_intermediate_size: int = 0
    """Width of one routed expert."""
    gated_mlp: bool = True
    tied_embeddings: bool = False
    vision_tokens_max: int = 0
    """Tokens of the largest image the engine profiles with; 0 for text models."""
    dtype: str = "bf16"
    """Quantization id of the unquantized tensors (``bf16``, ``fp16``, ``fp32``)."""
    checkpoint_format: str = "bf16"
    """Quantization id of the checkpoint as published (``fp8-block``, ``mxfp4``, ``awq-int4`` ...)."""
    checkpoint_kv_cache: str | None = None
    """KV precision that the checkpoint sets by itself (``fp8``), if any."""
    unquantized: tuple[TensorClass, ...] | None = None
    """Tensor classes the published checkpoint keeps in ``dtype``; None: what the format usually keeps."""
    stored_bits: tuple[tuple[TensorClass, float], ...] = ()
    """Bits per weight of classes that the published checkpoint stores in neither ``checkpoint_format`` nor ``dtype``
    (fp8 attention beside fp4 experts)."""
    rotary_scale: float = 1.0
    """Linear rope scaling: the tables of rotary angles are so many times as long as the context."""
    estimated: tuple[str, ...] = ()
    """Fields that had to be assumed (missing from the config)."""
