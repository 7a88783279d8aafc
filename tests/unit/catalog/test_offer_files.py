"""Every offer file: ids, references, prices, dates, what recommendations admit, and the known traps of price lists."""

import re
from collections import defaultdict
from datetime import date
from pathlib import Path
from statistics import median

import pytest

import service.catalog
from service.catalog.accelerators import load_accelerators
from service.catalog.offers import load_offers
from service.catalog.providers import load_providers
from service.domain.offer import Offer
from service.domain.offer_terms import DEFAULT_TERMS, OfferTerms, refusal

DATA = Path(service.catalog.__file__).parent / "data"
OFFERS = load_offers(DATA / "offers")
BY_ID = {offer.id: offer for offer in OFFERS}
PROVIDERS = {provider.id: provider for provider in load_providers(DATA / "providers")}
ACCELERATORS = load_accelerators(DATA / "accelerators")
TODAY = date(2026, 12, 1)

MOST_USD_PER_GPU_HOUR = 30.0
"""Above every list price seen (a GB200 of a hyperscaler at 27.04)."""
WIDEST_SPREAD = 5.0
"""Times the median of its card that an unflagged price may lie above or below it."""


def priced(provider: str) -> list[Offer]:
    return [
        o for o in OFFERS if o.provider == provider and refusal(o, PROVIDERS[provider], DEFAULT_TERMS, TODAY) is None
    ]


def per_card(offer: Offer) -> float:
    """Price of a whole card of the offer's kind."""
    assert offer.price_usd_per_hour is not None
    return offer.price_usd_per_hour / offer.gpus / offer.gpu_fraction


def test_enough_offers_of_every_provider() -> None:
    assert len(OFFERS) >= 750
    assert {o.provider for o in OFFERS} == PROVIDERS.keys() - {"dedixlab"}


def test_ids_are_unique_sorted_and_derived() -> None:
    assert list(BY_ID) == sorted(BY_ID)
    assert len(BY_ID) == len(OFFERS)
    for offer in OFFERS:
        assert re.fullmatch(r"[a-z0-9-]+/[a-z0-9._-]+/[a-z0-9._-]+/[a-z_]+", offer.id), offer.id
        assert offer.id.startswith(f"{offer.provider}/")
        assert offer.id.endswith(f"/{offer.term}")


def test_cards_resolve_and_the_smaller_candidate_is_taken() -> None:
    for offer in OFFERS:
        names = {offer.gpu, *offer.gpu_candidates} - {None}
        assert names <= ACCELERATORS.keys(), offer.id
        assert ("gpu_ambiguous" in offer.flags) == (len(offer.gpu_candidates) > 1), offer.id
        if offer.gpu_candidates:
            sizes = [
                (ACCELERATORS[name].memory_label_gb, ACCELERATORS[name].memory_bandwidth_gb_per_s)
                for name in offer.gpu_candidates
            ]
            assert offer.gpu == offer.gpu_candidates[0], offer.id
            assert sizes[0] == min(sizes), offer.id


def test_fractions_hold_what_the_seller_says() -> None:
    for offer in OFFERS:
        if offer.gpu_fraction < 1 and offer.gpu_memory_gb and offer.gpu:
            whole = ACCELERATORS[offer.gpu].memory_label_gb
            assert offer.gpu_memory_gb == pytest.approx(whole * offer.gpu_fraction, rel=0.08), offer.id


def test_labelled_memory_is_that_of_the_card() -> None:
    for offer in OFFERS:
        if offer.gpu and offer.gpu_memory_gb and offer.gpu_fraction == 1 and "memory_conflict" not in offer.flags:
            assert offer.gpu_memory_gb == pytest.approx(ACCELERATORS[offer.gpu].memory_label_gb, rel=0.1), offer.id


def test_prices_are_plausible_for_their_card_unless_flagged() -> None:
    by_card = defaultdict(list)
    for offer in OFFERS:
        if offer.price_usd_per_hour is not None and offer.gpu:
            by_card[offer.gpu].append(offer)
    for card, offers in by_card.items():
        usual = median(per_card(o) for o in offers)
        for offer in offers:
            price = per_card(offer)
            assert 0.01 <= price <= MOST_USD_PER_GPU_HOUR, offer.id
            excused = {"price_outlier", "sample_listing", "accelerator_price_only"} & set(offer.flags)
            if len(offers) > 2 and not excused and not offer.interruptible:
                assert usual / WIDEST_SPREAD <= price <= usual * WIDEST_SPREAD, (offer.id, card, price, usual)


def test_every_offer_has_a_source_and_a_date_or_says_that_it_has_none() -> None:
    for offer in OFFERS:
        assert offer.source, offer.id
        assert ("undated" in offer.flags) == (offer.as_of is None), offer.id
        assert ("quote_required" in offer.flags) == (offer.price_usd_per_hour is None), offer.id
        for day in (offer.as_of, *(earlier.as_of for earlier in offer.earlier_prices)):
            assert day is None or date(2024, 1, 1) <= date.fromisoformat(day) <= TODAY, offer.id
        dates = [earlier.as_of for earlier in offer.earlier_prices]
        assert dates == sorted(dates, reverse=True), offer.id
        assert all(offer.as_of is not None and day <= offer.as_of for day in dates), offer.id


