"""Memory of one accelerator: what weights, activations, graphs and communicators take, and what the KV pool gets.

One function per memory rule of ``EngineBehaviour``; all read a ``Deployment`` whose numbers may be arrays.
"""

from collections.abc import Callable

import msgspec

from service.domain.activation import compute_buffer, profiled_peak
from service.domain.architecture import Architecture
from service.domain.deployment import Deployment, KvCapacity, MemoryParts
from service.domain.engine import EngineBehaviour, MemoryRule
from service.domain.kv_pool import POOLS, whole_context_bytes
from service.domain.numeric import Flag, Number, choose, clamp, greater, lesser
from service.domain.units import GIB
from service.domain.weights import StageWeights, stage_weights

FAST_LINK_BYTES_PER_S = 100e9
"""Links above this are NVLink or its like: engines set up their own all-reduce buffers there."""

GRAPH_TOKENS = 512.0
"""Largest capture size that the graph coefficients of the engine data were fitted at."""

GRAPH_SIZES = 51.0
"""Graphs that are captured up to there: 1, 2, 4, then every 8 up to 256, every 16 beyond."""

WIDE_GRAPH_STEP_TOKENS = 16.0


class Account(msgspec.Struct, frozen=True):
    """Bytes of the binding pipeline stage: the one whose weights and activations leave least for the KV pool."""

    weights: Number
    activation: Number
    graph: Number
    non_torch: Number
    at_start: Number
    """Held by driver context and communicators before the engine looks at what is free."""
    warm_up: Number
    """What the sampler's run after graph capture takes; 0 where there is none."""
    fragments: Number
    """Freed blocks of the load that stay with the allocator and serve nothing later."""
    stage_weights: StageWeights
    first_binds: Flag
    last_binds: Flag


def account(architecture: Architecture, deployment: Deployment, behaviour: EngineBehaviour) -> Account:
    """Weigh every pipeline stage and keep the heaviest."""
    layout, settings = deployment.layout, deployment.settings
    shares = stage_weights(
        architecture,
        layout,
        deployment.precision,
        experts_span_data=behaviour.experts_span_data,
        embedding_on_host=behaviour.embedding_on_host,
        expert_width_multiple=settings.expert_width_multiple,
    )
    first, middle, last = (shares.total(stage, architecture.layers) for stage in (0, 1, 2))
    if behaviour.activation_rule == "compute_buffer":
        peak_last = peak_other = compute_buffer(architecture, deployment, behaviour)
        warm_up: Number = 0.0
    else:
        peak = profiled_peak(architecture, deployment, behaviour)
        peak_last, peak_other = peak.on_stage(samples=True), peak.on_stage(samples=False)
        warm_up = peak.sampler if behaviour.warms_up else 0.0
    alone = layout.pipeline < 2.0  # noqa: PLR2004 - one stage both embeds and samples
    peak_first = choose(alone, peak_last, peak_other)
    last = choose(alone, first, last)

    heaviest = greater(greater(first + peak_first, middle + peak_other), last + peak_last)
    first_binds = first + peak_first >= heaviest
    last_binds = last + peak_last >= heaviest
    weights = choose(first_binds, first, choose(last_binds, last, middle))
    activation = choose(first_binds, peak_first, choose(last_binds, peak_last, peak_other))
    extras = settings.lora_bytes + draft_bytes(architecture, deployment)
    return Account(
        weights=greater(weights - settings.cpu_offload_bytes, 0.0) + extras,
        activation=activation,
        graph=graph_bytes(architecture, deployment, behaviour),
        non_torch=non_torch_bytes(deployment, behaviour),
        at_start=held_at_start(deployment, behaviour),
        warm_up=warm_up,
        fragments=deployment.precision.mxfp4_experts * (behaviour.mxfp4_fragments_gib * GIB),
        stage_weights=shares,
        first_binds=first_binds,
        last_binds=last_binds,
    )


def draft_bytes(architecture: Architecture, deployment: Deployment) -> Number:
    """Weights of a draft model, or of the model's own prediction layers where speculative decoding uses them."""
    settings = deployment.settings
    if not settings.draft_layers:
        return settings.draft_bytes
    own = architecture.parameters.mtp * deployment.precision.weight_bytes["mtp"] / deployment.layout.tensor
    return settings.draft_bytes + own


def graph_bytes(architecture: Architecture, deployment: Deployment, behaviour: EngineBehaviour) -> Number:
    """CUDA graph memory: linear in layers, more for expert models, in proportion to the largest captured batch.

    Beyond 512 tokens it grows with the number of graphs (gpt-oss-20b, captured up to 1,024: 1.84 GiB printed).
    """
    settings = deployment.settings
    layers = architecture.layers / deployment.layout.pipeline
    full = behaviour.graph_base_gib + behaviour.graph_per_layer_gib * layers
    if architecture.experts:
        full = full + behaviour.graph_moe_gib
    wide = architecture.model_type in behaviour.wide_graph_families
    most = behaviour.wide_graph_tokens if wide else behaviour.graph_most_tokens
    captured = lesser(2.0 * settings.max_num_seqs, float(most))
    beyond = greater(captured - GRAPH_TOKENS, 0.0) / WIDE_GRAPH_STEP_TOKENS / GRAPH_SIZES
    return settings.cuda_graphs * full * (lesser(captured, GRAPH_TOKENS) / GRAPH_TOKENS + beyond) * GIB


def held_at_start(deployment: Deployment, behaviour: EngineBehaviour) -> Number:
    """Memory in use before the engine's first look: driver context, and communicators over a fast link."""
    fast = deployment.card.link_bytes_per_s > FAST_LINK_BYTES_PER_S
    joined = greater(behaviour.context_tensor_gib, behaviour.context_gib)
    joint = choose(fast, joined, behaviour.context_gib)
    return choose(deployment.layout.tensor > 1.0, joint, behaviour.context_gib) * GIB


