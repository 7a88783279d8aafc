"""Laws of cost: units, monotony, and views of one bill that never contradict each other."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.domain.cost import CostProjection, CostProjectionRequest, Throughput
from service.domain.cost_projection import cost_projection
from service.domain.ownership import Owned, owned_monthly_usd, payback_months
from service.domain.unit_cost import monthly_compute_usd, usd_per_million

LAW = settings(max_examples=100, deadline=None, derandomize=True)

prices = st.floats(0.01, 1000.0)
rates = st.floats(1.0, 1e12)
shares = st.floats(0.01, 1.0)


def projection(price: float, throughput: Throughput, **members: float) -> CostProjection:
    return cost_projection(CostProjectionRequest(price_usd_per_hour=price, throughput=throughput, **members), price)  # type: ignore[arg-type]


@st.composite
def throughputs(draw: st.DrawFn) -> Throughput:
    return Throughput(
        output_tokens_per_hour=draw(rates),
        input_tokens_per_hour=draw(rates),
        requests_per_hour=draw(rates),
        prefix_cache_hit_rate=draw(st.floats(0.0, 1.0)),
    )


@LAW
@given(prices, throughputs(), shares)
def test_every_view_is_of_one_bill(price: float, throughput: Throughput, utilization: float) -> None:
    cost = projection(price, throughput, utilization=utilization, hours_per_month=500.0)
    month = cost.monthly_usd
    assert sum((month.compute, month.storage, month.bandwidth, month.backup, month.platform)) + (
        month.engineering + month.failure_reserve
    ) == pytest.approx(month.total)
    hours = 500.0 * utilization
    inputs, outputs = (throughput.input_tokens_per_hour or 0.0) * hours, throughput.output_tokens_per_hour * hours
    hits = throughput.prefix_cache_hit_rate
    assert cost.usd_per_million_output_tokens is not None
    assert cost.usd_per_million_tokens is not None
    assert cost.usd_per_request is not None
    assert cost.token_prices is not None
    assert cost.usd_per_million_output_tokens * outputs / 1e6 == pytest.approx(month.total)
    assert cost.usd_per_million_tokens * (inputs + outputs) / 1e6 == pytest.approx(month.total)
    assert cost.usd_per_request * (throughput.requests_per_hour or 0.0) * hours == pytest.approx(month.total)
    listed = cost.token_prices
    revenue = inputs * (1.0 - hits) * listed.usd_per_million_input_tokens
    revenue += inputs * hits * listed.usd_per_million_cached_input_tokens
    revenue += outputs * listed.usd_per_million_output_tokens
    assert revenue / 1e6 == pytest.approx(month.total)
    assert listed.usd_per_million_output_tokens <= cost.usd_per_million_output_tokens * (1.0 + 1e-9)


@LAW
@given(prices, throughputs(), st.floats(1.0, 700.0))
def test_without_fixed_costs_the_hours_of_a_month_do_not_change_a_tokens_cost(
    price: float, throughput: Throughput, hours: float
) -> None:
    some, all_of_it = projection(price, throughput, hours_per_month=hours), projection(price, throughput)
    assert some.usd_per_million_output_tokens == pytest.approx(all_of_it.usd_per_million_output_tokens)


@LAW
@given(prices, prices, throughputs(), shares, shares)
def test_dearer_and_less_used_cost_more(p: float, q: float, throughput: Throughput, u: float, v: float) -> None:
    low, high = sorted((p, q))
    cheap, dear = projection(low, throughput), projection(high, throughput)
    assert (cheap.usd_per_request or 0.0) <= (dear.usd_per_request or 0.0)
    idle, busy = (projection(p, throughput, utilization=share) for share in sorted((u, v)))
    assert (idle.usd_per_request or 0.0) >= (busy.usd_per_request or 0.0) * (1.0 - 1e-12)


@LAW
@given(prices, throughputs())
def test_cost_at_a_tenth_of_the_load_is_ten_times_that_at_full_load(price: float, throughput: Throughput) -> None:
    rows = projection(price, throughput).at_utilization
    assert rows[0].usd_per_request == pytest.approx(10.0 * (rows[-1].usd_per_request or 0.0))


@LAW
@given(st.floats(1.0, 1e6), st.floats(1.0, 240.0), st.floats(0.0, 1.0), st.floats(0.0, 1.0))
def test_interest_and_less_residual_value_raise_the_annuity(
    price: float, life: float, residual: float, rate: float
) -> None:
    plain = owned_monthly_usd(Owned(price_usd=price, life_months=life, residual_share=residual), 0.0).capital
    dear = owned_monthly_usd(
        Owned(price_usd=price, life_months=life, residual_share=residual, capital_rate=rate), 0.0
    ).capital
    worn = owned_monthly_usd(Owned(price_usd=price, life_months=life, capital_rate=rate), 0.0).capital
    assert plain <= dear * (1.0 + 1e-9) + 1e-9
    assert dear <= worn * (1.0 + 1e-9)


@LAW
@given(st.floats(1.0, 1e6), st.floats(0.0, 0.3), st.floats(1.0, 1e5), st.floats(1.0, 10.0))
def test_larger_savings_pay_back_sooner(price: float, rate: float, saved: float, factor: float) -> None:
    owned = Owned(price_usd=price, capital_rate=rate)
    slow, fast = payback_months(owned, saved), payback_months(owned, saved * factor)
    if slow is not None:
        assert fast is not None
        assert fast <= slow * (1.0 + 1e-9)


@LAW
@given(st.integers(0, 2**32 - 1))
def test_floats_and_arrays_agree_to_the_bit(seed: int) -> None:
    rng = np.random.default_rng(seed)
    price, instances, tokens = rng.uniform(0, 100, 9), rng.integers(1, 50, 9).astype(float), rng.uniform(0, 1e9, 9)
    tokens[0] = 0.0
    month = monthly_compute_usd(price, instances, 730.0)
    unit = usd_per_million(month, tokens)
    for i in range(9):
        alone = monthly_compute_usd(float(price[i]), float(instances[i]), 730.0)
        assert alone == month[i]
        assert usd_per_million(alone, float(tokens[i])) == unit[i]
