"""Why each accelerator lost, by how much, and what would have let it in."""

from collections.abc import Iterator

import msgspec
import numpy as np

from service.domain.answer import significant
from service.domain.candidates import ALIVE, STAGE, STAGES
from service.domain.engine import FRACTION_FIELDS
from service.domain.fleet import IntArray
from service.domain.market import closed
from service.domain.message import Message
from service.domain.offer_terms import age_days
from service.domain.recommendation import Objective, Rejection, RejectionCode, RejectionDetail
from service.domain.search import memory_stages
from service.domain.searched import Searched
from service.domain.slo import bounds
from service.domain.units import MS_PER_S

_LOST: dict[Objective, RejectionCode] = {
    "min_cost": "more_expensive",
    "min_latency": "slower",
    "max_throughput_per_usd": "less_throughput_per_usd",
    "least_regret": "more_regret",
}
_MEMORY = frozenset({"weights_exceed_memory", "no_room_for_kv", "context_does_not_fit"})
_SLOW = frozenset({"ttft_too_high", "tpot_too_high", "e2e_too_high"})
ROOMY_FRACTION = 0.85
"""The pool share proposed where an engine runs out of memory after its pool."""
_PRICE_STEPS = 1e4
"""Prices are told to a hundredth of a cent, rounded down."""
_MARGIN = 1.1
"""A relaxed target leaves this much over the idle latency, so that some load can run under it."""


def rejections(searched: Searched) -> list[Rejection]:
    """One row for each accelerator that is not recommended, in the order of their ids.

    Slices of a card appear only where somebody sells them.
    """
    recommended = {searched.owner(option) for option in searched.chosen}
    best = _best_options(searched)
    fate = searched.found.candidates.fate
    nearest = _nearest_candidates(searched)
    smaller = _fits_with(searched)
    roomier = _fits_with_room(searched)
    rows = []
    for position, card in enumerate(searched.fleet.accelerators):
        sold = position in searched.open.by_accelerator
        if position in recommended or ("/" in card.id and not sold):
            continue
        if position in best:
            rows.append(_outscored(searched, card.id, best[position]))
            continue
        candidate = nearest[position]
        code = STAGES[int(fate.stage[candidate])]
        detail = RejectionDetail(limit=_number(fate.limit[candidate]), value=_number(fate.value[candidate]))
        change: dict[str, object] | None = None
        if code in _MEMORY and position in smaller:
            change = {"weights": smaller[position]}
        elif code == "out_of_memory_at_load" and position in roomier:
            change = {"engine": {FRACTION_FIELDS[searched.ask.question.behaviour.memory_rule]: ROOMY_FRACTION}}
        elif code in _SLOW:
            change = _relaxed(searched, int(candidate))
        elif code == "no_offer":
            change = next(_other_terms(searched, position), None)
        elif code in {"replica_too_large", "too_many_gpus"} and detail.value is not None:
            change = {"constraints": {"max_gpus": int(detail.value)}}
        elif code == "over_budget" and detail.value is not None:
            change = {"constraints": {"max_monthly_usd": float(np.ceil(fate.value[candidate]))}}
        rows.append(Rejection(gpu=card.id, reason_code=code, detail=detail, would_fit_if=change))
    return rows


def offer_rejections(searched: Searched) -> list[Rejection]:
    """One row for each offer that the terms keep out."""
    nothing = RejectionDetail(limit=None, value=None)
    return [
        Rejection(
            gpu=searched.market.offers[position].gpu or searched.market.offers[position].gpu_name,
            reason_code=reason.code,
            detail=_detail_of(reason) or nothing,
            would_fit_if=_other_term(searched, position),
            offer_id=searched.market.offers[position].id,
        )
        for position, reason in sorted(searched.open.refusals.items())
    ]


def _best_options(searched: Searched) -> dict[int, int]:
    """The best option of each accelerator."""
    owner = searched.found.candidates.accelerator[searched.found.survivors[searched.options.survivor]]
    best: dict[int, int] = {}
    for option in searched.order.tolist():
        best.setdefault(int(owner[option]), option)
    return best


def _outscored(searched: Searched, gpu: str, option: int) -> Rejection:
    """An accelerator whose best option is behind the last recommendation."""
    score, last_score = float(searched.score[option]), float(searched.score[searched.chosen[-1]])
    offer = searched.market.offers[searched.options.offer[option]]
    change: dict[str, object] | None = None
    if searched.ask.objective == "min_cost" and offer.price_usd_per_hour is not None:
        price = searched.options.price_for(option, offer.price_usd_per_hour, last_score)
        price = np.floor(price * _PRICE_STEPS) / _PRICE_STEPS
        change = {"offer": {"id": offer.id, "price_usd_per_hour": float(price)}} if price > 0.0 else None
    sign = -1.0 if searched.ask.objective == "max_throughput_per_usd" else 1.0
    detail = RejectionDetail(limit=_number(sign * last_score), value=_number(sign * score))
    return Rejection(gpu=gpu, reason_code=_LOST[searched.ask.objective], detail=detail, would_fit_if=change)


