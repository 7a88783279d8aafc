"""A change that ``would_fit_if`` names does what it says: asked again with it, the accelerator is past the bound it broke."""

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from conftest import Api

LARGE: dict[str, Any] = {
    "model": "meta-llama/Llama-3.3-70B-Instruct",
    "traffic": {"requests_per_second": 2, "input_tokens": 3000, "output_tokens": 200},
}
SMALL: dict[str, Any] = {
    "model": "Qwen/Qwen2.5-7B-Instruct",
    "traffic": {"requests_per_second": 8, "input_tokens": 800, "output_tokens": 150},
}
STRICT = {"ttft_ms": {"p95": 150}, "tpot_ms": {"p95": 10}, "e2e_ms": {"p95": 1500}}
CASES: dict[str, dict[str, Any]] = {
    "memory": {**LARGE, "weights": "bf16"},
    "targets": {**LARGE, "weights": "fp8", "targets": STRICT},
    "p50": {**SMALL, "targets": {"ttft_ms": {"p50": 60}, "tpot_ms": {"mean": 12}}},
    "budget": {**SMALL, "constraints": {"max_monthly_usd": 900, "max_gpus": 2}},
    "regions": {**SMALL, "constraints": {"regions": ["DE"], "terms": ["on_demand"]}},
    "providers": {**SMALL, "constraints": {"providers": ["aws"], "max_age_days": 20}},
    "closed": {**SMALL, "traffic": {"concurrent_requests": 500, "input_tokens": 800, "output_tokens": 150}},
    "batch": {
        **LARGE,
        "traffic": {"batch": {"requests": 1e5, "deadline_s": 3600}, "input_tokens": 900, "output_tokens": 99},
    },
}


def merged(body: dict[str, Any], change: dict[str, Any]) -> dict[str, Any]:
    """The body with the members of a change, those of objects one by one."""
    return body | {
        name: merged(body.get(name) or {}, value) if isinstance(value, dict) else value
        for name, value in change.items()
    }


@pytest.mark.parametrize("name", CASES)
def test_the_change_lifts_the_bound(api: "Api", name: str) -> None:
    body = {**CASES[name], "limit": 1}
    asked: dict[str, dict[str, Any]] = {}
    tried = 0
    for row in api.ask("recommendations", body)["rejected"]:
        change = row["would_fit_if"]
        if change is None or "offer" in change:
            continue
        tried += 1
        changed = merged(body, change)
        key = repr(change)
        if key not in asked:
            asked[key] = api.ask("recommendations", changed)
        left = [again for again in asked[key]["rejected"] if again["gpu"] == row["gpu"]]
        assert [again["reason_code"] for again in left] != [row["reason_code"]], (row, change, left)
    assert tried >= 1


@pytest.mark.parametrize("name", CASES)
def test_a_bound_that_was_broken_says_by_how_much(api: "Api", name: str) -> None:
    for row in api.ask("recommendations", CASES[name])["rejected"]:
        limit, value = row["detail"]["limit"], row["detail"]["value"]
        if row["reason_code"] in {
            "weights_exceed_memory",
            "no_room_for_kv",
            "context_does_not_fit",
            "more_expensive",
        } | {"ttft_too_high", "tpot_too_high", "e2e_too_high", "too_many_gpus", "over_budget", "needs_multi_node"}:
            assert value >= limit > 0, row


def test_a_dearer_offer_would_do_at_the_price_named(api: "Api") -> None:
    answer = api.ask("recommendations", {**SMALL, "limit": 3})
    last = answer["recommendations"][-1]["monthly_usd"]
    rows = [row for row in answer["rejected"] if row["reason_code"] == "more_expensive"]
    assert len(rows) >= 5
    for row in rows:
        offer = row["would_fit_if"]["offer"]
        listed = api.get(f"/v1/offers/{offer['id']}")
        assert listed["gpu"] == row["gpu"]
        assert 0 < offer["price_usd_per_hour"] <= listed["price_usd_per_hour"]
        assert row["detail"]["limit"] == pytest.approx(last, rel=1e-5)


def test_refused_offers_are_listed_on_request(api: "Api") -> None:
    without = api.ask("recommendations", SMALL)
    answer = api.ask("recommendations", SMALL, rejected="offers")
    offers = [row for row in answer["rejected"] if row.get("offer_id")]
    assert answer["rejected"][: len(without["rejected"])] == without["rejected"]
    assert len(offers) >= 300
    assert len({row["offer_id"] for row in offers}) == len(offers)
    codes = {row["reason_code"] for row in offers}
    assert {"undated", "spot_not_allowed", "min_term_too_long", "serverless_not_allowed"} <= codes
    recommended = {option["offer"]["id"] for option in answer["recommendations"]}
    assert not recommended & {row["offer_id"] for row in offers}
    for row in offers[::37]:
        if row["would_fit_if"] is not None:
            changed = api.ask("recommendations", merged(SMALL, row["would_fit_if"]), rejected="offers")
            assert row["offer_id"] not in {again.get("offer_id") for again in changed["rejected"]}, row
