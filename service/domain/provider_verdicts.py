"""Every provider on the same workload: its best option, or why it has none, and what to ask it."""

from collections import Counter
from functools import lru_cache

from service.domain.columns import at
from service.domain.market import Market, OpenOffers
from service.domain.message import Message
from service.domain.offer_terms import provider_refusal
from service.domain.provider_questions import offer_questions, questions
from service.domain.recommendation import ProviderOption, ProviderVerdict
from service.domain.searched import Searched

MOST_QUESTIONS = 1
"""Of one provider here; a recommendation of it asks all, and `GET /v1/providers/{id}` tells all that is unknown."""

NO_OFFER = "no_offer"
NOT_SUITED = "no_suitable_option"


def provider_verdicts(searched: Searched) -> list[ProviderVerdict]:
    """One row a provider, in the order of their ids."""
    best: dict[str, int] = {}
    for option in searched.order.tolist():
        best.setdefault(searched.market.offers[int(searched.options.offer[option])].provider, option)
    ranks = {provider: rank for rank, provider in enumerate(best, start=1)}
    refused = _refusals(searched.market, searched.open)
    rows = []
    for provider_id, provider in sorted(searched.market.providers.items()):
        option = best.get(provider_id)
        if option is None:
            asked: tuple[Message, ...] = questions(provider)
            reason: str | None = refused.get(provider_id, NO_OFFER)
        else:
            offer = searched.market.offers[int(searched.options.offer[option])]
            asked, reason = (*offer_questions(offer, provider), *questions(provider)), None
        rows.append(
            ProviderVerdict(
                provider=provider_id,
                best_rank=ranks.get(provider_id),
                option=None if option is None else _option(searched, option),
                reason_code=reason,
                verify=asked[:MOST_QUESTIONS],
            )
        )
    return rows


def _option(searched: Searched, option: int) -> ProviderOption:
    found, options = searched.found, searched.options
    survivor = int(options.survivor[option])
    choice = searched.ask.question.choices[int(found.candidates.choice[found.survivors[survivor]])]
    return ProviderOption(
        gpu=searched.fleet.accelerators[searched.owner(option)].id,
        gpus_per_replica=int(at(found.deployment.layout, survivor).gpus),
        weights=choice.quantization.id,
        replicas=int(at(found.replicas, survivor).total),
        instances=int(options.instances[option]),
        offer_id=searched.market.offers[int(options.offer[option])].id,
        monthly_usd=float(options.monthly_usd[option]),
    )


@lru_cache(maxsize=64)
def _refusals(market: Market, open_: OpenOffers) -> dict[str, str]:
    """Why a provider without an option has none: it is not proven, its offers are refused, or none of them suits."""
    codes: dict[str, Counter[str]] = {}
    left = set(open_.index.tolist())
    for position, offer in enumerate(market.offers):
        reason = NOT_SUITED if position in left else open_.refusals[position].code
        codes.setdefault(offer.provider, Counter())[reason] += 1
    found = {}
    for provider_id, provider in market.providers.items():
        unproven = provider_refusal(provider)
        if unproven is not None:
            found[provider_id] = unproven.code
        elif provider_id in codes:
            counted = codes[provider_id]
            found[provider_id] = NOT_SUITED if counted[NOT_SUITED] else counted.most_common(1)[0][0]
    return found
