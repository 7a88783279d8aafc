"""Launch settings with every default resolved: by engine version, class of card and model."""

from service.domain.accelerator import Accelerator
from service.domain.answer import Assumed
from service.domain.architecture import Architecture
from service.domain.deployment import EngineSettings, Layout
from service.domain.engine import FRACTION_FIELDS, EngineBehaviour, EngineRequest, Lora
from service.domain.message import Message
from service.domain.numeric import as_float
from service.domain.units import GIB, MIB

ADAPTER_BYTES = 2.0
"""LoRA matrices are 16-bit."""

MXFP4_WIDTH_MULTIPLE = 128.0
"""Marlin and the other MXFP4 kernels pad the expert width on each rank to this (vLLM quantization/mxfp4.py): gpt-oss-20b
takes 13.64 GiB and not 12.82, gpt-oss-120b 17.22 GiB a card at TP 4 and not 15.21. Triton's on Hopper do not: 64.38 GiB
for gpt-oss-120b instead of 65.97."""

UNCHUNKED_FLOOR_TOKENS = 2048
"""Without chunked prefill vLLM V0 profiles max_model_len tokens, and no less than this (config.py, SchedulerConfig)."""

LONG_CONTEXT_TOKENS = 32_768
"""Above this length vLLM V0 turns chunked prefill on by itself (vllm issue 10517)."""


def resolve_settings(  # noqa: C901, PLR0913 - one field a line; the six things a default may depend on
    request: EngineRequest,
    architecture: Architecture,
    accelerator: Accelerator,
    layout: Layout,
    behaviour: EngineBehaviour,
    draft_bytes: float = 0.0,
) -> tuple[EngineSettings, tuple[Assumed, ...]]:
    """Fill what the request leaves open, and list it.

    ``draft_bytes``: weights of a draft model on each accelerator, where the request names one that the caller resolved.
    Settings named for another engine are read as this engine's nearest (``gpu_memory_utilization`` as
    ``mem_fraction_static``, ``ctx_size`` as ``max_model_len``, ``parallel`` as ``max_num_seqs``).
    """
    assumed: list[Assumed] = []

    def default(field: str, value: float, code: str) -> float:
        shown = int(value) if float(value).is_integer() and field != "gpu_memory_utilization" else value
        why = Message(code, {"engine": behaviour.engine, "version": behaviour.version, "gpu": accelerator.id})
        assumed.append(Assumed(field=f"/engine/{field}", value=shown, why=why))
        return float(value)

    if request.version is None:
        why = Message("default_engine_version", {"engine": behaviour.engine, "version": behaviour.version})
        assumed.append(Assumed(field="/engine/version", value=behaviour.version, why=why))
    elif request.version != behaviour.version:
        assumed.append(Assumed(field="/engine/version", value=behaviour.version, why=read_version(request, behaviour)))

    length = _first(request.max_model_len, request.ctx_size)
    if length is None:
        length = default("max_model_len", architecture.max_position_embeddings, "default_max_model_len")

    large = takes_large_batch(accelerator, behaviour)
    chunked = _chunked(request, behaviour, length, accelerator)
    seqs = _first(request.max_num_seqs, request.parallel)
    open_seqs = seqs is None
    if seqs is None:
        seqs = float(behaviour.seqs_large if large else behaviour.seqs_small)
    batched = _first(request.max_num_batched_tokens, None)
    if batched is None:
        batched = float(behaviour.batched_tokens_large if large else behaviour.batched_tokens_small)
        if not chunked:
            batched = max(length, float(UNCHUNKED_FLOOR_TOKENS))
        batched = max(min(batched, seqs * length), float(architecture.vision_tokens_max))
        default("max_num_batched_tokens", batched, "default_batch")
    if open_seqs:
        seqs = default("max_num_seqs", min(seqs, batched), "default_batch")

    fraction = _fraction(request, behaviour)
    if fraction is None:
        name = FRACTION_FIELDS.get(behaviour.memory_rule)
        fraction = _default_fraction(behaviour, accelerator, layout, batched, seqs)
        if name is not None:
            default(name, fraction, "default_memory_fraction")
    block = _first(request.block_size, None)
    if block is None:
        block = float(behaviour.block_size)

    draft_tokens, draft_layers = _draft(request, architecture)
    return (
        EngineSettings(
            memory_fraction=fraction,
            max_model_len=length,
            max_num_seqs=seqs,
            max_num_batched_tokens=batched,
            block_size=block,
            cuda_graphs=0.0 if request.enforce_eager else 1.0,
            hybrid_kv_cache=1.0 if request.hybrid_kv_cache and behaviour.windowed_cache else 0.0,
            kv_cache_memory_bytes=float(request.kv_cache_memory_bytes or 0),
            cpu_offload_bytes=float(request.cpu_offload_bytes),
            platform_bytes=behaviour.non_torch_amd_gib * GIB if accelerator.vendor == "AMD" else 0.0,
            expert_width_multiple=mxfp4_width_multiple(accelerator, behaviour),
            lora_bytes=lora_bytes(architecture, request.lora, as_float(layout.tensor)) if request.lora else 0.0,
            draft_bytes=draft_bytes,
            draft_tokens=draft_tokens,
            draft_layers=draft_layers,
            prefix_caching=request.prefix_caching is not False,
            chunked_prefill=chunked,
        ),
        tuple(assumed),
    )


def read_version(request: EngineRequest, behaviour: EngineBehaviour) -> Message:
    """How the version text of a request was read."""
    return Message(
        "engine_version_read_as",
        {"engine": behaviour.engine, "text": (request.version or "")[:100], "version": behaviour.version},
    )


