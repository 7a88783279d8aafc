"""An inference engine as memory sees it: how one version accounts, what it defaults to, what it can run.

Values come from ``service/catalog/data/engines/<engine>.json``, each with its band of versions and its source. Rules
are members of closed enums that name a function; no formula lives in data.
"""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from service.domain.kv_cache import CacheRule

EngineName = Literal["vllm", "sglang", "tensorrt-llm", "llama.cpp"]

MemoryRule = Literal["utilization_of_total", "static_fraction", "fraction_of_free", "whole_context"]
"""utilization_of_total: the KV pool is fraction x total memory less everything else (vLLM).
static_fraction: weights and pool together take fraction x memory free before load (SGLang).
fraction_of_free: the pool takes a fraction of what is left after weights and activations (TensorRT-LLM).
whole_context: the pool is the whole context, whatever is left (llama.cpp)."""

FRACTION_FIELDS: dict[MemoryRule, str] = {
    "utilization_of_total": "gpu_memory_utilization",
    "static_fraction": "mem_fraction_static",
    "fraction_of_free": "free_gpu_memory_fraction",
}
"""What engines call their share of the memory, by the rule that reads it."""

PrintRule = Literal["blocks_by_groups", "concurrency_times_length"]
"""How a hybrid model's printed token count comes about: blocks // groups x smallest block, or concurrency x length."""

ChunkedPrefill = Literal["on", "off", "above_32k"]
"""Whether prefill is cut into chunks by default; ``above_32k``: only from a max_model_len of 32,768 on (vLLM V0)."""

FractionRule = Literal["given", "reserve_by_card_class", "reserve_by_batch"]
"""Default memory fraction: the number ``memory_fraction``; or total less a reserve: by card class (SGLang <= 0.4.8) or
by prefill chunk, CUDA graph sizes and ranks (SGLang since)."""

ActivationRule = Literal["profiled_peak", "compute_buffer", "outside_budget"]
"""profiled_peak: measured in a dummy run before the pool is sized. compute_buffer: llama.cpp's scheduler buffer.
outside_budget: as profiled_peak, but it must fit beside the pool."""


class SupportRule(msgspec.Struct, frozen=True):
    """What an engine cannot run in one band of versions. The first rule that matches refuses."""

    what: Literal["vendor", "card", "model_type", "weights", "kv_cache"]
    ids: tuple[str, ...]
    """Subjects. For ``vendor``: the only vendors that the engine runs on."""
    prefixes: tuple[str, ...] = ()
    """Subjects by how they begin; an empty prefix means all."""
    vendors: tuple[str, ...] = ()
    """The rule concerns cards of these vendors only; empty: all."""
    min_compute_capability: float | None = None
    """Refused below this; where ``absent``, refused everywhere."""
    absent: bool = False
    """These versions do not run the subjects at all."""
    since: str | None = None
    """First version that does, if any."""


class ResidualClass(msgspec.Struct, frozen=True):
    """How far the predicted KV pool was from the printed one, in a class of start-up logs."""

    layers: Literal["uniform", "hybrid", "any"]
    """uniform: one kind of growing layers. hybrid: windows or states beside them."""
    accelerators: Literal["one", "several", "any"]
    share_of_memory: float
    """90 % of the cases were within this share of one accelerator's memory."""
    cases: int
    own: bool
    """Of this engine's logs; else of all engines'."""


