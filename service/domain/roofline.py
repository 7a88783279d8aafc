"""Time of one engine step: a curve over the running batch whose constants are worked out once per deployment.

A step of a pipeline stage takes what its host and layers cost anyway, what each running sequence adds (its cache is
read, its token is sampled), and what the rows of the matrix products take. Products are a smooth roofline, sqrt(read² +
compute²), where compute counts ``matmul_half_rows`` rows more than there are: so AIConfigurator's GEMM tables bend
between the two regimes. Mixture-of-experts layers read the experts that a batch is expected to touch.
"""

from collections.abc import Mapping

import msgspec

from service.domain.architecture import Architecture, TensorClass
from service.domain.attention_work import cache_read_bytes, decode_flops, mean_prefill_flops
from service.domain.calibration import Profile
from service.domain.collectives import AllReduce, all_reduce, all_reduce_s, hop_s_per_row
from service.domain.deployment import ACTIVATION_BYTES, FINITE_PEAK_FLOPS_PER_S, WIDE_BYTES, Deployment
from service.domain.expert_work import ExpertWork, expert_s, expert_work
from service.domain.numeric import Flag, Number, ceil, choose, greater, sqrt
from service.domain.request_shape import RequestShape
from service.domain.weights import SHARED_AS

_UNROUTED = tuple(name for name in SHARED_AS if name != "routed_experts")


class StepCosts(msgspec.Struct, frozen=True):
    """Constants of the slowest pipeline stage; each a float or an array of candidates."""

    fixed_s: Number
    """Host and layers, whatever the batch."""
    host_s: Number
    """The part of ``fixed_s`` that is the host's."""
    sequence_s: Number
    """Added by each running sequence: cache read, head, host."""
    kv_read_s: Number
    """The part of ``sequence_s`` that reads the cache."""
    prefill_attention_s: Number
    """Attention of one mean prompt on this stage."""
    attention_s_per_flop: Number
    """Turns attention FLOPs of the whole model into seconds of this stage."""
    read_s: Number
    """Reading the weights that every step needs."""
    row_s: Number
    """Computing one row of the dense products."""
    half_rows: Number
    hop_s: Number
    """One row's way to the next stage."""
    reduce: AllReduce
    reduces: Number
    """All-reduces of one step on this stage."""
    row_bytes: float
    """Bytes of one row of hidden states."""
    experts: ExpertWork | None
    stages: Number
    ranks: Number
    """Data ranks."""
    budget_tokens: Number
    """Tokens of one step, decode and prefill together."""
    full_rows_s: Number
    """Products and exchanges of a step of ``budget_tokens``."""
    host_request_s: Number
    chunked: Flag
    """Prompts are cut into chunks; a column where cards of one search differ in it."""