def settings_class(accelerator: Accelerator, behaviour: EngineBehaviour) -> tuple[object, ...]:
    """All that defaults read of a card: cards of one class get the same settings."""
    memory = 0 if behaviour.fraction_rule == "given" else accelerator.memory_bytes
    return takes_large_batch(accelerator, behaviour), accelerator.vendor, accelerator.compute_capability, memory


def takes_large_batch(accelerator: Accelerator, behaviour: EngineBehaviour) -> bool:
    """Whether the engine's larger batch defaults apply: by memory, some card names excepted."""
    large = accelerator.usable_memory_bytes >= behaviour.large_card_gib * GIB
    # vLLM's two engines in one version: the older one knows no large defaults (unchunked vendors run it too).
    if runs_older_engine(accelerator, behaviour) or accelerator.vendor in behaviour.unchunked_vendors:
        return False
    return large and not any(part in accelerator.id for part in behaviour.small_batch_cards)


def _first(own: float | None, other: float | None) -> float | None:
    given = own if own is not None else other
    return None if given is None else float(given)


def _fraction(request: EngineRequest, behaviour: EngineBehaviour) -> float | None:
    own = FRACTION_FIELDS.get(behaviour.memory_rule)
    if own is None:
        return None
    names = (own, *(name for name in FRACTION_FIELDS.values() if name != own))
    return next((float(value) for name in names if (value := getattr(request, name)) is not None), None)


def mxfp4_width_multiple(accelerator: Accelerator, behaviour: EngineBehaviour) -> float:
    """What MXFP4 kernels pad expert widths to on this card."""
    capability = accelerator.compute_capability
    plain = capability is not None and capability == behaviour.mxfp4_plain_width_capability
    return 1.0 if plain else MXFP4_WIDTH_MULTIPLE


def runs_older_engine(accelerator: Accelerator, behaviour: EngineBehaviour) -> bool:
    """Whether this version falls back on its older engine on this card."""
    capability = accelerator.compute_capability
    return capability is not None and capability < behaviour.older_engine_below_capability


def _chunked(request: EngineRequest, behaviour: EngineBehaviour, length: float, accelerator: Accelerator) -> bool:
    if request.chunked_prefill is not None:
        return request.chunked_prefill
    if accelerator.vendor in behaviour.unchunked_vendors:
        return False
    if behaviour.chunked_prefill == "above_32k" or runs_older_engine(accelerator, behaviour):
        return length > LONG_CONTEXT_TOKENS
    return behaviour.chunked_prefill == "on"


_CLASS_RESERVES_GB = ((35.0, 2.8, 0.1), (90.0, 9.5, 0.5), (160.0, 12.0, 0.5))
"""SGLang up to 0.4.8: reserve in GB up to this memory, and per rank; 32 GB above (server_args.py of v0.4.8)."""
_LARGEST_RESERVE_GB = 32.0

_GRAPH_SIZES = ((20.0, 8, 8), (35.0, 24, 80), (60.0, 32, 160), (160.0, 256, 512))
"""SGLang's cuda_graph_max_bs by memory in GB, below and from tensor parallelism 4 (server_args.py); 512 above."""
_WIDE_TENSOR = 4


def _default_fraction(
    behaviour: EngineBehaviour, accelerator: Accelerator, layout: Layout, batched: float, seqs: float
) -> float:
    """Return the engine's default fraction, rounded as it prints it."""
    if behaviour.fraction_rule == "given":
        return behaviour.memory_fraction
    total_mib = accelerator.memory_bytes / MIB
    total_gb = total_mib / 1024
    ranks = as_float(layout.tensor) * as_float(layout.pipeline)
    if behaviour.fraction_rule == "reserve_by_card_class":
        row = next((row for row in _CLASS_RESERVES_GB if total_gb < row[0]), None)
        reserve_mib = 1024 * (_LARGEST_RESERVE_GB if row is None else row[1] + row[2] * ranks)
    else:
        row_ = next((row for row in _GRAPH_SIZES if total_gb < row[0]), None)
        wide = as_float(layout.tensor) >= _WIDE_TENSOR
        graphs = 512 if row_ is None else (row_[2] if wide else row_[1])
        reserve_mib = 512 + 1.5 * max(batched, 2048.0) + 2.0 * min(graphs, seqs) + ranks / 8 * 1024
        if total_gb > 60:  # noqa: PLR2004 - server_args.py: large cards keep at least 10 GiB
            reserve_mib = max(reserve_mib, 10 * 1024)
    return max(round((total_mib - reserve_mib) / total_mib, 3), 0.05)


def lora_bytes(architecture: Architecture, lora: Lora, tensor: float) -> float:
    """Adapter slots of one rank: rank x (in + out) x 2 bytes per adapted matrix.

    Half of it is not sharded unless asked for (vLLM LoRAConfig.fully_sharded_loras). Adapted are
    the attention and MLP projections of every layer.
    """
    hidden = architecture.hidden_size
    attention = next((group for group in architecture.cache if group.kind not in {"state", "cross"}), None)
    head = attention.elements_per_head / 2 if attention else hidden / max(architecture.query_heads, 1)
    queries, keys = architecture.query_heads * head, architecture.kv_heads * head
    widths = 2 * (hidden + queries) + 2 * (hidden + keys) + 3 * (hidden + architecture.intermediate_size)
    whole = lora.max_loras * lora.max_rank * architecture.layers * widths * ADAPTER_BYTES
    return whole / 2 * (1.0 + 1.0 / tensor)


def _draft(request: EngineRequest, architecture: Architecture) -> tuple[float, int]:
    if request.speculative is None:
        return 0.0, 0
    own_module = architecture.parameters.mtp > 0 and request.speculative.draft_model is None
    return float(request.speculative.tokens), 1 if own_module else 0
