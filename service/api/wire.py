"""Request bodies of version 1: the contract's names, with bounds that no legal value can overflow.

Parts that are domain nouns (traffic, targets, application, engine, cost) are the domain's own Structs; here stand the parts
that name catalog entries, and the bodies put together from all of them.
"""

from datetime import date
from typing import Annotated, ClassVar, Literal

import msgspec
from msgspec import Meta

from service.domain.accelerator import LinkKind
from service.domain.concurrency import DurationSeconds, Headroom
from service.domain.cost import CostProjectionRequest
from service.domain.engine import EngineRequest
from service.domain.member_rules import Rule, at_least_one, exactly_one, given
from service.domain.offer import Tenancy, Term
from service.domain.quantization import Arithmetic
from service.domain.recommendation import Objective
from service.domain.units import HOURS_PER_MONTH
from service.domain.work import Run
from service.domain.workload import Application, Kind, SizedTraffic, Targets, TrafficShape

Id = Annotated[str, Meta(min_length=1, max_length=200)]
Text = Annotated[str, Meta(max_length=2000)]
Ranks = Annotated[int, Meta(ge=1, le=1024)]
ContextTokens = Annotated[int, Meta(ge=1, le=100_000_000)]


class Part(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A part of a request: unknown fields are refused."""


class ModelSpec(Part, frozen=True, kw_only=True):
    """A model that no catalog holds: its `config.json`, or only its size."""

    member_rule: ClassVar[Rule] = at_least_one(("id",), ("config",), ("parameters",))
    id: Id | None = None
    """Hugging Face id `org/name`."""
    config: dict[str, object] | None = None
    """The model's `config.json`."""
    parameters: Annotated[int, Meta(ge=1_000_000, le=100_000_000_000_000)] | None = None
    """Parameters. Alone: weights are exact, the rest comes from the nearest dense architecture."""
    checkpoint_bytes: Annotated[int, Meta(ge=1_000_000, le=1_000_000_000_000_000)] | None = None
    """Bytes of the checkpoint's weight files; when given, weights are sized by it."""


class InterconnectSpec(Part, frozen=True, kw_only=True):
    """The link between the accelerators of one server."""

    kind: LinkKind
    gb_per_s_per_direction: Annotated[float, Meta(ge=0, le=100_000)]


class MigSpec(Part, frozen=True, kw_only=True):
    """A hardware slice, as `GET /v1/gpus/{id}` shows it; not used of a custom accelerator."""

    name: Id
    memory_bytes: Annotated[int, Meta(ge=0, le=2**44)]
    usable_memory_bytes: Annotated[int, Meta(ge=0, le=2**44)]
    max_instances: Annotated[int, Meta(ge=1, le=100)]
    compute_share: Annotated[float, Meta(ge=0, le=1)]
    bandwidth_share: Annotated[float, Meta(ge=0, le=1)]
    basis: Literal["measured", "estimated"]


class AcceleratorSpec(Part, frozen=True, kw_only=True):
    """An accelerator that no catalog holds, with the fields of `GET /v1/gpus/{id}`; three are needed."""

    memory_bytes: Annotated[int, Meta(ge=2**28, le=2**44)]
    """Memory as the driver reports it."""
    memory_bandwidth_gb_per_s: Annotated[float, Meta(ge=1, le=1_000_000)]
    dense_tflops: Annotated[
        dict[Arithmetic, Annotated[float, Meta(ge=0.001, le=1_000_000)]],
        Meta(extra_json_schema=at_least_one(("bf16",), ("fp16",), ("fp32",))),
    ]
    """Dense peak by number format; bf16, fp16 or fp32 must be there."""
    id: Id = "custom"
    vendor: Annotated[str, Meta(max_length=100)] = "NVIDIA"
    architecture: Annotated[str, Meta(max_length=100)] = "custom"
    usable_memory_bytes: Annotated[int, Meta(ge=2**27, le=2**44)] | None = None
    """By default 99.2 % of `memory_bytes`, the median of the catalog."""
    interconnect: InterconnectSpec | None = None
    """By default PCIe 4."""
    max_gpus_per_node: Annotated[int, Meta(ge=1, le=1024)] = 8
    compute_capability: Annotated[float, Meta(ge=1, le=99)] | None = None
    memory_label_gb: Annotated[float, Meta(ge=0, le=20_000)] = 0.0
    memory_type: Annotated[str, Meta(max_length=100)] = ""
    memory_basis: Literal["reported", "estimated"] = "reported"
    tdp_w: Annotated[float, Meta(ge=0, le=100_000)] | None = None
    launch_year: Annotated[int, Meta(ge=1990, le=2100)] | None = None
    mig: Annotated[tuple[MigSpec, ...], Meta(max_length=50)] = ()
    aliases: Annotated[tuple[Id, ...], Meta(max_length=100)] = ()
    ambiguous_aliases: Annotated[tuple[Id, ...], Meta(max_length=100)] = ()
    unverified: Annotated[tuple[Id, ...], Meta(max_length=100)] = ()
    sources: Annotated[tuple[Text, ...], Meta(max_length=100)] = ()
    as_of: Annotated[str, Meta(max_length=100)] = ""
    notes: Text | None = None
    provenance: dict[str, object] | None = None
    """Ignored, so that an answer of `GET /v1/gpus/{id}` can be sent back as it is."""


class Parallelism(Part, frozen=True, kw_only=True):
    """Layout of one deployment: gpus = tensor x pipeline x data."""

    tensor: Ranks = 1
    pipeline: Ranks = 1
    data: Ranks = 1
    """Ranks inside one deployment with their own KV pool; independent copies are replicas."""
    expert: bool = False
    """Spread routed experts over tensor x data ranks."""
    context: Annotated[int, Meta(ge=1, le=1)] = 1
    """Decode-context-parallel ranks; only 1 is modelled."""


class Dated(Part, frozen=True, kw_only=True):
    """A body whose answer depends on the day."""

    evaluated_on: date | None = None
    """Day that ages are counted to; by default today (UTC)."""


class DeploymentPart(Dated, frozen=True, kw_only=True):
    """What is deployed, where and how."""

    model: Id | ModelSpec
    gpu: Id | AcceleratorSpec
    weights: Id | None = None
    """Weight format; by default the checkpoint's own."""
    kv_cache: Id | None = None
    """KV cache format; by default auto: the checkpoint's, else its 16-bit type."""
    parallelism: Parallelism | None = None
    engine: EngineRequest | None = None


class VramBudgetRequest(DeploymentPart, frozen=True, kw_only=True):
    """Body of `POST /v1/vram-budgets`."""

    context_tokens: ContextTokens | None = None
    """Tokens of one request that shall fit; with `concurrent_sequences` the answer has `workload_fit`."""
    concurrent_sequences: Annotated[int, Meta(ge=1, le=1_000_000)] | None = None


class ConcurrencyRequest(Dated, frozen=True, kw_only=True):
    """Body of `POST /v1/concurrency-estimates`: with `request_duration_s`, or with a deployment that tells it."""

    member_rule: ClassVar[Rule] = {
        "anyOf": [
            given("request_duration_s"),
            given("model", "gpu", traffic=given("input_tokens", "output_tokens")),
        ]
    }
    traffic: TrafficShape
    request_duration_s: DurationSeconds | None = None
    headroom: Headroom | None = None
    model: Id | ModelSpec | None = None
    gpu: Id | AcceleratorSpec | None = None
    weights: Id | None = None
    kv_cache: Id | None = None
    parallelism: Parallelism | None = None
    engine: EngineRequest | None = None
    context_tokens: ContextTokens | None = None
    concurrent_sequences: Annotated[int, Meta(ge=1, le=1_000_000)] | None = None


class PerformanceRequest(DeploymentPart, frozen=True, kw_only=True):
    """Body of `POST /v1/performance-estimates`."""

    traffic: SizedTraffic
    targets: Targets | None = None
    kind: Kind | None = None
    application: Application | None = None
    run: Run | None = None


class Environment(Part, frozen=True, kw_only=True):
    """A copy of the deployment beside production."""

    name: Annotated[str, Meta(min_length=1, max_length=100)]
    replicas: Annotated[int, Meta(ge=0, le=10_000)] = 1
    hours_per_month: Annotated[float, Meta(ge=0, le=744)] = HOURS_PER_MONTH


class OperationPart(Part, frozen=True, kw_only=True):
    """How long the deployment runs, and beside which others."""

    hours_per_month: Annotated[float, Meta(ge=1, le=744)] = HOURS_PER_MONTH
    horizon_months: Annotated[float, Meta(ge=1, le=240)] = 12.0
    environments: Annotated[tuple[Environment, ...], Meta(max_length=20)] = ()


class Constraints(Part, frozen=True, kw_only=True):
    """What an option may be; what is not given is not restricted, but for the defaults named here."""

    gpus: Annotated[tuple[Id, ...], Meta(min_length=1, max_length=200)] | None = None
    """Accelerators to consider."""
    providers: Annotated[tuple[Id, ...], Meta(min_length=1, max_length=100)] | None = None
    regions: Annotated[tuple[Id, ...], Meta(min_length=1, max_length=100)] | None = None
    """Region names, country codes, continents, `EU` or `EEA`."""
    tenancy: Annotated[tuple[Tenancy, ...], Meta(min_length=1, max_length=10)] | None = None
    terms: Annotated[tuple[Term, ...], Meta(min_length=1, max_length=10)] | None = None
    """By default on_demand and monthly."""
    max_min_term_months: Annotated[float, Meta(ge=0, le=120)] | None = None
    """Longest commitment; by default 1 month, or any where `terms` are given."""
    max_gpus: Annotated[int, Meta(ge=1, le=1_000_000)] | None = None
    """Most accelerators paid for."""
    max_monthly_usd: Annotated[float, Meta(gt=0, le=1e12)] | None = None
    max_age_days: Annotated[int, Meta(ge=0, le=10_000)] | None = None
    """Oldest price."""
    min_reliability: Annotated[float, Meta(ge=0, le=1)] | None = None
    """Of marketplace hosts; by default 0.98."""
    allow_unverified: bool = False
    """Take marketplace hosts that the marketplace has not verified."""
    allow_undated: bool = False
    """Take prices without a date."""


class RecommendationRequest(Dated, frozen=True, kw_only=True):
    """Body of `POST /v1/recommendations`."""

    model: Id | ModelSpec
    traffic: SizedTraffic
    targets: Targets | None = None
    application: Application | None = None
    kind: Kind | None = None
    objective: Objective = "min_cost"
    """What options are ranked by. min_cost: the cheapest that meets the targets. min_latency: the shortest time to the last
    token at p95 (ttft p95 + (mean output - 1) x tpot p95), within the budget. max_throughput_per_usd: most output tokens at
    full load per dollar. least_regret: smallest worst-case extra cost over a load of half, once and twice the plan."""
    weights: Id | None = None
    kv_cache: Id | None = None
    engine: EngineRequest | None = None
    headroom: Headroom | None = None
    """By default 0.3."""
    spare_replicas: Annotated[int, Meta(ge=0, le=100)] | None = None
    """By default 1 for interactive, 0 for batch."""
    operation: OperationPart | None = None
    constraints: Constraints | None = None
    limit: Annotated[int, Meta(ge=1, le=50)] = 5


class CostRequest(CostProjectionRequest, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Body of `POST /v1/cost-projections`."""

    member_rule: ClassVar[Rule] = exactly_one(("price_usd_per_hour",), ("offer",))
    evaluated_on: date | None = None
    """Day that ages are counted to; by default today (UTC)."""
