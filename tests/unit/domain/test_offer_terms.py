"""What recommendations refuse by default, and how each of the caller's terms refuses or admits."""

from datetime import date

import msgspec
import pytest

from service.domain.offer import Offer, Provider
from service.domain.offer_terms import (
    DEFAULT_TERMS,
    OfferTerms,
    age_days,
    is_stale,
    provider_refusal,
    refusal,
)
from service.text.catalogs import CATALOGS

TODAY = date(2026, 12, 1)
SELLER = Provider(id="seller", name="Seller", status="priced")
GOOD = Offer(
    id="seller/h100/fin-01/on_demand",
    provider="seller",
    instance_type="h100",
    gpu="h100-sxm-80gb",
    gpus=8,
    price_usd_per_hour=20.0,
    region="FIN-01",
    country="FI",
    continent="europe",
    tenancy="dedicated",
    term="on_demand",
    as_of="2026-11-01",
    evidence="official_docs",
    source="https://example.com",
)
HOST = msgspec.structs.replace(GOOD, tenancy="marketplace", verified=True, reliability=0.99)


def code(offer: Offer, terms: OfferTerms = DEFAULT_TERMS, provider: Provider = SELLER) -> str | None:
    """Code of the refusal, checked to render in English."""
    message = refusal(offer, provider, terms, TODAY)
    if message is None:
        return None
    assert CATALOGS["en"][message.code].format(**message.params)
    return message.code


def test_a_dated_whole_price_of_a_proven_provider_passes() -> None:
    assert refusal(GOOD, SELLER, DEFAULT_TERMS, TODAY) is None
    assert refusal(HOST, SELLER, DEFAULT_TERMS, TODAY) is None


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"term": "spot"}, "spot_not_allowed"),
        ({"term": "marketplace_bid"}, "spot_not_allowed"),
        ({"term": "serverless"}, "serverless_not_allowed"),
        ({"term": "reserved"}, "term_not_allowed"),
        ({"term": "prepaid"}, "term_not_allowed"),
        ({"term": "monthly", "min_term_months": 24.0}, "min_term_too_long"),
        ({"term": "monthly", "min_term_months": 1.0}, None),
        ({"flags": ("min_term_unknown",)}, "min_term_unknown"),
        ({"price_usd_per_hour": None}, "quote_required"),
        ({"flags": ("accelerator_price_only",)}, "accelerator_price_only"),
        ({"flags": ("unit_doubtful",)}, "unit_doubtful"),
        ({"as_of": None}, "undated"),
        ({"valid_until": "2026-11-30"}, "expired"),
        ({"valid_until": "2026-12-01"}, None),
        ({"availability": "none"}, "not_rentable"),
        ({"gpu": None}, "gpu_not_in_catalog"),
    ],
)
def test_defaults(changes: dict[str, object], reason: str | None) -> None:
    assert code(msgspec.structs.replace(GOOD, **changes)) == reason


@pytest.mark.parametrize(
    ("changes", "terms", "reason"),
    [
        ({"verified": None}, {}, "marketplace_unverified"),
        ({"verified": False}, {}, "marketplace_unverified"),
        ({"verified": None}, {"allow_unverified": True}, None),
        ({"reliability": None}, {}, "reliability_unknown"),
        ({"reliability": None}, {"min_reliability": 0.0}, None),
        ({"reliability": 0.979}, {}, "min_reliability"),
        ({"reliability": 0.98}, {}, None),
        ({"reliability": 0.98}, {"min_reliability": 0.99}, "min_reliability"),
    ],
)
def test_marketplace_hosts(changes: dict[str, object], terms: dict[str, object], reason: str | None) -> None:
    assert code(msgspec.structs.replace(HOST, **changes), msgspec.convert(terms, OfferTerms)) == reason


@pytest.mark.parametrize(
    ("terms", "reason"),
    [
        ({"providers": ["other"]}, "provider_not_allowed"),
        ({"providers": ["seller", "other"]}, None),
        ({"regions": ["fin 01"]}, None),
        ({"regions": ["fi"]}, None),
        ({"regions": ["Europe"]}, None),
        ({"regions": ["us", "EU"]}, None),
        ({"regions": ["US", "north-america"]}, "region_not_allowed"),
        ({"tenancy": ["shared"]}, "tenancy_not_allowed"),
        ({"terms": ["spot"]}, "term_not_allowed"),
        ({"max_age_days": 29}, "too_old"),
        ({"max_age_days": 30}, None),
    ],
)
def test_the_callers_terms(terms: dict[str, object], reason: str | None) -> None:
    assert code(GOOD, msgspec.convert(terms, OfferTerms)) == reason


def test_an_undated_price_passes_only_where_age_does_not_matter() -> None:
    undated = msgspec.structs.replace(GOOD, as_of=None)
    assert code(undated, OfferTerms(allow_undated=True)) is None
    assert code(undated, OfferTerms(allow_undated=True, max_age_days=1000)) == "undated"


@pytest.mark.parametrize("status", ["quote_required", "unproven", "gpu_not_proven"])
def test_only_a_quote_in_hand_outweighs_a_provider_without_proof(status: str) -> None:
    provider = msgspec.structs.replace(SELLER, status=status)
    assert code(GOOD, provider=provider) == status
    assert code(msgspec.structs.replace(GOOD, evidence="live_api"), provider=provider) == status
    assert code(msgspec.structs.replace(GOOD, evidence="operator_quote"), provider=provider) is None
    reason = provider_refusal(provider)
    assert reason is not None
    assert reason.code == status


def test_age_and_staleness() -> None:
    assert age_days(GOOD, TODAY) == 30
    assert age_days(GOOD, date(2026, 10, 1)) == 0
    assert age_days(msgspec.structs.replace(GOOD, as_of=None), TODAY) is None
    assert not is_stale(GOOD, SELLER, TODAY)
    assert is_stale(GOOD, SELLER, date(2026, 12, 2))
    assert is_stale(msgspec.structs.replace(GOOD, as_of=None), SELLER, TODAY)
    assert is_stale(msgspec.structs.replace(GOOD, valid_until="2026-11-15"), SELLER, TODAY)
