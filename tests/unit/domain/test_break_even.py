"""Self-hosting against a managed API, renting against owning."""

import pytest

from service.domain.break_even import BreakEven, ManagedApi, Volume, against_managed_api, against_owned_hardware
from service.domain.ownership import Owned, owned_monthly_usd, payback_months
from service.text.rendering import render

API = ManagedApi(usd_per_million_input_tokens=0.5, usd_per_million_output_tokens=2.0)
FULL = Volume(fresh_input_tokens=1e9, cached_input_tokens=0.0, output_tokens=1e8, requests=1e6)


def sentence(result: BreakEven) -> str:
    text = render(result.why, "en")
    assert text != result.why.code
    return text


def test_break_even_is_the_volume_at_which_both_bills_are_equal() -> None:
    """Full load would cost 500 + 200 = 700 USD at the API, so a deployment of 350 USD is cheaper from half load on."""
    result = against_managed_api(API, 350.0, FULL.scaled(0.2), FULL)
    assert result.reached
    assert result.utilization == pytest.approx(0.5)
    assert result.output_tokens_per_month == pytest.approx(5e7)
    assert result.requests_per_month == pytest.approx(5e5)
    assert result.alternative_monthly_usd == pytest.approx(140.0)
    assert "50,000,000" in sentence(result)


def test_a_deployment_too_small_for_its_price_never_breaks_even() -> None:
    result = against_managed_api(API, 1400.0, FULL, FULL)
    assert not result.reached
    assert result.utilization == pytest.approx(2.0)
    assert "200.0 %" in sentence(result)


def test_cached_input_has_its_own_price() -> None:
    cached = Volume(fresh_input_tokens=0.0, cached_input_tokens=1e9, output_tokens=1e8, requests=None)
    discounted = ManagedApi(
        usd_per_million_input_tokens=0.5, usd_per_million_cached_input_tokens=0.05, usd_per_million_output_tokens=2.0
    )
    assert against_managed_api(API, 1.0, cached, cached).alternative_monthly_usd == pytest.approx(700.0)
    assert against_managed_api(discounted, 1.0, cached, cached).alternative_monthly_usd == pytest.approx(250.0)


def test_a_free_api_is_never_beaten() -> None:
    free = ManagedApi(usd_per_million_input_tokens=0.0, usd_per_million_output_tokens=0.0)
    result = against_managed_api(free, 10.0, FULL, FULL)
    assert not result.reached
    assert result.output_tokens_per_month is None
    sentence(result)


def test_without_throughput_there_is_no_volume() -> None:
    result = against_managed_api(API, 10.0, None, None)
    assert (result.reached, result.alternative_monthly_usd, result.utilization) == (False, None, None)
    sentence(result)


def test_owned_hardware_by_the_straight_line() -> None:
    owned = Owned(
        price_usd=36_000.0,
        life_months=36.0,
        residual_share=0.25,
        power_w=1000.0,
        pue=1.5,
        usd_per_kwh=0.1,
        hosting_usd_per_month=40.0,
        maintenance_usd_per_month=10.0,
        staff_usd_per_month=100.0,
    )
    month = owned_monthly_usd(owned, 730.0)
    assert month.capital == pytest.approx(750.0)
    assert month.power == pytest.approx(109.5)
    assert month.total == pytest.approx(750 + 109.5 + 150)
    assert month.running == pytest.approx(259.5)


def test_an_annuity_pays_back_price_and_interest() -> None:
    """Payments less interest on what is owed leave the residual value at the end."""
    owned = Owned(price_usd=10_000.0, life_months=24.0, residual_share=0.2, capital_rate=0.12)
    payment = owned_monthly_usd(owned, 0.0).capital
    owed = 10_000.0
    for _ in range(24):
        owed = owed * 1.01 - payment
    assert owed == pytest.approx(2000.0)


def test_payback_without_and_with_interest() -> None:
    assert payback_months(Owned(price_usd=1200.0), 100.0) == pytest.approx(12.0)
    months = payback_months(Owned(price_usd=1200.0, capital_rate=0.12), 100.0)
    assert months is not None
    owed = 1200.0 * 1.01**months
    saved = 100.0 * (1.01**months - 1.0) / 0.01
    assert owed == pytest.approx(saved)


def test_owning_pays_back_within_after_or_never() -> None:
    owned = Owned(price_usd=3600.0, life_months=36.0, hosting_usd_per_month=50.0)
    within = against_owned_hardware(owned, 250.0, 730.0)
    assert (within.reached, within.months) == (True, pytest.approx(18.0))
    after = against_owned_hardware(owned, 110.0, 730.0)
    assert (after.reached, after.months) == (False, pytest.approx(60.0))
    never = against_owned_hardware(owned, 40.0, 730.0)
    assert (never.reached, never.months) == (False, None)
    assert len({sentence(result) for result in (within, after, never)}) == 3


def test_savings_that_do_not_pay_the_interest_never_pay_back() -> None:
    assert payback_months(Owned(price_usd=12_000.0, capital_rate=0.1), 99.0) is None


def test_a_gift_pays_back_at_once() -> None:
    assert payback_months(Owned(price_usd=0.0), -5.0) == 0.0
