"""Which prices are used: dated and proven ones, with their age; and what becomes of providers without any."""

from datetime import date
from typing import TYPE_CHECKING, Any

import pytest

from service.catalog.snapshot import Snapshot

if TYPE_CHECKING:
    from conftest import Api

BODY: dict[str, Any] = {
    "model": "Qwen/Qwen2.5-7B-Instruct",
    "traffic": {"requests_per_second": 1, "input_tokens": 500, "output_tokens": 100},
}
UNPROVEN = {"raksmart": "quote_required", "dedixlab": "unproven", "cherry-servers": "gpu_not_proven"}
OPEN = {
    "terms": ["on_demand", "monthly", "spot", "reserved", "prepaid", "serverless", "marketplace_bid"],
    "max_min_term_months": 60,
    "min_reliability": 0,
    "allow_unverified": True,
    "allow_undated": True,
}


def offers_of(answer: dict[str, Any]) -> set[str]:
    options = {option["offer"]["id"] for option in answer["recommendations"]}
    points = {point["offer_id"] for point in answer["pareto"]}
    return options | points | {row["option"]["offer_id"] for row in answer["by_provider"] if row["option"]}


@pytest.mark.parametrize("constraints", [None, OPEN])
def test_providers_without_proof_are_listed_and_never_priced(api: "Api", constraints: dict[str, Any] | None) -> None:
    answer = api.ask("recommendations", {**BODY, "limit": 50, "constraints": constraints})
    rows = {row["provider"]: row for row in answer["by_provider"]}
    for provider, reason in UNPROVEN.items():
        row = rows[provider]
        assert (row["option"], row["best_rank"], row["reason_code"]) == (None, None, reason)
        assert row["verify"], "there is something to ask it"
    assert not {offer.partition("/")[0] for offer in offers_of(answer)} & UNPROVEN.keys()


def test_asked_for_alone_they_give_no_option(api: "Api") -> None:
    answer = api.ask("recommendations", {**BODY, "constraints": {**OPEN, "providers": list(UNPROVEN)}})
    assert answer["recommendations"] == answer["pareto"] == []
    codes = {row["provider"]: row["reason_code"] for row in answer["by_provider"]}
    assert {provider: codes[provider] for provider in UNPROVEN} == UNPROVEN


def test_all_seven_named_providers_are_there(api: "Api") -> None:
    listed = {row["provider"] for row in api.ask("recommendations", BODY)["by_provider"]}
    assert {"runpod", "vast-ai", "gpu-mart", "vultr", *UNPROVEN} <= listed
    assert listed == {provider["id"] for provider in api.get("/v1/providers", limit=500)["items"]}


def test_undated_prices_are_used_only_when_allowed(api: "Api", snapshot: Snapshot) -> None:
    undated = {offer.id for offer in snapshot.offers.values() if offer.as_of is None}
    assert len(undated) >= 20
    by_default = api.ask("recommendations", {**BODY, "limit": 50})
    assert not offers_of(by_default) & undated
    assert all(option["offer"]["as_of"] is not None for option in by_default["recommendations"])
    allowed = api.ask("recommendations", {**BODY, "limit": 50, "constraints": OPEN})
    used = offers_of(allowed) & undated
    assert used
    for option in allowed["recommendations"]:
        if option["offer"]["id"] in undated:
            assert option["offer"]["age_days"] is None
            assert option["offer"]["stale"] is True


def test_prices_carry_their_age_and_stale_ones_are_a_risk(api: "Api", snapshot: Snapshot) -> None:
    seen = set()
    for day in ("2026-08-01", "2026-12-31"):
        answer = api.ask("recommendations", {**BODY, "limit": 50, "evaluated_on": day})
        for option in answer["recommendations"]:
            offer = option["offer"]
            age = max((date.fromisoformat(day) - date.fromisoformat(offer["as_of"])).days, 0)
            assert offer["age_days"] == age
            provider = snapshot.providers[offer["provider"]]
            assert offer["stale"] is (age > provider.stale_after_days)
            named = any(offer["as_of"] in risk for risk in option["risks"])
            assert named is offer["stale"], option["risks"]
            seen.add(offer["stale"])
    assert seen == {True, False}


def test_default_terms_leave_out_spot_serverless_and_commitments(api: "Api") -> None:
    answer = api.ask("recommendations", {**BODY, "limit": 50})
    for option in answer["recommendations"]:
        assert option["offer"]["term"] in {"on_demand", "monthly"}
        assert option["offer"]["min_term_months"] <= 1
        assert option["offer"]["tenancy"] != "serverless"
    cheaper = api.ask("recommendations", {**BODY, "constraints": OPEN})
    assert cheaper["recommendations"][0]["monthly_usd"] < answer["recommendations"][0]["monthly_usd"]


def test_prices_are_those_of_the_catalog(api: "Api", snapshot: Snapshot) -> None:
    for option in api.ask("recommendations", {**BODY, "limit": 50})["recommendations"]:
        offer, listed = option["offer"], snapshot.offers[option["offer"]["id"]]
        assert offer["price_usd_per_hour"] == listed.price_usd_per_hour
        assert option["gpu"] == listed.gpu
        assert offer["provider"] == listed.provider
        compute = offer["price_usd_per_hour"] * option["instances"] * 730
        setup = listed.setup_fee_usd * option["instances"] / 12
        assert option["cost"]["monthly_usd"]["compute"] == pytest.approx(compute + setup)


def test_what_is_unknown_of_a_provider_is_asked(api: "Api", snapshot: Snapshot) -> None:
    for option in api.ask("recommendations", {**BODY, "limit": 30})["recommendations"]:
        provider = snapshot.providers[option["offer"]["provider"]]
        if any(attribute.value == "unknown" for attribute in provider.attributes.values()):
            assert option["verify"], provider.id
        if option["offer"]["availability"] != "in_stock":
            assert any(provider.name in risk or provider.id in risk for risk in option["risks"])


def test_an_offer_without_a_price_cannot_be_projected(api: "Api", snapshot: Snapshot) -> None:
    unpriced = next(offer.id for offer in snapshot.offers.values() if offer.price_usd_per_hour is None)
    response = api.post("cost-projections", {"offer": unpriced})
    assert response.status_code == 422
    assert response.json()["errors"][0]["pointer"] == "/offer"
    priced = next(offer for offer in snapshot.offers.values() if offer.price_usd_per_hour is not None)
    answer = api.ask("cost-projections", {"offer": priced.id})
    assert answer["monthly_usd"]["compute"] == pytest.approx((priced.price_usd_per_hour or 0) * 730)