def step_costs(  # noqa: PLR0913 - everything that a step is made of
    architecture: Architecture,
    deployment: Deployment,
    weight_bytes: Mapping[TensorClass, Number],
    profile: Profile,
    shape: RequestShape,
    *,
    experts_span_data: bool = False,
) -> StepCosts:
    """Constants of a deployment's step-time curve for requests of one shape.

    ``weight_bytes``: bytes of one rank by tensor class if it held every layer (``weights.stage_weights``);
    ``experts_span_data``: experts are sliced over data ranks even without expert parallelism.
    """
    layout, card = deployment.layout, deployment.card
    stage = ceil(architecture.layers / layout.pipeline) / architecture.layers
    weight_rate = card.bandwidth_bytes_per_s * profile.weight_read_share
    wide_rate = card.bandwidth_bytes_per_s * profile.wide_weight_read_share
    peak = greater(card.weight_flops_per_s, FINITE_PEAK_FLOPS_PER_S) * profile.matmul_peak_share
    wide_peak = greater(card.flops_per_s, FINITE_PEAK_FLOPS_PER_S) * profile.wide_matmul_peak_share
    sizes = deployment.precision.weight_bytes

    read_s: Number = 0.0
    row_s: Number = 0.0
    for name in _UNROUTED:
        held = weight_bytes.get(name, 0.0)
        wide = sizes[name] > WIDE_BYTES
        read_s = read_s + held / choose(wide, wide_rate, weight_rate)
        row_s = row_s + 2.0 * held / sizes[name] / choose(wide, wide_peak, peak)
    head_name: TensorClass = "lm_head" if architecture.parameters.lm_head else "embedding"
    head = weight_bytes.get(head_name, 0.0) if shape.rows_per_step > 0.0 else 0.0
    read_s = read_s + head / wide_rate
    head_row_s = 2.0 * head / sizes[head_name] / wide_peak

    attention_peak = greater(card.flops_per_s, FINITE_PEAK_FLOPS_PER_S) * profile.attention_peak_share
    attention_s_per_flop = stage / (layout.tensor * attention_peak)
    running = 1.0 if shape.rows_per_step > 0.0 else 0.0
    kv_rate = card.bandwidth_bytes_per_s * profile.kv_read_share
    read_cache_s = cache_read_bytes(architecture, deployment, shape.context) * stage / kv_rate
    score_s = decode_flops(architecture, shape.context) * shape.rows_per_step * attention_s_per_flop
    kv_read_s = running * greater(read_cache_s, score_s)
    draft_s = shape.draft_passes * deployment.settings.draft_bytes / wide_rate
    layers_s = profile.layer_step_s * architecture.layers + profile.expert_layer_step_s * architecture.moe_layers
    host_s = profile.host_step_s + layers_s * stage + draft_s

    experts = (
        expert_work(
            architecture, deployment, weight_bytes["routed_experts"], profile, stage, span_data=experts_span_data
        )
        if architecture.moe_layers
        else None
    )
    exchanged = 0.0 if experts is None else experts.exchange_latency_s
    costs = StepCosts(
        fixed_s=host_s + exchanged,
        host_s=host_s,
        sequence_s=kv_read_s + running * (shape.rows_per_step * head_row_s * stage + profile.host_sequence_s),
        kv_read_s=kv_read_s,
        prefill_attention_s=mean_prefill_flops(architecture, shape) * attention_s_per_flop,
        attention_s_per_flop=attention_s_per_flop,
        read_s=read_s * stage,
        row_s=row_s * stage,
        half_rows=profile.matmul_half_rows,
        hop_s=hop_s_per_row(architecture.hidden_size, layout, card, profile),
        reduce=all_reduce(layout, card, profile),
        reduces=2.0 * architecture.layers * stage,
        row_bytes=architecture.hidden_size * ACTIVATION_BYTES,
        experts=experts,
        stages=layout.pipeline,
        ranks=layout.data,
        budget_tokens=deployment.settings.max_num_batched_tokens,
        full_rows_s=0.0,
        host_request_s=profile.host_request_s,
        chunked=deployment.settings.chunked_prefill,
    )
    return msgspec.structs.replace(costs, full_rows_s=rows_s(costs, costs.budget_tokens))


def rows_s(costs: StepCosts, rows: Number) -> Number:
    """Seconds of a stage's products and exchanges for ``rows`` tokens, decode and prefill alike."""
    compute = costs.row_s * (rows + costs.half_rows)
    spent = sqrt(costs.read_s * costs.read_s + compute * compute)
    if costs.experts is not None:
        spent = spent + expert_s(costs.experts, rows)
    return spent + costs.hop_s * rows + costs.reduces * all_reduce_s(costs.reduce, costs.row_bytes * rows)


def step_s(costs: StepCosts, sequences: Number, rows: Number) -> Number:
    """Seconds of one step of a stage that runs ``sequences`` and computes ``rows`` tokens, prefill attention aside."""
    return costs.fixed_s + costs.sequence_s * sequences + rows_s(costs, rows)