def test_defaults_admit_only_dated_whole_uninterrupted_prices() -> None:
    admitted = [o for o in OFFERS if refusal(o, PROVIDERS[o.provider], DEFAULT_TERMS, TODAY) is None]
    assert len(admitted) >= 400
    for offer in admitted:
        assert offer.term in {"on_demand", "monthly"}
        assert offer.min_term_months <= 1
        assert offer.as_of is not None
        assert offer.price_usd_per_hour is not None
        assert {"cpu", "ram"} <= set(offer.includes)
        assert offer.tenancy != "marketplace" or (offer.verified and (offer.reliability or 0) >= 0.98)


@pytest.mark.parametrize(
    ("provider", "reason"),
    [("raksmart", "quote_required"), ("cherry-servers", "gpu_not_proven"), ("dedixlab", "unproven")],
)
def test_providers_without_proof_never_pass_whatever_the_terms(provider: str, reason: str) -> None:
    widest = OfferTerms(
        terms=("on_demand", "spot", "monthly", "reserved", "prepaid", "serverless", "marketplace_bid"),
        max_min_term_months=None,
        min_reliability=0.0,
        allow_unverified=True,
        allow_undated=True,
    )
    for offer in (o for o in OFFERS if o.provider == provider):
        message = refusal(offer, PROVIDERS[provider], widest, TODAY)
        assert message is not None
        assert message.code == reason


@pytest.mark.parametrize(
    "provider", ["runpod", "gpu-mart", "vultr", "aws", "azure", "gcp", "oci", "lambda", "nebius", "coreweave", "verda"]
)
def test_providers_with_dated_prices_are_priced_by_default(provider: str) -> None:
    assert priced(provider)


# Traps of price lists, each with the offer that would fall into it.


def test_commitment_prices_are_not_monthly_prices() -> None:
    h100 = BY_ID["gpu-mart/h100-dedicated/dallas-kansas-city/monthly"]
    assert h100.min_term_months == 24
    assert h100.price_usd_per_hour == pytest.approx(2099 / 730, abs=1e-6)
    assert code_of(h100) == "min_term_too_long"
    assert code_of(BY_ID["vultr/gh200-72c-480g/any/on_demand"]) == "min_term_unknown"
    assert code_of(BY_ID["hyperstack/h100-pcie-80gb/any/reserved"]) == "term_not_allowed"


def code_of(offer: Offer) -> str | None:
    message = refusal(offer, PROVIDERS[offer.provider], DEFAULT_TERMS, TODAY)
    return message.code if message else None


@pytest.mark.parametrize(
    ("offer_id", "hours", "hourly"),
    [
        ("vultr/vbm-72c-480gb-gh200-gpu/any/prepaid", 672, 4.334821),
        ("vultr/vbm-112c-2048gb-8-h100-gpu/any/prepaid", 672, 19.988095),
        ("gpu-mart/rtx-4090-dedicated/dallas-kansas-city/monthly", 730, 0.560274),
        ("hetzner/gex63/eu/monthly", 730, 1.592515),
        ("digitalocean/gpu-h100x8-640gb/nyc1/on_demand", None, 23.92),
    ],
)
def test_the_month_that_was_used_is_stated(offer_id: str, hours: float | None, hourly: float) -> None:
    offer = BY_ID[offer_id]
    assert offer.hours_per_month_used == hours
    assert offer.price_usd_per_hour == pytest.approx(hourly, abs=1e-6)


def test_nodes_are_priced_as_nodes() -> None:
    assert BY_ID["lambda/gpu_8x_b200_sxm6/any/on_demand"].price_usd_per_hour == pytest.approx(53.52)
    assert BY_ID["coreweave/hgx-h100-8x/any/on_demand"].price_usd_per_hour == pytest.approx(49.24)
    assert BY_ID["aws/p5.48xlarge/us-east-1/on_demand"].price_usd_per_hour == pytest.approx(55.04)
    nebius = BY_ID["nebius/gpu-b200-sxm-8gpu-160vcpu-1792gb/any/on_demand"]
    assert nebius.gpus == 8
    assert nebius.price_usd_per_hour == pytest.approx(68.0)


def test_node_memory_is_not_card_memory() -> None:
    assert BY_ID["digitalocean/gpu-h100x8-640gb/nyc1/on_demand"].gpu_memory_gb == 80
    mi325x = BY_ID["vultr/vcg-mi325x-252c-2872g-1536vram/any/spot"]
    assert mi325x.gpu_memory_gb == 256
    assert "memory_conflict" in mi325x.flags


