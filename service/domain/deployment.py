"""One deployment of a model, or many candidates at once: every ``Number`` is a float or an array of shape ``(n,)``.

The same record feeds memory (``memory.py``), step time (``roofline.py``) and the search (``search.py``), so that a
formula exists once. The model and the engine's behaviour are one per evaluation; what varies over candidates is here.
"""

import msgspec

from service.domain.architecture import TensorClass
from service.domain.numeric import Number

ACTIVATION_BYTES = 2.0
"""Activations are 16-bit, in memory and on the way between ranks."""

WIDE_BYTES = 1.9
"""A tensor of at least this many bytes per parameter is not quantized."""

FINITE_PEAK_FLOPS_PER_S = 1e9
"""A card without any known peak is no candidate (``arithmetic_tflops`` gives 0); this keeps its arithmetic finite."""


class Layout(msgspec.Struct, frozen=True):
    """How the model is spread over accelerators."""

    tensor: Number = 1.0
    pipeline: Number = 1.0
    data: Number = 1.0
    """Ranks inside one deployment with their own KV pool; attention and dense weights are replicated over them."""
    expert: Number = 0.0
    """1.0: routed experts are spread over tensor x data ranks; 0.0: every rank has its tensor share of all experts."""

    @property
    def gpus(self) -> Number:
        """Accelerators of the deployment."""
        return self.tensor * self.pipeline * self.data


class Card(msgspec.Struct, frozen=True):
    """What formulas read of one accelerator of the deployment."""

    usable_memory_bytes: Number
    """Total memory as the engine's process sees it."""
    bandwidth_bytes_per_s: Number
    weight_flops_per_s: Number
    """Dense peak in the arithmetic that this weight format runs in on this card."""
    flops_per_s: Number
    """Dense peak at 16 bits: attention and the tensors that stay 16-bit."""
    link_bytes_per_s: Number
    """Peak of one card in one direction to the others of the server; 0.0 where it has none."""


class Precision(msgspec.Struct, frozen=True):
    """Bytes per element."""

    weight_bytes: dict[TensorClass, Number]
    """Bytes per parameter of each tensor class, with scales and zeros."""
    kv_bytes: Number
    """Bytes per cached element."""
    mxfp4_experts: Number = 0.0
    """1.0 where routed experts run in MXFP4 kernels: they pad expert matrices and keep no workspace."""


class EngineSettings(msgspec.Struct, frozen=True):
    """Launch settings with every default resolved for the engine, its version and the card's class."""

    memory_fraction: Number
    """vLLM gpu_memory_utilization, SGLang mem_fraction_static, TensorRT-LLM free_gpu_memory_fraction."""
    max_model_len: Number
    max_num_seqs: Number
    max_num_batched_tokens: Number
    block_size: Number
    cuda_graphs: Number = 1.0
    """0.0 with enforce_eager."""
    hybrid_kv_cache: Number = 1.0
    """0.0: sliding layers are billed as full."""
    kv_cache_memory_bytes: Number = 0.0
    """A pool of this size instead of what is left; 0.0: not given."""
    cpu_offload_bytes: Number = 0.0
    platform_bytes: Number = 0.0
    """Memory that the vendor's runtime takes beyond what the engine's own figures (from NVIDIA cards) hold."""
    expert_width_multiple: Number = 128.0
    """MXFP4 kernels pad the width of experts to this on each rank."""
    lora_bytes: Number = 0.0
    """Adapter slots preallocated on each accelerator."""
    draft_bytes: Number = 0.0
    """Weights of a draft model on each accelerator."""
    draft_tokens: Number = 0.0
    """Speculative tokens per step; recurrent layers keep one more state for each."""
    draft_layers: int = 0
    """Layers with a KV cache that the draft module adds."""
    prefix_caching: bool = True
    chunked_prefill: bool = True


class Deployment(msgspec.Struct, frozen=True):
    """Everything about a deployment but the model and the traffic."""

    layout: Layout
    card: Card
    precision: Precision
    settings: EngineSettings


class MemoryParts(msgspec.Struct, frozen=True):
    """Bytes of one accelerator (of the heaviest pipeline stage)."""

    total: Number
    budget: Number
    """What the engine lets itself use."""
    weights: Number
    activation: Number
    cuda_graph: Number
    non_torch: Number
    kv_cache: Number
    """What is left for the KV pool; may be negative where the rest does not fit."""
    unused: Number
    """Total minus everything above."""


class KvCapacity(msgspec.Struct, frozen=True):
    """What the KV pool of one data rank holds."""

    bytes_per_token: Number
    """Growth of one long sequence per token on one accelerator (full and latent layers)."""
    capacity_tokens: Number
    """Tokens the engine prints at start-up."""
    request_bytes: Number
    """Pool bytes of one request of ``at_tokens`` (windows, whole blocks, recurrent state)."""
    max_concurrency: Number
    """Requests of ``at_tokens`` that fit at once, over all data ranks."""
    at_tokens: Number
    block_tokens: Number = 1.0
    """Tokens of the smallest block (or slot) of the pool."""
    start_bytes: Number = 0.0
    """Pool bytes that the start-up check wants for one request of ``at_tokens``; where an engine has such a check."""
