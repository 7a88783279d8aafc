"""What an objective ranks by, and the reasons and risks that an option names."""

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from service.domain.message import Message
from service.text import render

if TYPE_CHECKING:
    from conftest import Api

BODY: dict[str, Any] = {
    "model": "Qwen/Qwen2.5-7B-Instruct",
    "traffic": {"requests_per_second": 6, "input_tokens": 800, "output_tokens": 200},
    "limit": 12,
}


def ranked(api: "Api", **more: object) -> list[dict[str, Any]]:
    options: list[dict[str, Any]] = api.ask("recommendations", {**BODY, **more})["recommendations"]
    assert len(options) >= 3
    return options


def test_min_latency_is_fastest_first(api: "Api") -> None:
    seconds = [
        option["performance"]["ttft_ms"]["p95"] + 200 * option["performance"]["tpot_ms"]["p95"]
        for option in ranked(api, objective="min_latency")
    ]
    assert seconds == sorted(seconds)
    cheapest = ranked(api)[0]
    assert seconds[0] <= cheapest["performance"]["ttft_ms"]["p95"] + 200 * cheapest["performance"]["tpot_ms"]["p95"]


def test_throughput_per_dollar_is_most_first(api: "Api") -> None:
    options = ranked(api, objective="max_throughput_per_usd")
    per_dollar = [
        option["replay"]["cost_projection"]["throughput"]["output_tokens_per_hour"] / option["monthly_usd"]
        for option in options
    ]
    assert per_dollar == sorted(per_dollar, reverse=True)
    first = ranked(api)[0]
    served = first["replay"]["cost_projection"]["throughput"]["output_tokens_per_hour"]
    assert per_dollar[0] >= served / first["monthly_usd"]


def test_least_regret_is_never_far_from_the_cheapest_at_any_load(api: "Api") -> None:
    """The first option's worst excess, recomputed by asking at half and twice the load, is at most the cheapest one's."""
    cheapest, steady = ranked(api)[0], ranked(api, objective="least_regret")[0]
    if cheapest["offer"]["id"] == steady["offer"]["id"]:
        return
    worst = {cheapest["offer"]["id"]: 0.0, steady["offer"]["id"]: 0.0}
    for factor in (0.5, 1.0, 2.0):
        traffic = {**BODY["traffic"], "requests_per_second": 6 * factor}
        best = api.ask("recommendations", {**BODY, "traffic": traffic, "limit": 1})["recommendations"][0]["monthly_usd"]
        for option in (cheapest, steady):
            constraints = {"gpus": [option["gpu"]], "providers": [option["offer"]["provider"]]}
            own = api.ask("recommendations", {**BODY, "traffic": traffic, "constraints": constraints})
            excess = own["recommendations"][0]["monthly_usd"] - best
            worst[option["offer"]["id"]] = max(worst[option["offer"]["id"]], excess)
    assert worst[steady["offer"]["id"]] <= worst[cheapest["offer"]["id"]] * 1.01


@pytest.mark.parametrize("objective", ["min_cost", "min_latency", "max_throughput_per_usd", "least_regret"])
def test_losers_are_told_by_the_objective(api: "Api", objective: str) -> None:
    lost = {
        "min_cost": "more_expensive",
        "min_latency": "slower",
        "max_throughput_per_usd": "less_throughput_per_usd",
        "least_regret": "more_regret",
    }
    answer = api.ask("recommendations", {**BODY, "objective": objective, "limit": 3})
    codes = {row["reason_code"] for row in answer["rejected"]}
    assert codes & set(lost.values()) == {lost[objective]}
    for option in answer["recommendations"]:
        assert option["reasons"]
        assert not any("{" in text or "_" in text.split()[0] for text in (*option["reasons"], *option["risks"]))


def test_options_are_alternatives_of_provider_and_card(api: "Api") -> None:
    options = ranked(api, limit=50)
    pairs = [(option["offer"]["provider"], option["gpu"]) for option in options]
    assert len(set(pairs)) == len(pairs)


def risks(option: dict[str, Any]) -> list[str]:
    found: list[str] = option["risks"]
    return found


def test_risks_follow_from_the_option(api: "Api") -> None:
    no_spare = render(Message("risk_no_spare"), "en")
    assert all(no_spare in risks(option) for option in ranked(api, spare_replicas=0))
    assert not any(no_spare in risks(option) for option in ranked(api))
    assert not any(no_spare in risks(option) for option in ranked(api, spare_replicas=0, kind="batch"))
    pipelined = render(Message("risk_pipeline"), "en")
    marketplace = render(Message("risk_marketplace"), "en")
    for option in ranked(api, limit=50, constraints={"allow_unverified": True, "min_reliability": 0}):
        assert (pipelined in risks(option)) is (option["parallelism"]["pipeline"] > 1)
        assert (marketplace in risks(option)) is (option["offer"]["tenancy"] == "marketplace")
        if option["idle_gpus"]:
            idle = Message("risk_idle_gpus", {"gpus": option["idle_gpus"], "instances": option["instances"]})
            assert render(idle, "en") in risks(option)


def test_the_first_reason_names_its_rank_and_the_next_is_told(api: "Api") -> None:
    options = ranked(api)
    for option, after in pairwise(options):
        told = render(Message("reason_next_option", {"next_usd": round(after["monthly_usd"], 2)}), "en")
        assert told in option["reasons"]


def test_past_the_load_named_the_first_option_needs_more(api: "Api") -> None:
    answer = api.ask("recommendations", {**BODY, "headroom": 0.2})
    first = answer["recommendations"][0]
    [row] = [one for one in answer["revisit_when"] if one["field"] == "/traffic/requests_per_second"]
    assert row["above"] >= 6
    same = {"gpus": [first["gpu"]], "providers": [first["offer"]["provider"]]}

    def replicas(rate: float) -> int:
        traffic = {**BODY["traffic"], "requests_per_second": rate}
        body = {
            **BODY,
            "headroom": 0.2,
            "weights": first["weights"],
            "traffic": traffic,
            "constraints": same,
            "limit": 1,
        }
        option = api.ask("recommendations", body)["recommendations"][0]
        assert option["parallelism"] == first["parallelism"]
        return int(option["replicas"])

    assert replicas(row["above"] * 0.999) == first["replicas"]
    assert replicas(row["above"] * 1.001) > first["replicas"]


def test_past_the_price_named_the_second_option_is_cheaper(api: "Api") -> None:
    answer = api.ask("recommendations", BODY)
    first, second = answer["recommendations"][:2]
    [row] = [one for one in answer["revisit_when"] if one["field"] == "/offer/price_usd_per_hour"]
    assert row["above"] >= first["offer"]["price_usd_per_hour"]
    at_that_price = {**first["replay"]["cost_projection"], "offer": None, "price_usd_per_hour": row["above"]}
    total = api.ask("cost-projections", at_that_price)["monthly_usd"]["total"]
    assert total == pytest.approx(second["monthly_usd"], rel=0.02)
