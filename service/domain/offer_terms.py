"""Which offers may be recommended: the caller's terms, the defaults behind them, and the reason for each refusal."""

from collections.abc import Iterator
from datetime import date

import msgspec

from service.domain.geography import stands_in
from service.domain.message import Message
from service.domain.offer import Offer, Provider, Tenancy, Term

_ASKED_OF_THE_SELLER = "operator_quote"
"""Evidence that outweighs what is not proven about a provider: an operator holds its quote."""

_TERM_REFUSALS = {
    "serverless": "serverless_not_allowed",
    "spot": "spot_not_allowed",
    "marketplace_bid": "spot_not_allowed",
}

_NOT_A_WHOLE_PRICE = ("accelerator_price_only", "unit_doubtful")
"""Flags of prices that leave out, or may leave out, a part of the instance."""


class OfferTerms(msgspec.Struct, frozen=True, kw_only=True):
    """What the caller accepts; the defaults are those of recommendations (None: no limit)."""

    providers: tuple[str, ...] | None = None
    regions: tuple[str, ...] | None = None
    """Region names, country codes, continents, ``EU`` or ``EEA``; any of them will do."""
    tenancy: tuple[Tenancy, ...] | None = None
    terms: tuple[Term, ...] = ("on_demand", "monthly")
    max_min_term_months: float | None = 1.0
    max_age_days: int | None = None
    min_reliability: float = 0.98
    """Of marketplace hosts, 0..1; Vast.ai documents ``verified`` as its default filter, the figure is our choice."""
    allow_unverified: bool = False
    """Take marketplace hosts that the marketplace has not verified."""
    allow_undated: bool = False


DEFAULT_TERMS = OfferTerms()


def age_days(offer: Offer, evaluated_on: date) -> int | None:
    """Days since the price was read (0 for a later date); None where it has no date."""
    if offer.as_of is None:
        return None
    return max(0, (evaluated_on - date.fromisoformat(offer.as_of)).days)


def is_stale(offer: Offer, provider: Provider, evaluated_on: date) -> bool:
    """Whether the price is older than prices of this provider usually last, past its end, or undated."""
    age = age_days(offer, evaluated_on)
    return age is None or age > provider.stale_after_days or _ended(offer, evaluated_on)


def provider_refusal(provider: Provider) -> Message | None:
    """Why nothing of a provider is recommended, or None where its listed prices may be used."""
    return None if provider.status == "priced" else Message(provider.status, {"provider": provider.name})


def refusal(offer: Offer, provider: Provider, terms: OfferTerms, evaluated_on: date) -> Message | None:
    """Why an offer may not be recommended under these terms; None: it may. The first reason that holds is given.

    What the caller excluded comes before what the data lack, and a provider without proof before all of its offers.
    """
    return next(_reasons(offer, provider, terms, evaluated_on), None)


def _reasons(offer: Offer, provider: Provider, terms: OfferTerms, evaluated_on: date) -> Iterator[Message]:
    if terms.providers is not None and offer.provider not in terms.providers:
        yield Message("provider_not_allowed", {"provider": provider.name})
    if offer.evidence != _ASKED_OF_THE_SELLER and (unproven := provider_refusal(provider)):
        yield unproven
    yield from _outside_terms(offer, terms)
    yield from _not_a_price(offer, terms, evaluated_on)
    if offer.tenancy == "marketplace":
        yield from _unreliable(offer, terms)


def _outside_terms(offer: Offer, terms: OfferTerms) -> Iterator[Message]:
    if terms.regions is not None and not any(stands_in(offer, place) for place in terms.regions):
        yield Message("region_not_allowed", {"region": offer.region or offer.country or "unknown"})
    if terms.tenancy is not None and offer.tenancy not in terms.tenancy:
        yield Message("tenancy_not_allowed", {"tenancy": offer.tenancy})
    if offer.term not in terms.terms:
        yield Message(_TERM_REFUSALS.get(offer.term, "term_not_allowed"), {"term": offer.term})
    if terms.max_min_term_months is not None:
        if offer.min_term_months > terms.max_min_term_months:
            yield Message("min_term_too_long", {"limit": terms.max_min_term_months, "value": offer.min_term_months})
        if "min_term_unknown" in offer.flags:
            yield Message("min_term_unknown", {"limit": terms.max_min_term_months})


def _not_a_price(offer: Offer, terms: OfferTerms, evaluated_on: date) -> Iterator[Message]:
    if offer.price_usd_per_hour is None:
        yield Message("quote_required", {"provider": offer.provider})
    for flag in _NOT_A_WHOLE_PRICE:
        if flag in offer.flags:
            yield Message(flag)
    age = age_days(offer, evaluated_on)
    if age is None:
        if not terms.allow_undated or terms.max_age_days is not None:
            yield Message("undated")
    elif terms.max_age_days is not None and age > terms.max_age_days:
        yield Message("too_old", {"limit": terms.max_age_days, "value": age})
    if _ended(offer, evaluated_on):
        yield Message("expired", {"valid_until": str(offer.valid_until)})
    if offer.availability == "none":
        yield Message("not_rentable", {"checked_at": offer.availability_checked_at or "unknown"})
    if offer.gpu is None:
        yield Message("gpu_not_in_catalog", {"gpu": offer.gpu_name})


def _unreliable(offer: Offer, terms: OfferTerms) -> Iterator[Message]:
    if not terms.allow_unverified and offer.verified is not True:
        yield Message("marketplace_unverified")
    if offer.reliability is None:
        if terms.min_reliability > 0:
            yield Message("reliability_unknown", {"limit": terms.min_reliability})
    elif offer.reliability < terms.min_reliability:
        yield Message("min_reliability", {"limit": terms.min_reliability, "value": offer.reliability})


def _ended(offer: Offer, evaluated_on: date) -> bool:
    return offer.valid_until is not None and date.fromisoformat(offer.valid_until) < evaluated_on
