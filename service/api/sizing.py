"""Endpoints of one deployment: VRAM budget, concurrency, performance, cost."""

from collections.abc import Sequence
from datetime import date
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import UNSET, Meta, UnsetType

from service.api.call import Call, Provenance, provenance
from service.api.deployments import Placed, needed, read_deployment
from service.api.explain import (
    explained_budget,
    explained_concurrency,
    explained_cost,
    explained_no_concurrency,
    explained_performance,
    members,
)
from service.api.operation import operation
from service.api.resolve import Gathered, read_offer
from service.api.wire import (
    ConcurrencyRequest,
    CostRequest,
    PerformanceRequest,
    VramBudgetRequest,
)
from service.catalog.snapshot import Snapshot
from service.domain.answer import Assumed
from service.domain.calibration import profile_of
from service.domain.concurrency import (
    ActiveRequests,
    ConcurrencyEstimate,
    DemandRates,
    WithHeadroom,
    concurrency_estimate,
    load_assumptions,
)
from service.domain.cost import CostProjection
from service.domain.cost_projection import check_price, cost_projection
from service.domain.demand import check_targets, traffic_assumptions
from service.domain.derivation import Derived, Explanation
from service.domain.errors import ImpossibleCombination
from service.domain.message import Message
from service.domain.not_modelled import not_modelled
from service.domain.performance import PerformanceEstimate, performance
from service.domain.units import MS_PER_S
from service.domain.verdict import Verdict, weigh
from service.domain.vram_budget import VramBudget, vram_budget
from service.domain.work import Work, work
from service.domain.workload_fit import Asked

A = TypeVar("A")


class RevisionQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Parameter of every answer from the catalogs."""

    catalog_revision: (
        Annotated[str, Meta(max_length=64, description="Answer from this catalog revision; 410 once it is gone.")]
        | None
    ) = None


class SizingQuery(RevisionQuery, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Parameters of every sizing endpoint."""

    explain: Annotated[
        bool, Meta(description="Add `derivation`, `explanation` and `checklist`: how the numbers come about.")
    ] = False


class VramBudgetAnswer(VramBudget, frozen=True, kw_only=True):
    """A VRAM budget with what it rests on."""

    provenance: Provenance
    derivation: tuple[Derived, ...] | UnsetType = UNSET
    """With `?explain=true`: how each number comes about."""
    explanation: Explanation | UnsetType = UNSET
    """With `?explain=true`: the answer in words."""
    checklist: tuple[Message, ...] | UnsetType = UNSET
    """With `?explain=true`: what to check before buying or deploying."""


class ConcurrencyAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Requests in progress and the demand behind them, as stated and with headroom; null where a deployment fails."""

    active_requests: ActiveRequests | None
    demand: DemandRates | None
    with_headroom: WithHeadroom | None
    request_duration_s: float | None
    """Mean time from arrival to last token that the estimate rests on."""
    verdict: Verdict | None
    """Of the deployment, where it has no duration."""
    reason_code: str | None
    reason: Message | None
    assumptions: list[Assumed]
    provenance: Provenance
    derivation: tuple[Derived, ...] | UnsetType = UNSET
    """With `?explain=true`: how each number comes about."""
    explanation: Explanation | UnsetType = UNSET
    """With `?explain=true`: the answer in words."""
    checklist: tuple[Message, ...] | UnsetType = UNSET
    """With `?explain=true`: what to check before buying or deploying."""


class PerformanceAnswer(PerformanceEstimate, frozen=True, kw_only=True):
    """A performance estimate with what it rests on."""

    provenance: Provenance
    derivation: tuple[Derived, ...] | UnsetType = UNSET
    """With `?explain=true`: how each number comes about."""
    explanation: Explanation | UnsetType = UNSET
    """With `?explain=true`: the answer in words."""
    checklist: tuple[Message, ...] | UnsetType = UNSET
    """With `?explain=true`: what to check before buying or deploying."""


class CostAnswer(CostProjection, frozen=True, kw_only=True):
    """A cost projection with what it rests on."""

    provenance: Provenance
    derivation: tuple[Derived, ...] | UnsetType = UNSET
    """With `?explain=true`: how each number comes about."""
    explanation: Explanation | UnsetType = UNSET
    """With `?explain=true`: the answer in words."""
    checklist: tuple[Message, ...] | UnsetType = UNSET
    """With `?explain=true`: what to check before buying or deploying."""


def extended(kind: type[A], answer: msgspec.Struct, **more: object) -> A:
    """The answer with the members that ``kind`` adds to it."""
    fields: dict[str, Any] = {name: getattr(answer, name) for name in answer.__struct_fields__}
    return kind(**fields | more)


def _from(call: Call[Snapshot], evaluated_on: date | None) -> Provenance:
    return provenance(call.snapshot, evaluated_on or call.today)


@operation("POST", "/v1/vram-budgets", tag="sizing", examples=("vram-budget", "vram-budget-does-not-fit"))
def estimate_vram_budget(call: Call[Snapshot], body: VramBudgetRequest, query: SizingQuery) -> VramBudgetAnswer:
    """VRAM budget of one deployment: does it start, where does each card's memory go, how many tokens fit.

    A deployment that does not fit is an answer with verdict, reason and evaluated remedies, not an error.
    """
    placed = read_deployment(body, call, Gathered())
    asked = None
    if body.context_tokens is not None and body.concurrent_sequences is not None:
        asked = Asked(body.context_tokens, body.concurrent_sequences)
    budget = vram_budget(placed.subject, asked, placed.proposals, placed.assumptions)
    more = members(explained_budget(placed, budget, asked)) if query.explain else {}
    return extended(VramBudgetAnswer, budget, provenance=_from(call, body.evaluated_on), **more)


@operation("POST", "/v1/performance-estimates", tag="sizing", examples=("performance-estimate",))
def estimate_performance(call: Call[Snapshot], body: PerformanceRequest, query: SizingQuery) -> PerformanceAnswer:
    """Latency, throughput and the most load under the targets, of one deployment under a workload.

    Above capacity in an open loop the latencies are null unless `run` says how long it lasts.
    """
    gathered = Gathered()
    asked = gathered.attempt(lambda: _work(body))
    placed = read_deployment(body, call, gathered)
    estimate = _timed(call.snapshot, placed, needed(asked))
    told = (*traffic_assumptions(body.traffic), *not_modelled(body.targets, body.application))
    estimate = msgspec.structs.replace(estimate, assumptions=(*told, *estimate.assumptions))
    more = members(explained_performance(call.snapshot, placed, needed(asked), estimate)) if query.explain else {}
    return extended(PerformanceAnswer, estimate, provenance=_from(call, body.evaluated_on), **more)


@operation("POST", "/v1/concurrency-estimates", tag="sizing", examples=("concurrency-estimate",))
def estimate_concurrency(call: Call[Snapshot], body: ConcurrencyRequest, query: SizingQuery) -> ConcurrencyAnswer:
    """Requests in progress at once (Little's law with percentiles), from a duration or from a deployment's own.

    Give `request_duration_s`, or `model` and `gpu`, whose performance estimate tells the duration. Numbers are null
    where the deployment does not fit or cannot carry the traffic.
    """
    based_on = _from(call, body.evaluated_on)
    if body.request_duration_s is not None:
        duration_s = body.request_duration_s
        estimate = concurrency_estimate(body.traffic, duration_s, body.headroom)
        answer = _concurrency(estimate, duration_s, based_on)
        if not query.explain:
            return answer
        explained = explained_concurrency(body.traffic, body.headroom, duration_s, estimate)
        return extended(ConcurrencyAnswer, answer, **members(explained))
    if body.model is None or body.gpu is None:
        raise ImpossibleCombination("", Message("duration_missing"), ("request_duration_s", "model", "gpu"))
    gathered = Gathered()
    deployment = PerformanceRequest(
        traffic=body.traffic,
        model=body.model,
        gpu=body.gpu,
        weights=body.weights,
        kv_cache=body.kv_cache,
        parallelism=body.parallelism,
        engine=body.engine,
    )
    asked = gathered.attempt(lambda: _work(deployment))
    placed = read_deployment(deployment, call, gathered)
    timed = _timed(call.snapshot, placed, needed(asked))
    if timed.e2e_ms is None:
        why = timed.reason or Message("traffic_above_capacity", {"most": timed.max_requests_per_second or 0.0})
        answer = ConcurrencyAnswer(
            active_requests=None,
            demand=None,
            with_headroom=None,
            request_duration_s=None,
            verdict=timed.verdict,
            reason_code=timed.reason_code or "traffic_above_capacity",
            reason=why,
            assumptions=[*load_assumptions(body.traffic, body.headroom), *placed.assumptions],
            provenance=based_on,
        )
        more = members(explained_no_concurrency(why)) if query.explain else {}
        return extended(ConcurrencyAnswer, answer, **more)
    duration_s = timed.e2e_ms.mean / MS_PER_S
    estimate = concurrency_estimate(body.traffic, duration_s, body.headroom)
    answer = _concurrency(estimate, duration_s, based_on, (*estimate.assumptions, *placed.assumptions))
    if not query.explain:
        return answer
    explained = explained_concurrency(body.traffic, body.headroom, duration_s, estimate, timed)
    return extended(ConcurrencyAnswer, answer, **members(explained))


@operation("POST", "/v1/cost-projections", tag="sizing", examples=("cost-projection",))
def project_cost(call: Call[Snapshot], body: CostRequest, query: SizingQuery) -> CostAnswer:
    """Cost of a month, of a million tokens and of a request, and where alternatives break even."""
    check_price(body)
    price, setup_fee = body.price_usd_per_hour, 0.0
    if body.offer is not None:
        offer = read_offer(body.offer, call.snapshot)
        price, setup_fee = offer.price_usd_per_hour, offer.setup_fee_usd
    if price is None:
        raise ImpossibleCombination("/offer", Message("offer_without_price", {"offer": body.offer or ""}))
    projection = cost_projection(body, price, setup_fee)
    more = members(explained_cost(call.snapshot, body, price, setup_fee, projection)) if query.explain else {}
    return extended(CostAnswer, projection, provenance=_from(call, body.evaluated_on), **more)


SIZING_OPERATIONS = (estimate_vram_budget, estimate_concurrency, estimate_performance, project_cost)


def _work(body: PerformanceRequest) -> Work:
    if body.targets is not None:
        check_targets(body.targets)
    return work(body.traffic, body.targets, body.application, body.kind, body.run)


def _timed(snapshot: Snapshot, placed: Placed, asked: Work) -> PerformanceEstimate:
    subject = placed.subject
    profile = profile_of(subject, snapshot.profiles)
    return performance(subject, weigh(subject), profile, asked, placed.engine.speculative, placed.assumptions)


def _concurrency(
    estimate: ConcurrencyEstimate,
    duration_s: float,
    based_on: Provenance,
    assumptions: Sequence[Assumed] | None = None,
) -> ConcurrencyAnswer:
    return ConcurrencyAnswer(
        active_requests=estimate.active_requests,
        demand=estimate.demand,
        with_headroom=estimate.with_headroom,
        request_duration_s=duration_s,
        verdict=None,
        reason_code=None,
        reason=None,
        assumptions=list(estimate.assumptions if assumptions is None else assumptions),
        provenance=based_on,
    )
