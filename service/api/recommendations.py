"""``POST /v1/recommendations``: from a workload to ranked, priced options."""

from collections.abc import Iterable
from typing import Annotated, Literal

import msgspec
import numpy as np
from msgspec import UNSET, Meta, UnsetType
from numpy.typing import NDArray

from service.api.call import Call, Provenance, provenance
from service.api.deployments import needed, read_draft
from service.api.explain import explained_options, members
from service.api.fault import closest
from service.api.operation import operation
from service.api.resolve import (
    Gathered,
    NamedModel,
    catalog_gpu,
    read_behaviour,
    read_kv_cache,
    read_model,
    read_weights,
)
from service.api.sizing import SizingQuery, extended
from service.api.wire import Constraints, OperationPart, RecommendationRequest
from service.catalog.providers import closest_providers, resolve_provider
from service.catalog.snapshot import Snapshot
from service.domain.answer import Assumed
from service.domain.architecture import Architecture
from service.domain.candidates import WeightChoice
from service.domain.concurrency import DEFAULT_HEADROOM
from service.domain.demand import check_targets, traffic_assumptions
from service.domain.derivation import Derived, Explanation
from service.domain.engine import EngineRequest
from service.domain.engine_settings import read_version
from service.domain.errors import UnknownId
from service.domain.market import open_offers
from service.domain.message import Message
from service.domain.offer_terms import DEFAULT_TERMS, OfferTerms
from service.domain.quantization import Quantization
from service.domain.question import Ask, Environment, Question
from service.domain.recommend import Recommendations, recommend
from service.domain.weights import FLOAT_BYTES, precision
from service.domain.work import Work, work

SMALLER_FORMATS = ("fp8", "awq-int4", "nvfp4")
"""Weight formats tried on cards that are too small, in order of least harm."""
UNLIMITED = float("inf")
_OF_DEPLOYMENT = ("/model", "/engine/speculative")
"""What had to be assumed of the models also stands in the answers of the single endpoints."""


