"""The compiled catalogs: rows of the fleet, columns of the market, and which offers are open under which terms."""

from datetime import date

import msgspec
import numpy as np
import pytest

from service.catalog.snapshot import Snapshot
from service.domain.assembly import card_of
from service.domain.fleet import compile_fleet, format_support, layouts
from service.domain.market import NO_ACCELERATOR, closed, compile_market, open_offers
from service.domain.offer_terms import DEFAULT_TERMS, OfferTerms
from service.domain.quantization import computes_natively

TODAY = date(2026, 8, 1)


@pytest.mark.parametrize("most", [1, 2, 4, 7, 8, 16])
def test_layouts_stay_within_the_server(most: int) -> None:
    found = layouts(most)
    assert len(set(found)) == len(found)
    assert (1, 1, 1, 0) in found
    for tensor, pipeline, data, expert in found:
        assert tensor * pipeline * data <= most
        assert data == 1 or (tensor == 1 and expert), "ranks of their own come with experts spread"
    if most >= 8:
        assert {(8, 1, 1, 0), (8, 1, 1, 1), (1, 1, 8, 1), (4, 2, 1, 0), (2, 4, 1, 0)} <= set(found)


def test_rows_of_the_fleet_are_its_cards_in_order(snapshot: Snapshot) -> None:
    fleet = snapshot.fleet
    ids = [card.id for card in fleet.accelerators]
    assert ids == sorted(snapshot.accelerators)
    assert (np.diff(fleet.accelerator) >= 0).all()
    shuffled = compile_fleet(tuple(reversed(fleet.accelerators)), fleet.formats)
    for name in ("accelerator", "tensor", "pipeline", "usable_memory_bytes", "link_bytes_per_s"):
        assert (getattr(shuffled, name) == getattr(fleet, name)).all()
    for row in range(0, fleet.rows, 97):
        card = fleet.accelerators[fleet.accelerator[row]]
        one = card_of(card, snapshot.quantizations["fp8"])
        assert fleet.usable_memory_bytes[row] == one.usable_memory_bytes
        assert fleet.bandwidth_bytes_per_s[row] == one.bandwidth_bytes_per_s
        assert fleet.link_bytes_per_s[row] == one.link_bytes_per_s
        assert fleet.flops_per_s[row] == one.flops_per_s
        gpus = fleet.tensor[row] * fleet.pipeline[row] * fleet.data[row]
        assert gpus <= card.max_gpus_per_node
        assert fleet.index[card.id] == fleet.accelerator[row]


@pytest.mark.parametrize("name", ["bf16", "fp8", "awq-int4", "nvfp4"])
def test_formats_are_supported_as_for_one_card(snapshot: Snapshot, name: str) -> None:
    table, quantization = format_support(snapshot.fleet, name), snapshot.quantizations[name]
    for position, card in enumerate(snapshot.fleet.accelerators):
        assert bool(table.native[position]) is computes_natively(card, quantization)
        assert table.weight_flops_per_s[position] == card_of(card, quantization).weight_flops_per_s


def test_offers_lead_to_their_card_or_to_none(snapshot: Snapshot) -> None:
    market = snapshot.market
    assert [offer.id for offer in market.offers] == sorted(snapshot.offers)
    for position, offer in enumerate(market.offers):
        owner = int(market.accelerator[position])
        assert (owner == NO_ACCELERATOR) == (offer.gpu is None)
        assert market.price_usd_per_hour[position] == (offer.price_usd_per_hour or 0.0)
        assert market.storage_usd_per_gb_month[position] >= 0
        assert market.gpus[position] == offer.gpus


def test_open_and_refused_offers_are_all_offers(snapshot: Snapshot) -> None:
    market = snapshot.market
    for terms in (DEFAULT_TERMS, OfferTerms(terms=("spot",)), OfferTerms(allow_undated=True, regions=("EU",))):
        opened = open_offers(market, terms, TODAY)
        positions = set(opened.index.tolist())
        assert positions | opened.refusals.keys() == set(range(len(market.offers)))
        assert not positions & opened.refusals.keys()
        by_owner = [offer for mine in opened.by_accelerator.values() for offer in mine.tolist()]
        assert sorted(by_owner) == sorted(positions)
        for owner, mine in opened.by_accelerator.items():
            assert owner != NO_ACCELERATOR
            assert (market.accelerator[mine] == owner).all()
            assert (market.price_usd_per_hour[mine] > 0).all()


def test_a_share_of_a_card_is_no_whole_card(snapshot: Snapshot) -> None:
    opened = open_offers(snapshot.market, DEFAULT_TERMS, TODAY)
    whole = next(snapshot.market.offers[position] for position in opened.index.tolist())
    provider = snapshot.providers[whole.provider]
    assert closed(whole, provider, DEFAULT_TERMS, TODAY) is None
    half = msgspec.structs.replace(whole, gpu_fraction=0.5)
    refused = closed(half, provider, DEFAULT_TERMS, TODAY)
    assert refused is not None
    assert refused.code == "fractional_card"
    market = compile_market([half], snapshot.providers, snapshot.fleet)
    assert open_offers(market, DEFAULT_TERMS, TODAY).index.size == 0
