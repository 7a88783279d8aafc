"""What is unknown becomes a question, in a fixed order, with a sentence for each."""

import msgspec
import pytest

from service.domain.message import Message
from service.domain.offer import PROVIDER_ATTRIBUTES, Attribute, Offer, Provider
from service.domain.provider_questions import offer_questions, questions
from service.text.catalogs import CATALOGS

OFFER = Offer(
    id="seller/a100/any/on_demand",
    provider="seller",
    instance_type="A100",
    gpu="a100-pcie-80gb",
    gpu_candidates=("a100-pcie-80gb", "a100-sxm-80gb"),
    gpus=1,
    price_usd_per_hour=2.0,
    tenancy="dedicated",
    term="on_demand",
    as_of="2026-11-01",
    evidence="secondary_article",
    source="https://example.com",
    flags=("gpu_ambiguous", "per_gpu_quote", "size_not_quoted"),
)


def codes(asked: tuple[Message, ...]) -> list[str]:
    """Codes of questions that all render in English."""
    for message in asked:
        assert CATALOGS["en"][message.code].format(**message.params)
    return [message.code for message in asked]


def seller(status: str = "priced", **attributes: Attribute) -> Provider:
    facts = {"id": "seller", "name": "Seller", "status": status, "attributes": attributes}
    return msgspec.convert(facts, Provider)


def test_each_unknown_attribute_is_asked_in_order() -> None:
    known = Attribute("Dedicated", "official_docs", None, "https://example.com")
    asked = codes(questions(seller(isolation=known, backup=Attribute())))
    assert asked == [f"ask_{name}" for name in PROVIDER_ATTRIBUTES if name != "isolation"]


@pytest.mark.parametrize(
    ("status", "first"),
    [("quote_required", "ask_quote"), ("unproven", "ask_gpu_proof"), ("gpu_not_proven", "ask_gpu_of_plan")],
)
def test_a_provider_without_proof_is_asked_for_it_first(status: str, first: str) -> None:
    assert codes(questions(seller(status)))[0] == first


def test_what_an_offer_leaves_open_is_asked_once() -> None:
    assert codes(offer_questions(OFFER, seller())) == [
        "ask_stock",
        "ask_price_today",
        "ask_gpu_variant",
        "ask_sizes",
        "ask_host_configuration",
        "ask_network",
    ]


def test_what_a_live_offer_tells_is_not_asked() -> None:
    told = msgspec.structs.replace(
        OFFER, flags=(), vcpu=16.0, ram_gb=128.0, network_note="10 Gbps", availability="in_stock", evidence="live_api"
    )
    assert offer_questions(told, seller()) == ()


def test_region_and_missing_date_change_the_question() -> None:
    asked = codes(offer_questions(msgspec.structs.replace(OFFER, region="FIN-01", as_of=None), seller()))
    assert asked[:2] == ["ask_stock_in_region", "ask_price_undated"]
    unpriced = msgspec.structs.replace(OFFER, price_usd_per_hour=None)
    assert not {"ask_price_today", "ask_price_undated"} & set(codes(offer_questions(unpriced, seller())))