def non_torch_bytes(deployment: Deployment, behaviour: EngineBehaviour) -> Number:
    """Communicators and libraries outside torch's allocator."""
    tensor, pipeline = deployment.layout.tensor, deployment.layout.pipeline
    fast = deployment.card.link_bytes_per_s > FAST_LINK_BYTES_PER_S
    joint = choose(fast, behaviour.non_torch_tensor_gib, behaviour.non_torch_tensor_slow_gib)
    joint = joint + behaviour.non_torch_per_rank_gib * tensor
    alone = choose(pipeline > 1.0, behaviour.non_torch_pipeline_gib, behaviour.non_torch_single_gib)
    return choose(tensor > 1.0, joint, alone) * GIB + deployment.settings.platform_bytes


def _utilization_of_total(
    counted: Account, deployment: Deployment, behaviour: EngineBehaviour
) -> tuple[Number, Number]:
    """vLLM: fraction x total, less weights, activation peak, non-torch memory and (since 0.21) the graph estimate."""
    budget = deployment.settings.memory_fraction * deployment.card.usable_memory_bytes
    taken = counted.weights + counted.activation + counted.non_torch
    if behaviour.graphs_in_budget:
        taken = taken + counted.graph
    return budget, budget - taken


def _static_fraction(counted: Account, deployment: Deployment, behaviour: EngineBehaviour) -> tuple[Number, Number]:
    """SGLang: free after load - free before load x (1 - fraction) = fraction x free before load - weights."""
    free = deployment.card.usable_memory_bytes - behaviour.context_gib * GIB - counted.non_torch
    budget = deployment.settings.memory_fraction * free
    return budget, budget - counted.weights


def _fraction_of_free(counted: Account, deployment: Deployment, behaviour: EngineBehaviour) -> tuple[Number, Number]:
    """TensorRT-LLM: a fraction of what weights, activations and the context leave."""
    taken = counted.weights + counted.activation + counted.non_torch + behaviour.context_gib * GIB
    free = deployment.card.usable_memory_bytes - taken
    pool = deployment.settings.memory_fraction * free
    return taken + pool, pool


def _whole_context(counted: Account, deployment: Deployment, behaviour: EngineBehaviour) -> tuple[Number, Number]:
    """llama.cpp: no budget; the pool is checked against the card by the caller."""
    budget = deployment.card.usable_memory_bytes - behaviour.context_gib * GIB
    return budget, budget - counted.weights - counted.activation - counted.non_torch


_RULES: dict[MemoryRule, Callable[[Account, Deployment, EngineBehaviour], tuple[Number, Number]]] = {
    "utilization_of_total": _utilization_of_total,
    "static_fraction": _static_fraction,
    "fraction_of_free": _fraction_of_free,
    "whole_context": _whole_context,
}


def parts_of(
    counted: Account, architecture: Architecture, deployment: Deployment, behaviour: EngineBehaviour
) -> MemoryParts:
    """Parts of an account under the engine's memory rule; they add up to the total."""
    settings = deployment.settings
    budget, pool = _RULES[behaviour.memory_rule](counted, deployment, behaviour)
    if behaviour.memory_rule == "whole_context":
        # The engine takes exactly its context; a shortfall shows as a negative pool, as with the other engines.
        needed = whole_context_bytes(architecture, deployment, behaviour)
        pool = choose(pool >= needed, needed, pool - needed)
    given = settings.kv_cache_memory_bytes
    room = _room_on_card(counted, deployment, behaviour)
    pool = choose(given > 0.0, choose(given <= room, given, room - given), pool)
    if not architecture.cache:
        pool = lesser(pool, 0.0)
    total = deployment.card.usable_memory_bytes
    return MemoryParts(
        total=total,
        budget=budget,
        weights=counted.weights,
        activation=counted.activation,
        cuda_graph=counted.graph,
        non_torch=counted.non_torch,
        kv_cache=pool,
        unused=total - counted.weights - counted.activation - counted.graph - counted.non_torch - pool,
    )


def _room_on_card(counted: Account, deployment: Deployment, behaviour: EngineBehaviour) -> Number:
    """What the card has left for a pool of given size, whatever the budget."""
    taken = counted.weights + counted.activation + counted.non_torch + behaviour.context_gib * GIB
    return deployment.card.usable_memory_bytes - taken


def kv_capacity(
    architecture: Architecture,
    deployment: Deployment,
    behaviour: EngineBehaviour,
    parts: MemoryParts,
    at_tokens: Number | None = None,
) -> KvCapacity:
    """What the KV pool holds: tokens as the engine prints them, and requests of ``at_tokens`` at once.

    ``at_tokens`` defaults to ``max_model_len``; a longer one is held to it.
    """
    longest = deployment.settings.max_model_len
    tokens = longest if at_tokens is None else clamp(at_tokens, 1.0, longest)
    if not architecture.cache:
        return _without_cache(deployment, tokens)
    return POOLS[behaviour.cache_rule](architecture, deployment, behaviour, parts.kv_cache, tokens)


def _without_cache(deployment: Deployment, tokens: Number) -> KvCapacity:
    """Encoders keep nothing between steps: the batch alone bounds them."""
    return KvCapacity(
        bytes_per_token=0.0,
        capacity_tokens=0.0,
        request_bytes=0.0,
        max_concurrency=deployment.settings.max_num_seqs * deployment.layout.data,
        at_tokens=tokens,
    )
