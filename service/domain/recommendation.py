"""The answer of a recommendation: ranked options, the Pareto front, and every accelerator and provider that lost."""

from typing import Literal

import msgspec

from service.domain.cost import CostProjection
from service.domain.message import Message
from service.domain.offer import Availability, Evidence, Tenancy, Term
from service.domain.performance import PerformanceEstimate
from service.domain.vram_budget import VramBudget

Objective = Literal["min_cost", "min_latency", "max_throughput_per_usd", "least_regret"]
"""min_cost: the cheapest that meets the targets. min_latency: the shortest time to the last token at p95 (ttft p95 +
(mean output - 1) x tpot p95), within the budget. max_throughput_per_usd: most output tokens at full load per dollar.
least_regret: smallest worst-case extra cost over a load of half, once and twice the plan."""

RejectionCode = Literal[
    "not_allowed",
    "engine_unsupported",
    "weights_format_unsupported",
    "kv_format_unsupported",
    "layout_illegal",
    "replica_too_large",
    "weights_exceed_memory",
    "free_memory_below_budget",
    "no_room_for_kv",
    "context_does_not_fit",
    "out_of_memory_at_load",
    "performance_unknown",
    "no_offer",
    "needs_multi_node",
    "ttft_too_high",
    "tpot_too_high",
    "e2e_too_high",
    "load_above_capacity",
    "too_many_gpus",
    "over_budget",
    "more_expensive",
    "slower",
    "less_throughput_per_usd",
    "more_regret",
]
"""Why an accelerator is not among the recommendations: what stopped the candidate of it that came furthest, in this order;
the last four are options that lost on the objective."""


class ParallelismChoice(msgspec.Struct, frozen=True, kw_only=True):
    """Layout of one replica."""

    tensor: int
    pipeline: int
    data: int
    expert: bool
    context: int = 1


class EngineChoice(msgspec.Struct, frozen=True, kw_only=True):
    """Engine, version and the launch settings that the numbers rest on."""

    name: str
    version: str
    memory_fraction: float
    """gpu_memory_utilization, mem_fraction_static or free_gpu_memory_fraction."""
    max_model_len: int
    max_num_seqs: int
    max_num_batched_tokens: int


class ReplicaBreakdown(msgspec.Struct, frozen=True, kw_only=True):
    """Replicas by purpose."""

    for_load: int
    headroom: int
    spare: int


class OfferView(msgspec.Struct, frozen=True, kw_only=True):
    """The offer behind a price, with its age."""

    id: str
    provider: str
    instance_type: str
    region: str | None
    country: str | None
    tenancy: Tenancy
    term: Term
    min_term_months: float
    gpus: int
    price_usd_per_hour: float
    price_usd_per_gpu_hour: float
    setup_fee_usd: float
    as_of: str | None
    age_days: int | None
    stale: bool
    evidence: Evidence
    source: str
    availability: Availability
    flags: tuple[str, ...] = ()


class MeetsTargets(msgspec.Struct, frozen=True, kw_only=True):
    """Whether the targets hold at this replica's share of the peak."""

    likely: bool
    """At the point estimate."""
    safe: bool
    """At the bad end of the 90 % interval."""


class Replay(msgspec.Struct, frozen=True, kw_only=True):
    """Bodies that give this option's parts at the single endpoints."""

    vram_budget: dict[str, object]
    """Of `POST /v1/vram-budgets`; without `model` where the request gave a config: put it in again."""
    performance_estimate: dict[str, object]
    """Of `POST /v1/performance-estimates`."""
    cost_projection: dict[str, object]
    """Of `POST /v1/cost-projections`."""


class Recommendation(msgspec.Struct, frozen=True, kw_only=True):
    """One option: what to run, where to rent it, what it does and what it costs."""

    rank: int
    gpu: str
    gpus_per_replica: int
    parallelism: ParallelismChoice
    weights: str
    kv_cache: str
    engine: EngineChoice
    checkpoint: str
    """Repository that the engine loads."""
    replicas: int
    replica_breakdown: ReplicaBreakdown
    instances: int
    gpus_per_instance: int
    idle_gpus: int
    """Accelerators that are paid but carry no replica."""
    monthly_usd: float
    """Of production (`cost.monthly_usd.total`) and the other environments."""
    vram: VramBudget
    performance: PerformanceEstimate
    """At one replica's share of the peak."""
    cost: CostProjection
    offer: OfferView
    meets_targets: MeetsTargets
    reasons: tuple[Message, ...]
    risks: tuple[Message, ...]
    verify: tuple[Message, ...]
    """What to check with the provider before buying."""
    cold_start_s: float
    """From an instance that is up to the first token: reading the weights from local disk, then engine start-up."""
    replay: Replay


class ParetoPoint(msgspec.Struct, frozen=True, kw_only=True):
    """An option that no other beats in cost, time to first token and time per output token together."""

    gpu: str
    gpus_per_replica: int
    parallelism: ParallelismChoice
    weights: str
    replicas: int
    instances: int
    offer_id: str
    monthly_usd: float
    ttft_ms_p95: float | None
    tpot_ms_p95: float | None
    rank: int | None
    """Rank among the recommendations, where it is one."""


class RejectionDetail(msgspec.Struct, frozen=True, kw_only=True):
    """The bound that was broken, in the unit that the reason code implies (bytes, ms, USD per month, GPUs)."""

    limit: float | None
    value: float | None


class Rejection(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An accelerator without an option, or an offer that was not considered."""

    gpu: str
    reason_code: str
    detail: RejectionDetail
    would_fit_if: dict[str, object] | None
    """A change of the request that was evaluated and lifts this bound (another may bind next); null: none tried does."""
    offer_id: str | None = None
    """Given where an offer, not an accelerator, is rejected."""


class ProviderOption(msgspec.Struct, frozen=True, kw_only=True):
    """A provider's best option in short."""

    gpu: str
    gpus_per_replica: int
    weights: str
    replicas: int
    instances: int
    offer_id: str
    monthly_usd: float


class ProviderVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """What one provider can do for this workload, or why nothing, and what to ask it."""

    provider: str
    best_rank: int | None
    """Rank among all providers' options of this workload (one best option each); null without an option."""
    option: ProviderOption | None
    reason_code: str | None
    verify: tuple[Message, ...]


class RevisitWhen(msgspec.Struct, frozen=True, kw_only=True):
    """A value of an input past which the first recommendation no longer holds."""

    field: str
    above: float | None = None
    below: float | None = None
    why: Message
