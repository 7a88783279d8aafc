"""``?explain=true``: what it adds to each answer of the sizing endpoints."""

from typing import Any, cast

import msgspec

from service.api.call import Call
from service.api.deployments import Placed, read_deployment
from service.api.resolve import Gathered, read_offer
from service.api.wire import DeploymentPart, ModelSpec, Parallelism
from service.catalog.snapshot import Snapshot
from service.domain.calibration import profile_of
from service.domain.concurrency import ConcurrencyEstimate
from service.domain.cost import CostProjection, CostProjectionRequest, Throughput
from service.domain.derivation import Derived, Explained, below, derived
from service.domain.derivation_concurrency import concurrency_derivation
from service.domain.derivation_cost import cost_derivation
from service.domain.derivation_memory import memory_derivation
from service.domain.derivation_performance import DEFINITION, Timed, performance_derivation, timed
from service.domain.derivation_replicas import replica_derivation
from service.domain.explanation import (
    concurrency_checks_to_do,
    cost_checks_to_do,
    explain_concurrency,
    explain_cost,
    explain_memory,
    explain_performance,
    memory_checks_to_do,
    performance_checks_to_do,
)
from service.domain.message import Message
from service.domain.option_answer import share_of
from service.domain.option_explanation import NOTHING_FOUND, explain_option, option_checks_to_do
from service.domain.performance import PerformanceEstimate
from service.domain.question import Ask
from service.domain.recommend import Recommendations
from service.domain.recommendation import Recommendation
from service.domain.units import MS_PER_S
from service.domain.vram_budget import VramBudget
from service.domain.work import Work, work
from service.domain.workload import Traffic
from service.domain.workload_fit import Asked

THE_CALLERS_PRICE = "price_usd_per_hour of the request"
FIRST = "/recommendations/0"


def members(explained: Explained) -> dict[str, object]:
    """The members that an answer gains."""
    return msgspec.structs.asdict(explained)


def explained_budget(placed: Placed, budget: VramBudget, asked: Asked | None) -> Explained:
    """Of ``vram-budgets``."""
    return Explained(
        derivation=memory_derivation(placed.subject, budget, asked),
        explanation=explain_memory(placed.subject, budget),
        checklist=memory_checks_to_do(placed.subject, budget),
    )


def explained_performance(snapshot: Snapshot, placed: Placed, asked: Work, estimate: PerformanceEstimate) -> Explained:
    """Of ``performance-estimates``; without numbers there is nothing to derive."""
    steps: tuple[Derived, ...] = ()
    if estimate.throughput is not None:
        steps = performance_derivation(_timed(snapshot, placed, asked), asked, estimate)
    return Explained(
        derivation=steps,
        explanation=explain_performance(placed.subject, asked, estimate),
        checklist=performance_checks_to_do(estimate),
    )


def explained_concurrency(
    traffic: Traffic,
    headroom: float | None,
    duration_s: float,
    estimate: ConcurrencyEstimate,
    based_on: PerformanceEstimate | None = None,
) -> Explained:
    """Of ``concurrency-estimates``; ``based_on``: the performance that told the duration, if one did."""
    steps = concurrency_derivation(traffic, duration_s, headroom, estimate)
    if based_on is not None and based_on.e2e_ms is not None:
        lasts = {"e2e_ms": based_on.e2e_ms.mean, "ms_per_s": MS_PER_S}
        first = derived("/request_duration_s", "e2e_ms / ms_per_s", lasts, duration_s, "s", DEFINITION)
        steps = (first, *steps)
    return Explained(
        derivation=steps,
        explanation=explain_concurrency(estimate.active_requests, duration_s, None),
        checklist=concurrency_checks_to_do(),
    )


def explained_no_concurrency(why: Message) -> Explained:
    """Of ``concurrency-estimates`` where a deployment has no duration."""
    return Explained(
        derivation=(), explanation=explain_concurrency(None, None, why), checklist=concurrency_checks_to_do()
    )


def explained_cost(
    snapshot: Snapshot, body: CostProjectionRequest, price: float, setup_fee: float, projection: CostProjection
) -> Explained:
    """Of ``cost-projections``."""
    return Explained(
        derivation=cost_derivation(body, price, setup_fee, _price_source(snapshot, body), projection),
        explanation=explain_cost(body, projection),
        checklist=cost_checks_to_do(body),
    )


def explained_options(call: Call[Snapshot], ask: Ask, found: Recommendations, model: str | ModelSpec) -> Explained:
    """Of ``recommendations`` for ``model`` as the body names it: the first option, put together again as its parts were."""
    if not found.recommendations:
        return Explained(derivation=(), explanation=NOTHING_FOUND, checklist=())
    option = found.recommendations[0]
    costs = _costs(option)
    placed = read_deployment(_replica(ask, option, model), call, Gathered())
    asked = _share(ask, option)
    subject, offer = placed.subject, option.offer
    at_load = _timed(call.snapshot, placed, asked)
    price, source = offer.price_usd_per_hour, _price_source(call.snapshot, costs)
    bill = cost_derivation(costs, price, offer.setup_fee_usd, source, option.cost)
    steps = (
        *replica_derivation(ask, option, at_load),
        *below("/vram", memory_derivation(subject, option.vram)),
        *below("/performance", performance_derivation(at_load, asked, option.performance)),
        *below("/cost", bill),
    )
    return Explained(
        derivation=below(FIRST, steps),
        explanation=explain_option(ask, option, subject, asked, costs),
        checklist=option_checks_to_do(option, subject),
    )


def _replica(ask: Ask, option: Recommendation, model: str | ModelSpec) -> DeploymentPart:
    """One replica as a body names it. Not read from the replay: a body's bounds may be tighter than what is found."""
    layout = option.parallelism
    return DeploymentPart(
        model=option.checkpoint if isinstance(model, str) else model,
        gpu=option.gpu,
        weights=option.weights,
        kv_cache=option.kv_cache,
        parallelism=Parallelism(tensor=layout.tensor, pipeline=layout.pipeline, data=layout.data, expert=layout.expert),
        engine=msgspec.structs.replace(ask.question.engine, version=option.engine.version),
    )


def _share(ask: Ask, option: Recommendation) -> Work:
    """The work of one serving replica."""
    planned, breakdown = ask.question.work, option.replica_breakdown
    serving = float(breakdown.for_load + breakdown.headroom)
    closed = planned.demand.concurrency is not None
    load = (planned.demand.concurrency if closed else planned.demand.requests_per_second) or 0.0
    traffic = share_of(ask.traffic, load / serving, serving, ask.calls)
    return work(traffic, planned.targets, planned.application, planned.kind)


def _costs(option: Recommendation) -> CostProjectionRequest:
    """What the option's cost was asked with."""
    given = cast("dict[str, Any]", option.replay.cost_projection)
    members = {name: value for name, value in given.items() if name != "evaluated_on"}
    return CostProjectionRequest(**{**members, "throughput": Throughput(**members["throughput"])})


def _timed(snapshot: Snapshot, placed: Placed, asked: Work) -> Timed:
    return timed(placed.subject, profile_of(placed.subject, snapshot.profiles), asked, placed.engine.speculative)


def _price_source(snapshot: Snapshot, body: CostProjectionRequest) -> str:
    """Where the price comes from: the offer's page with its date, or the caller."""
    if body.offer is None:
        return THE_CALLERS_PRICE
    offer = read_offer(body.offer, snapshot)
    return offer.source if offer.as_of is None else f"{offer.source} ({offer.as_of})"
