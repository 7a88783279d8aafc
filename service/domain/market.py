"""All offers as a struct of arrays, joined to the fleet, and which of them a caller's terms leave open."""

from collections.abc import Mapping, Sequence
from datetime import date
from functools import lru_cache

import msgspec
import numpy as np
from numpy.typing import NDArray

from service.domain.cost_projection import DEFAULT_EGRESS_USD_PER_GB, DEFAULT_STORAGE_USD_PER_GB_MONTH
from service.domain.fleet import Fleet, IntArray
from service.domain.message import Message
from service.domain.numeric import FloatArray
from service.domain.offer import Offer, Provider
from service.domain.offer_terms import OfferTerms, refusal

NO_ACCELERATOR = -1
LET_BY_MONTH = frozenset({"monthly", "reserved", "prepaid"})
"""Terms under which a switched-off instance is paid for as well."""
_FRACTION = "fractional_card"


class Market(msgspec.Struct, frozen=True, eq=False):
    """Offers (sorted by id) and their numbers; compared by identity."""

    offers: tuple[Offer, ...]
    providers: dict[str, Provider]
    accelerator: IntArray
    """Index into ``Fleet.accelerators``; ``NO_ACCELERATOR`` where the card is not in the catalog."""
    gpus: FloatArray
    price_usd_per_hour: FloatArray
    """Of the whole instance; 0 where none is published (such offers are never open)."""
    by_month: NDArray[np.bool_]
    """Let by the month or longer: paid whether it runs or not."""
    setup_fee_usd: FloatArray
    storage_usd_per_gb_month: FloatArray
    """The provider's, or the default of cost projections."""
    egress_usd_per_gb: FloatArray


class OpenOffers(msgspec.Struct, frozen=True, eq=False):
    """What is left of a market under some terms, and why the rest is not."""

    index: IntArray
    """Positions in ``Market.offers``, ascending."""
    by_accelerator: dict[int, IntArray]
    refusals: dict[int, Message]
    """Reason by position of every other offer."""


def compile_market(offers: Sequence[Offer], providers: Mapping[str, Provider], fleet: Fleet) -> Market:
    """Arrays of all offers."""
    ordered = tuple(sorted(offers, key=lambda offer: offer.id))
    return Market(
        offers=ordered,
        providers=dict(providers),
        accelerator=np.array([fleet.index.get(o.gpu or "", NO_ACCELERATOR) for o in ordered], dtype=np.intp),
        gpus=np.array([float(o.gpus) for o in ordered]),
        price_usd_per_hour=np.array([o.price_usd_per_hour or 0.0 for o in ordered]),
        by_month=np.array([o.term in LET_BY_MONTH for o in ordered]),
        setup_fee_usd=np.array([o.setup_fee_usd for o in ordered]),
        storage_usd_per_gb_month=np.array([storage_price(providers[o.provider]) for o in ordered]),
        egress_usd_per_gb=np.array([egress_price(providers[o.provider]) for o in ordered]),
    )


def storage_price(provider: Provider) -> float:
    """Dollars per GB and month of network storage, by default that of cost projections."""
    known = provider.storage_usd_per_gb_month
    return DEFAULT_STORAGE_USD_PER_GB_MONTH if known is None else known


def egress_price(provider: Provider) -> float:
    """Dollars per GB sent out, by default that of cost projections."""
    known = provider.egress_usd_per_gb
    return DEFAULT_EGRESS_USD_PER_GB if known is None else known


def closed(offer: Offer, provider: Provider, terms: OfferTerms, evaluated_on: date) -> Message | None:
    """Why an offer is no option under ``terms`` on a day; None where it is open."""
    reason = refusal(offer, provider, terms, evaluated_on)
    if reason is None and offer.gpu_fraction < 1.0 and "/" not in (offer.gpu or ""):
        return Message(_FRACTION, {"share": offer.gpu_fraction})
    return reason


@lru_cache(maxsize=64)
def open_offers(market: Market, terms: OfferTerms, evaluated_on: date) -> OpenOffers:
    """Offers that may be recommended under ``terms`` on a day; kept, since most callers share their terms."""
    refusals: dict[int, Message] = {}
    kept: list[int] = []
    for position, offer in enumerate(market.offers):
        reason = closed(offer, market.providers[offer.provider], terms, evaluated_on)
        if reason is None:
            kept.append(position)
        else:
            refusals[position] = reason
    index = np.array(kept, dtype=np.intp)
    owners = market.accelerator[index]
    return OpenOffers(
        index=index,
        by_accelerator={int(owner): index[owners == owner] for owner in np.unique(owners)},
        refusals=refusals,
    )


def largest_instances(market: Market, open_: OpenOffers, fleet: Fleet) -> FloatArray:
    """Accelerators of the largest open instance of each accelerator of the fleet; 0 where nobody sells it."""
    largest = np.zeros(len(fleet.accelerators))
    for owner, offers in open_.by_accelerator.items():
        if owner != NO_ACCELERATOR:
            largest[owner] = market.gpus[offers].max()
    return largest
