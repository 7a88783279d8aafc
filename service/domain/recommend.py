"""From a workload to ranked options: search, price, rank, and tell of every accelerator and provider that lost."""

import msgspec
import numpy as np

from service.domain.answer import significant
from service.domain.calibration import Profiles
from service.domain.columns import at
from service.domain.demand import stated_load
from service.domain.fleet import Fleet
from service.domain.market import Market, OpenOffers, largest_instances
from service.domain.message import Message
from service.domain.option_answer import parallelism_of, write_option
from service.domain.options import options
from service.domain.pareto import pareto_front
from service.domain.provider_verdicts import provider_verdicts
from service.domain.question import Ask
from service.domain.ranking import distinct, ranked, scores
from service.domain.recommendation import (
    ParetoPoint,
    ProviderVerdict,
    Recommendation,
    Rejection,
    RevisitWhen,
)
from service.domain.rejections import offer_rejections, rejections
from service.domain.search import find
from service.domain.searched import Searched
from service.domain.units import MS_PER_S

MOST_PARETO_POINTS = 10


class Recommendations(msgspec.Struct, frozen=True, kw_only=True):
    """Ranked options, the Pareto front, and why everything else lost."""

    recommendations: list[Recommendation]
    pareto: list[ParetoPoint]
    """Cheapest first, at most 10."""
    rejected: list[Rejection]
    by_provider: list[ProviderVerdict]
    revisit_when: list[RevisitWhen]


def recommend(ask: Ask, fleet: Fleet, market: Market, open_offers: OpenOffers, profiles: Profiles) -> Recommendations:
    """Rank what carries the workload under the targets, over the whole fleet and all open offers."""
    largest = largest_instances(market, open_offers, fleet)
    found = find(ask.question, fleet, largest, profiles)
    priced = options(ask, found, market, open_offers)
    score = scores(ask.objective, found, priced, market, ask.question)
    order = ranked(score, found, priced)
    alternatives = distinct(order, found, priced, market)
    chosen = tuple(option for option, _ in zip(alternatives, range(ask.limit), strict=False))
    searched = Searched(
        ask=ask,
        fleet=fleet,
        market=market,
        open=open_offers,
        largest=largest,
        profiles=profiles,
        found=found,
        options=priced,
        score=score,
        order=order,
        chosen=chosen,
    )
    return Recommendations(
        recommendations=[write_option(searched, option, rank) for rank, option in enumerate(chosen, start=1)],
        pareto=pareto(searched),
        rejected=rejections(searched) + (offer_rejections(searched) if ask.with_offers else []),
        by_provider=provider_verdicts(searched),
        revisit_when=revisit_when(searched),
    )


def pareto(searched: Searched) -> list[ParetoPoint]:
    """Options that no other beats in monthly cost, TTFT p95 and TPOT p95 together."""
    found, priced = searched.found, searched.options
    if not searched.order.size:
        return []
    # Options of one candidate differ in price alone: the first in order of price stands for all.
    by_price = searched.order[np.argsort(priced.monthly_usd[searched.order], kind="stable")]
    _, first = np.unique(priced.survivor[by_price], return_index=True)
    cheapest = by_price[np.sort(first)]
    survivor = priced.survivor[cheapest]
    costs = np.column_stack([priced.monthly_usd[cheapest], found.ttft_p95_s[survivor], found.tpot_p95_s[survivor]])
    front = [int(cheapest[row]) for row in pareto_front(costs)[:MOST_PARETO_POINTS]]
    return [_pareto_point(searched, option) for option in front]


def _pareto_point(searched: Searched, option: int) -> ParetoPoint:
    found, priced = searched.found, searched.options
    survivor = int(priced.survivor[option])
    choice = searched.ask.question.choices[int(found.candidates.choice[found.survivors[survivor]])]
    layout = at(found.deployment.layout, survivor)
    return ParetoPoint(
        gpu=searched.fleet.accelerators[searched.owner(option)].id,
        gpus_per_replica=int(layout.gpus),
        parallelism=parallelism_of(layout),
        weights=choice.quantization.id,
        replicas=int(at(found.replicas, survivor).total),
        instances=int(priced.instances[option]),
        offer_id=searched.market.offers[int(priced.offer[option])].id,
        monthly_usd=float(priced.monthly_usd[option]),
        ttft_ms_p95=float(found.ttft_p95_s[survivor]) * MS_PER_S,
        tpot_ms_p95=float(found.tpot_p95_s[survivor]) * MS_PER_S,
        rank=searched.chosen.index(option) + 1 if option in searched.chosen else None,
    )


def revisit_when(searched: Searched) -> list[RevisitWhen]:
    """Loads past which the first option needs more replicas, and a price past which the second is cheaper."""
    if not searched.chosen:
        return []
    found, first, question = searched.found, searched.chosen[0], searched.ask.question
    survivor = int(searched.options.survivor[first])
    most = float(np.asarray(found.most.of(question.work.demand))[survivor])
    serving = float(at(found.replicas, survivor).serving)
    growth = most * serving / ((1.0 + question.headroom) * question.work.demand.amount)
    field, stated = stated_load(searched.ask.traffic)
    why = Message("revisit_load", {"replicas": int(serving)})
    rows = [RevisitWhen(field=field, above=significant(stated * growth), why=why)]
    offer = searched.market.offers[int(searched.options.offer[first])]
    if len(searched.chosen) > 1 and searched.ask.objective == "min_cost" and offer.price_usd_per_hour is not None:
        second_usd = float(searched.options.monthly_usd[searched.chosen[1]])
        price = searched.options.price_for(first, offer.price_usd_per_hour, second_usd)
        why = Message("revisit_price", {"offer": offer.id})
        rows.append(RevisitWhen(field="/offer/price_usd_per_hour", above=significant(price), why=why))
    return rows