def _nearest_candidates(searched: Searched) -> IntArray:
    """For each accelerator the candidate that came furthest, the closest to the bound among equals."""
    fate = searched.found.candidates.fate
    excess = np.nan_to_num(fate.value - fate.limit, nan=np.inf)
    accelerator = searched.found.candidates.accelerator
    order = np.lexsort((excess, -fate.stage, accelerator))
    _, first = np.unique(accelerator[order], return_index=True)
    return order[first]


def _fits_with(searched: Searched) -> dict[int, str]:
    """Accelerators whose memory holds the model in a smaller weight format: the first of ``smaller`` that does."""
    smaller = searched.ask.smaller
    if not smaller:
        return {}
    question = msgspec.structs.replace(searched.ask.question, choices=smaller)
    owners, choices, stages = memory_stages(question, searched.fleet, searched.largest)
    found: dict[int, str] = {}
    for position, choice in enumerate(smaller):
        for owner in np.unique(owners[(stages == ALIVE) & (choices == position)]).tolist():
            found.setdefault(owner, choice.quantization.id)
    return found


def _fits_with_room(searched: Searched) -> frozenset[int]:
    """Accelerators that run out of memory after the pool, but not where the engine takes less for it."""
    question, fate = searched.ask.question, searched.found.candidates.fate
    field = FRACTION_FIELDS.get(question.behaviour.memory_rule)
    if field is None or not np.any(fate.stage == STAGE["out_of_memory_at_load"]):
        return frozenset()
    engine = msgspec.structs.replace(question.engine, **{field: ROOMY_FRACTION})
    roomier = msgspec.structs.replace(question, engine=engine)
    owners, _, stages = memory_stages(roomier, searched.fleet, searched.largest)
    return frozenset(np.unique(owners[stages == ALIVE]).tolist())


def _relaxed(searched: Searched, candidate: int) -> dict[str, object]:
    """Targets that a candidate meets at some load: each that it misses, with a margin over what it reaches."""
    targets: dict[str, dict[str, float]] = {}
    for position, bound in enumerate(bounds(searched.ask.question.work.targets)):
        reached_s = float(searched.found.idle_s[position, candidate])
        if reached_s > bound.limit_s:
            targets.setdefault(f"{bound.metric}_ms", {})[bound.level] = significant(reached_s * _MARGIN * MS_PER_S, 3)
    return {"targets": targets}


def _other_terms(searched: Searched, position: int) -> Iterator[dict[str, object]]:
    """Constraints under which one of the accelerator's offers would be open, of those that hold a whole replica."""
    fate, owner = searched.found.candidates.fate, searched.found.candidates.accelerator
    waiting = np.flatnonzero((owner == position) & (fate.stage == STAGE["no_offer"]))
    smallest = float(np.min(np.asarray(searched.found.candidates.deployment.layout.gpus)[waiting]))
    offers = np.flatnonzero((searched.market.accelerator == position) & (searched.market.gpus >= smallest))
    for offer in offers.tolist():
        change = _other_term(searched, offer)
        if change is not None:
            yield change


def _other_term(searched: Searched, position: int) -> dict[str, object] | None:
    """The one constraint that lets an offer in, checked against the refusal itself."""
    offer, reason = searched.market.offers[position], searched.open.refusals.get(position)
    if reason is None:
        return None
    provider = searched.market.providers[offer.provider]
    age = age_days(offer, searched.ask.evaluated_on)
    changes: dict[str, dict[str, object]] = {
        "undated": {"allow_undated": True},
        "spot_not_allowed": {"terms": (*searched.ask.terms.terms, offer.term)},
        "term_not_allowed": {"terms": (*searched.ask.terms.terms, offer.term)},
        "tenancy_not_allowed": {"tenancy": (offer.tenancy,)},
        "provider_not_allowed": {"providers": (offer.provider,)},
        "region_not_allowed": {"regions": (offer.region or offer.country or "",)},
        "min_term_too_long": {"max_min_term_months": offer.min_term_months},
        "too_old": {"max_age_days": age},
        "marketplace_unverified": {"allow_unverified": True, "min_reliability": offer.reliability or 0.0},
        "reliability_unknown": {"min_reliability": 0.0},
        "min_reliability": {"min_reliability": offer.reliability or 0.0},
    }
    change = changes.get(reason.code)
    if change is None:
        return None
    other = msgspec.structs.replace(searched.ask.terms, **change)
    if closed(offer, provider, other, searched.ask.evaluated_on) is not None:
        return None
    return {"constraints": {name: list(v) if isinstance(v, tuple) else v for name, v in change.items()}}


def _detail_of(reason: Message) -> RejectionDetail | None:
    limit, value = reason.params.get("limit"), reason.params.get("value")
    if isinstance(limit, int | float) and isinstance(value, int | float):
        return RejectionDetail(limit=float(limit), value=float(value))
    return None


def _number(value: float) -> float | None:
    return None if np.isnan(value) else significant(float(value))