class EngineBehaviour(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One engine in one band of versions."""

    engine: EngineName
    version: str
    """The version that picked the band."""
    memory_rule: MemoryRule
    cache_rule: CacheRule
    print_rule: PrintRule
    activation_rule: ActivationRule
    fraction_rule: FractionRule
    memory_fraction: float
    """Default of gpu_memory_utilization, mem_fraction_static or free_gpu_memory_fraction."""
    block_size: int
    """Tokens of a KV block by default."""
    chunked_prefill: ChunkedPrefill
    batched_tokens_large: int
    """Default max_num_batched_tokens on cards of ``large_card_gib`` and more that are not in ``small_batch_cards``."""
    batched_tokens_small: int
    seqs_large: int
    seqs_small: int
    large_card_gib: float
    small_batch_cards: tuple[str, ...]
    """Card name parts that take the small defaults whatever their memory."""
    graphs_in_budget: bool
    """CUDA graph memory is estimated and subtracted before the KV pool is sized."""
    graph_base_gib: float
    """CUDA graph memory at the largest set of capture sizes (up to 512): constant part."""
    graph_per_layer_gib: float
    graph_moe_gib: float
    graph_most_tokens: int
    """Largest capture size by default; ``2 x max_num_seqs`` where that is less."""
    sampler_bytes_per_logit: float
    """Peak bytes per sequence and vocabulary entry of the sampler's dummy run."""
    hidden_copies: float
    """Rows of hidden size per batched token that live at the sampler's peak."""
    mlp_copies: float
    """Rows of MLP width per batched token that live at the forward peak of a gated MLP."""
    forward_hidden_copies: float
    """Rows of hidden size per batched token that live at the forward peak."""
    activation_base_gib: float
    expert_workspace: bool
    """Expert kernels keep their workspace for good, so it adds to the sampler's peak."""
    latent_prefill_tokens: int
    """Most tokens of context that a latent-attention model expands at a time; its workspace stays allocated."""
    encoder_cache: bool
    """Multimodal models hold the profiled encoder output of one batch while they profile."""
    non_torch_single_gib: float
    """NCCL-free memory outside torch's allocator: one accelerator."""
    non_torch_tensor_gib: float
    """The same with tensor parallelism over a fast link (NVLink): communicators and all-reduce buffers."""
    non_torch_tensor_slow_gib: float
    """The same over PCIe."""
    non_torch_per_rank_gib: float
    """Added per tensor rank."""
    non_torch_pipeline_gib: float
    """The same with pipeline stages of one card each."""
    non_torch_amd_gib: float
    """What ROCm adds to each of these."""
    context_gib: float
    """Driver context and libraries that hold memory before the engine counts."""
    experts_span_data: bool
    """Experts are sliced over tensor x data ranks even without expert parallelism."""
    embedding_on_host: bool
    """An untied token embedding stays in host memory."""
    latent_as_heads: bool
    """Latent attention is cached as full heads (llama.cpp before its MLA support)."""
    flash_attention: bool
    """Attention scores are never stored whole; else the compute buffer holds a batch of them over the context."""
    windowed_cache: bool
    """Sliding-window layers cache their window only."""
    group_padding_ratio: float
    """Hybrid groups take the largest layer count while it is within this ratio of the smallest."""
    unchunked_vendors: tuple[str, ...] = ()
    """Makers on whose cards prefill is not cut into chunks by default, whatever ``chunked_prefill`` says."""
    older_engine_below_capability: float = 0.0
    """Cards below this compute capability run the older engine of a version that has two (vLLM V0 beside V1): prefill in
    chunks from 32,768 tokens on only, and its batch defaults."""
    separate_expert_caches: bool = False
    """Expert kernels keep the results of both projections apart, instead of in two workspaces."""
    encoder_profile_copies: float = 0.0
    """Rows of encoder width per encoder token that live while every profiled sequence brings an input of its own."""
    context_tensor_gib: float = 0.0
    """As ``context_gib``, with tensor parallelism over a fast link; 0: no more than on one card."""
    warms_up: bool = False
    """After the pool and the graphs, the sampler runs once more over ``max_num_seqs`` rows."""
    mxfp4_fragments_gib: float = 0.0
    """Blocks that the allocator keeps after repacking MXFP4 experts and that no later request fits into."""
    images_on_first_card: bool = False
    """Every rank prepares images on the first accelerator."""
    mxfp4_plain_width_capability: float = 0.0
    """Cards of this compute capability run MXFP4 experts in kernels that pad the hidden size only."""
    wide_graph_families: tuple[str, ...] = ()
    """Architecture families that are captured up to ``wide_graph_tokens``."""
    wide_graph_tokens: int = 0
    residuals: tuple[ResidualClass, ...] = ()
    """Classes of logs, the narrowest first."""
    support: tuple[SupportRule, ...] = ()
    """What these versions do not run."""


Fraction = Annotated[float, Meta(gt=0.0, le=1.0)]
Tokens = Annotated[int, Meta(ge=1, le=100_000_000)]
Requests = Annotated[int, Meta(ge=1, le=65_536)]
PoolBytes = Annotated[int, Meta(ge=1, le=1 << 44)]


class Speculative(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Speculative decoding."""

    method: Annotated[str, Meta(min_length=1, max_length=64)] = "draft_model"
    """mtp, eagle, draft_model, ngram ..."""
    tokens: Annotated[int, Meta(ge=1, le=64)] = 1
    """Speculative tokens per step."""
    acceptance_rate: Annotated[float, Meta(ge=0.0, le=1.0)] | None = None
    """Share of speculative tokens that the model accepts."""
    draft_model: Annotated[str, Meta(min_length=1, max_length=200)] | None = None
    """Model id of the draft; none: the checkpoint's own prediction layers."""


class Lora(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """LoRA adapters served beside the base model; their slots are allocated at start."""

    max_loras: Annotated[int, Meta(ge=1, le=256)] = 1
    """Adapters in one batch."""
    max_rank: Annotated[int, Meta(ge=1, le=512)] = 16
    """Highest rank of an adapter."""


class EngineRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Launch settings of the engine; what is not given takes the default of engine, version and card."""

    name: EngineName = "vllm"
    """Inference engine."""
    version: Annotated[str, Meta(min_length=1, max_length=100)] | None = None
    """Any text; its leading version picks the behaviour. Default: the newest version known."""
    gpu_memory_utilization: Fraction | None = None
    """vLLM: share of all memory that it may use."""
    mem_fraction_static: Fraction | None = None
    """SGLang: share of free memory for weights and KV pool."""
    free_gpu_memory_fraction: Fraction | None = None
    """TensorRT-LLM: share of what weights and activations leave, for the KV pool."""
    max_model_len: Tokens | None = None
    """Longest context of one request. Default: what the checkpoint declares."""
    ctx_size: Tokens | None = None
    """llama.cpp: context of all slots together."""
    max_num_seqs: Requests | None = None
    """Most requests in one step."""
    parallel: Requests | None = None
    """llama.cpp: slots."""
    max_num_batched_tokens: Annotated[int, Meta(ge=1, le=16_777_216)] | None = None
    """Most tokens in one step."""
    enforce_eager: bool = False
    """No CUDA graphs."""
    block_size: Annotated[int, Meta(ge=1, le=65_536)] | None = None
    """Tokens of a KV block."""
    prefix_caching: bool | None = None
    """Keep the KV cache of shared prompt prefixes."""
    chunked_prefill: bool | None = None
    """Cut long prompts into steps of max_num_batched_tokens."""
    kv_cache_memory_bytes: PoolBytes | None = None
    """Size of the KV pool on each accelerator, instead of what is left."""
    cpu_offload_bytes: Annotated[int, Meta(ge=0, le=1 << 44)] = 0
    """Weights of each accelerator that are kept in host memory."""
    hybrid_kv_cache: bool = True
    """False: sliding layers are billed as full."""
    speculative: Speculative | None = None
    lora: Lora | None = None