@pytest.mark.parametrize(
    ("offer_id", "gpu", "fraction"),
    [
        ("aws/g6f.2xlarge/us-east-1/on_demand", "l4-24gb", 0.25),
        ("azure/standard_nv6ads_a10_v5/eastus/on_demand", "a10-24gb", 0.167),
        ("gcp/g4-standard-12/us-central1/on_demand", "rtx-pro-6000-blackwell-server-96gb", 0.25),
        ("vultr/vcg-a100-6c-60g-40vram/ewr/on_demand", "a100-pcie-80gb", 0.5),
        ("vultr/vcg-a100-1c-6g-4vram/ewr/on_demand", "a100-pcie-80gb", 0.05),
    ],
)
def test_shares_of_a_card_are_shares(offer_id: str, gpu: str, fraction: float) -> None:
    offer = BY_ID[offer_id]
    assert (offer.gpu, offer.gpus, offer.gpu_fraction, offer.tenancy) == (gpu, 1, fraction, "shared")


def test_same_name_other_card() -> None:
    assert BY_ID["azure/standard_nc40ads_h100_v5/eastus/on_demand"].gpu == "h100-nvl-94gb"
    assert BY_ID["aws/p4d.24xlarge/us-east-1/on_demand"].gpu == "a100-sxm-40gb"
    assert BY_ID["vast-ai/1x-rtx_4090-48gb/hk/on_demand"].gpu == "rtx-4090-48gb"
    assert BY_ID["runpod/h100-nvl-94gb-secure/any/on_demand"].gpu == "h100-nvl-94gb"
    assert BY_ID["cherry-servers/a16/any/monthly"].gpus == 4


def test_bare_gpu_prices_are_refused() -> None:
    for offer in OFFERS:
        if offer.provider in {"tensordock", "modal", "cherry-servers"} or "/classic-" in offer.id:
            assert "accelerator_price_only" in offer.flags, offer.id
            assert offer.includes == (), offer.id


def test_listed_is_not_rentable() -> None:
    assert code_of(BY_ID["gcp/a3-highgpu-1g/us-central1/on_demand"]) == "not_rentable"
    assert code_of(BY_ID["gcp/a3-highgpu-8g/us-central1/on_demand"]) is None
    assert BY_ID["vultr/vcg-mi325x-252c-2872g-1536vram/any/spot"].availability == "none"


def test_euro_prices_are_converted_with_their_set_up_fee() -> None:
    gex = BY_ID["hetzner/gex45/helsinki/monthly"]
    assert (gex.currency, gex.price_as_quoted) == ("EUR", 214)
    assert gex.price_usd_per_hour == pytest.approx(214 * 1.1637 / 730, abs=1e-6)
    assert gex.setup_fee_usd == pytest.approx(209 * 1.1637, abs=0.01)
    assert BY_ID["ovh/l4-90/eu/on_demand"].price_usd_per_hour == pytest.approx(0.872775)


def test_paid_prices_count_where_the_list_price_is_higher() -> None:
    discounted = BY_ID["gpu-mart/rtx-a6000-dedicated/dallas-kansas-city/monthly"]
    assert "discounted" in discounted.flags
    assert discounted.price_usd_per_hour == pytest.approx(329.4 / 730, abs=1e-6)


def test_the_newest_price_wins_and_the_older_ones_are_kept() -> None:
    h100 = BY_ID["runpod/h100-sxm-80gb-secure/any/on_demand"]
    assert (h100.as_of, h100.price_usd_per_hour) == ("2026-11-09", 3.99)
    assert [(e.as_of, e.price_usd_per_hour) for e in h100.earlier_prices] == [
        ("2026-10-19", 3.99),
        ("2026-10-07", 3.49),
        ("2026-09-25", 3.49),
        ("2026-08-19", 3.29),
        ("2026-05-24", 3.29),
    ]
    assert BY_ID["hyperstack/n3-h100x4/canada-1/on_demand"].price_usd_per_hour == pytest.approx(10.0)


def test_spot_is_a_price_of_its_own() -> None:
    """Zero or the on-demand price stand for missing data; dearer than an older on-demand price happens (Verda L40S)."""
    pairs = [(o, BY_ID.get(o.id.removesuffix("spot") + "on_demand")) for o in OFFERS if o.term == "spot"]
    compared = [(spot, full) for spot, full in pairs if full is not None]
    assert len(compared) > 60
    for spot, full in compared:
        assert spot.interruptible
        assert spot.price_usd_per_hour not in {0, None, full.price_usd_per_hour}, spot.id


def test_serverless_prices_are_never_hourly_instances() -> None:
    flex = BY_ID["runpod/flex-h100/any/serverless"]
    assert flex.price_usd_per_hour == pytest.approx(0.00116 * 3600)
    for offer in OFFERS:
        assert (offer.tenancy == "serverless") == (offer.term == "serverless"), offer.id


def test_more_cards_of_a_per_card_price() -> None:
    one, eight = (BY_ID[f"runpod/h100-sxm-80gb-secure{n}/any/on_demand"] for n in ("", "-x8"))
    assert eight.price_usd_per_hour == pytest.approx(8 * 3.99)
    assert (eight.gpus, eight.vcpu, eight.ram_gb) == (8, 160, 1000)
    assert "size_not_quoted" in eight.flags
    assert "size_not_quoted" not in one.flags