class RecommendationQuery(SizingQuery, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Parameters of a recommendation."""

    rejected: (
        Annotated[Literal["offers"], Meta(description="`offers`: also list each offer that the terms keep out.")] | None
    ) = None


class RecommendationAnswer(Recommendations, frozen=True, kw_only=True):
    """Ranked options with what they rest on."""

    assumptions: tuple[Assumed, ...]
    provenance: Provenance
    derivation: tuple[Derived, ...] | UnsetType = UNSET
    """With `?explain=true`: how each number of the first option comes about."""
    explanation: Explanation | UnsetType = UNSET
    """With `?explain=true`: the first option in words."""
    checklist: tuple[Message, ...] | UnsetType = UNSET
    """With `?explain=true`: what to ask and check before buying the first option."""


@operation("POST", "/v1/recommendations", tag="sizing", examples=("recommendation",))
def recommend_deployment(
    call: Call[Snapshot], body: RecommendationRequest, query: RecommendationQuery
) -> RecommendationAnswer:
    """What to run a workload on: ranked accelerators, layouts, replicas, providers and offers, with cost and reasons.

    Every accelerator, count, layout and weight format of the catalog is searched; each that lost is listed with the
    bound it broke. Costs are of whole instances.
    """
    snapshot = call.snapshot
    gathered = Gathered()
    asked = gathered.attempt(lambda: _work(body))
    model = read_model(body.model, snapshot, gathered, call.hub)
    weights = kv_cache = None
    if model is not None:
        weights = read_weights(body.weights, model, snapshot, gathered)
        kv_cache = read_kv_cache(body.kv_cache, model, snapshot, gathered)
    constraints = body.constraints or Constraints()
    allowed = _allowed(constraints.gpus, snapshot, gathered)
    terms = _terms(constraints, snapshot, gathered)
    engine = body.engine or EngineRequest()
    draft = read_draft(engine, snapshot, gathered)
    gathered.check()
    told = tuple(one for one in gathered.assumptions if one.field.startswith(_OF_DEPLOYMENT))

    workload, served = needed(asked), needed(model)
    behaviour = read_behaviour(engine, snapshot)
    if engine.version is None:
        why = Message("default_engine_version", {"engine": behaviour.engine, "version": behaviour.version})
        gathered.assume("/engine/version", behaviour.version, why)
    elif engine.version != behaviour.version:
        gathered.assume("/engine/version", behaviour.version, read_version(engine, behaviour))
    engine = msgspec.structs.replace(engine, version=behaviour.version)
    if engine.max_model_len is None and engine.ctx_size is None:
        longest = max(int(np.ceil(workload.input.max + workload.output.max)), 1)
        engine = msgspec.structs.replace(engine, max_model_len=longest)
        gathered.assume("/engine/max_model_len", longest, Message("assumed_max_model_len"))
    operation_ = body.operation or OperationPart()
    spare = _spare(body, workload, gathered)
    ask = Ask(
        model=served.id,
        model_reference=msgspec.to_builtins(body.model),
        model_assumptions=told,
        traffic=body.traffic,
        calls=1.0 if body.application is None else body.application.llm_calls_per_request,
        question=Question(
            architecture=served.architecture,
            choices=_choices(body, served, needed(weights), needed(kv_cache), snapshot, gathered),
            kv_cache=needed(kv_cache),
            behaviour=behaviour,
            engine=engine,
            draft=draft,
            work=workload,
            headroom=_headroom(body, gathered),
            spare=spare,
            allowed=allowed if allowed is not None else np.ones(len(snapshot.fleet.accelerators), dtype=bool),
            max_gpus=UNLIMITED if constraints.max_gpus is None else float(constraints.max_gpus),
        ),
        smaller=tuple(
            _choice(snapshot.quantizations[name], served, needed(kv_cache))
            for name in SMALLER_FORMATS
            if snapshot.quantizations[name].bits_per_weight < needed(weights).bits_per_weight
        ),
        objective=body.objective,
        terms=needed(terms),
        hours_per_month=operation_.hours_per_month,
        horizon_months=operation_.horizon_months,
        environments=tuple(
            Environment(name=one.name, replicas=float(one.replicas), hours_per_month=one.hours_per_month)
            for one in operation_.environments
            if one.replicas
        ),
        max_monthly_usd=UNLIMITED if constraints.max_monthly_usd is None else constraints.max_monthly_usd,
        limit=body.limit,
        evaluated_on=body.evaluated_on or call.today,
        with_offers=query.rejected == "offers",
    )
    found = recommend(
        ask,
        snapshot.fleet,
        snapshot.market,
        open_offers(snapshot.market, ask.terms, ask.evaluated_on),
        snapshot.profiles,
    )
    gathered.assumptions.extend(traffic_assumptions(body.traffic))
    _assume_operation(body, gathered)
    more = members(explained_options(call, ask, found)) if query.explain else {}
    return extended(
        RecommendationAnswer,
        found,
        assumptions=tuple(gathered.assumptions),
        provenance=provenance(snapshot, ask.evaluated_on),
        **more,
    )


RECOMMENDATION_OPERATIONS = (recommend_deployment,)


def _work(body: RecommendationRequest) -> Work:
    if body.targets is not None:
        check_targets(body.targets)
    return work(body.traffic, body.targets, body.application, body.kind)


def _allowed(names: tuple[str, ...] | None, snapshot: Snapshot, gathered: Gathered) -> NDArray[np.bool_] | None:
    """Accelerators that the caller names; None where all are allowed, or a name is unknown."""
    if names is None:
        return None
    allowed = np.zeros(len(snapshot.fleet.accelerators), dtype=bool)
    for position, name in enumerate(names):
        pointer = f"/constraints/gpus/{position}"
        card = gathered.attempt(lambda name=name, pointer=pointer: catalog_gpu(name, pointer, snapshot, gathered))  # type: ignore[misc]
        if card is not None:
            allowed[snapshot.fleet.index[card.id]] = True
    return allowed


def _terms(constraints: Constraints, snapshot: Snapshot, gathered: Gathered) -> OfferTerms | None:
    """The caller's terms over the defaults, each default listed."""
    providers = None
    if constraints.providers is not None:
        known = snapshot.providers.values()
        providers = tuple(
            gathered.attempt(lambda name=name, at=at: _provider(name, f"/constraints/providers/{at}", snapshot)) or ""  # type: ignore[misc]
            for at, name in enumerate(constraints.providers)
        )
        del known
    if constraints.terms is None:
        gathered.assume("/constraints/terms", ", ".join(DEFAULT_TERMS.terms), Message("assumed_terms"))
    longest_term = constraints.max_min_term_months
    if longest_term is None and constraints.terms is None:
        longest_term = DEFAULT_TERMS.max_min_term_months
        gathered.assume("/constraints/max_min_term_months", longest_term, Message("assumed_min_term"))
    reliability = constraints.min_reliability
    if reliability is None:
        reliability = DEFAULT_TERMS.min_reliability
        gathered.assume("/constraints/min_reliability", reliability, Message("assumed_reliability"))
    return OfferTerms(
        providers=providers,
        regions=constraints.regions,
        tenancy=constraints.tenancy,
        terms=constraints.terms or DEFAULT_TERMS.terms,
        max_min_term_months=longest_term,
        max_age_days=constraints.max_age_days,
        min_reliability=reliability,
        allow_unverified=constraints.allow_unverified,
        allow_undated=constraints.allow_undated,
    )


def _provider(name: str, pointer: str, snapshot: Snapshot) -> str:
    found = resolve_provider(name, snapshot.providers.values())
    if found is None:
        suggestions = closest_providers(name, snapshot.providers.values()) or closest(name, snapshot.providers)
        raise UnknownId(pointer, Message("unknown_provider", {"id": name[:200]}), suggestions)
    return found


def _choices(  # noqa: PLR0913 - what decides the formats
    body: RecommendationRequest,
    model: NamedModel,
    weights: Quantization,
    kv_cache: Quantization,
    snapshot: Snapshot,
    gathered: Gathered,
) -> tuple[WeightChoice, ...]:
    """The format asked for; else the checkpoint's, the engine's own fp8 where cards compute in it, and published ones."""
    own = _choice(weights, model, kv_cache)
    if body.weights is not None:
        return (own,)
    choices = [own]
    if weights.id == "bf16":
        half = _choice(snapshot.quantizations["fp16"], model, kv_cache)
        choices.append(msgspec.structs.replace(half, instead_of=0))
        gathered.assume("/weights", "fp16", Message("assumed_half_precision"))
    if weights.id in FLOAT_BYTES:
        fp8 = _choice(snapshot.quantizations["fp8"], model, kv_cache)
        choices.append(msgspec.structs.replace(fp8, native_only=True))
        gathered.assume("/weights", "fp8", Message("assumed_engine_fp8"))
    return (*choices, *_published(model, {choice.quantization.id for choice in choices}, kv_cache, snapshot, gathered))


def _published(
    model: NamedModel, have: Iterable[str], kv_cache: Quantization, snapshot: Snapshot, gathered: Gathered
) -> list[WeightChoice]:
    """Quantized checkpoints of the model that the catalog knows, those that hold its very tensors."""
    seen = set(have)
    found = []
    for other in snapshot.quantized_checkpoints.get(model.id, ()):
        name = other.architecture.checkpoint_format
        if name in seen or not _same_tensors(model.architecture, other.architecture):
            continue
        seen.add(name)
        choice = WeightChoice(
            quantization=snapshot.quantizations[name],
            precision=precision(other.architecture, snapshot.quantizations[name], kv_cache, other.checkpoint_bytes),
            checkpoint=other.id,
            architecture=other.architecture,
            checkpoint_bytes=other.checkpoint_bytes,
        )
        found.append(choice)
        gathered.assume("/weights", name, Message("assumed_published_checkpoint", {"checkpoint": other.id}))
    return found


_STORED = (
    "checkpoint_format",
    "checkpoint_kv_cache",
    "unquantized",
    "stored_bits",
    "estimated",
    "max_position_embeddings",
)
"""How a repository stores or describes a model, rather than what it computes."""


def _same_tensors(one: Architecture, other: Architecture) -> bool:
    """Whether two architectures differ in storage alone, so that one search holds for both."""
    return all(getattr(one, name) == getattr(other, name) for name in one.__struct_fields__ if name not in _STORED)


def _choice(weights: Quantization, model: NamedModel, kv_cache: Quantization) -> WeightChoice:
    published = weights.id == model.architecture.checkpoint_format
    return WeightChoice(
        quantization=weights,
        precision=precision(model.architecture, weights, kv_cache, model.checkpoint_bytes),
        checkpoint_bytes=model.checkpoint_bytes if published else None,
    )


def _headroom(body: RecommendationRequest, gathered: Gathered) -> float:
    if body.headroom is None:
        gathered.assume("/headroom", DEFAULT_HEADROOM, Message("assumed_headroom"))
        return DEFAULT_HEADROOM
    return body.headroom


def _spare(body: RecommendationRequest, workload: Work, gathered: Gathered) -> float:
    if body.spare_replicas is None:
        spare = 1 if workload.kind == "interactive" else 0
        gathered.assume("/spare_replicas", spare, Message("assumed_spare", {"kind": workload.kind}))
        return float(spare)
    return float(body.spare_replicas)


def _assume_operation(body: RecommendationRequest, gathered: Gathered) -> None:
    if body.operation is None:
        gathered.assume("/operation/hours_per_month", 730.0, Message("assumed_hours_per_month"))
    if body.traffic.hourly_profile is None and body.traffic.batch is None:
        gathered.assume("/traffic/hourly_profile", 1.0, Message("assumed_peak_all_day"))
