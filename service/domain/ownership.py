"""Hardware that one owns: what a month of it costs (annuity, power, hosting, people)."""

import math
from typing import Annotated

import msgspec
from msgspec import Meta

MonthlyFee = Annotated[float, Meta(ge=0, le=1e9)]
_MONTHS_PER_YEAR = 12.0
_FREE_CAPITAL = 1e-9
"""Monthly interest below which an annuity is the straight line."""


class Owned(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Hardware that could be bought for the same work; every figure is for all of it together."""

    price_usd: Annotated[float, Meta(ge=0, le=1e10, description="Purchase price.")]
    life_months: Annotated[float, Meta(ge=1, le=240, description="Months of use.")] = 36.0
    residual_share: Annotated[
        float, Meta(ge=0, le=1, description="Share of the price that a sale at the end of life brings.")
    ] = 0.0
    capital_rate: Annotated[float, Meta(ge=0, le=1, description="Cost of capital per year (0.08: 8 %).")] = 0.0
    power_w: Annotated[float, Meta(ge=0, le=1e8, description="Mean electrical power while running, watts.")] = 0.0
    pue: Annotated[
        float,
        Meta(ge=1, le=5, description="Power usage effectiveness: power of the building over that of the machines."),
    ] = 1.0
    usd_per_kwh: Annotated[float, Meta(ge=0, le=100, description="Price of electricity.")] = 0.0
    hosting_usd_per_month: MonthlyFee = 0.0
    maintenance_usd_per_month: MonthlyFee = 0.0
    staff_usd_per_month: MonthlyFee = 0.0


class OwnedMonthlyUsd(msgspec.Struct, frozen=True, kw_only=True):
    """A month of owned hardware: `capital` is the annuity of the price less what the sale at the end brings."""

    total: float
    capital: float
    power: float
    hosting: float
    maintenance: float
    staff: float

    @property
    def running(self) -> float:
        """All but capital."""
        return self.power + self.hosting + self.maintenance + self.staff


def owned_monthly_usd(owned: Owned, powered_hours: float) -> OwnedMonthlyUsd:
    """Cost of a month in which the hardware is powered for ``powered_hours``."""
    capital = _annuity_usd(owned)
    power = owned.power_w / 1000.0 * owned.pue * owned.usd_per_kwh * powered_hours
    parts = (capital, power, owned.hosting_usd_per_month, owned.maintenance_usd_per_month, owned.staff_usd_per_month)
    return OwnedMonthlyUsd(
        total=sum(parts), capital=capital, power=power, hosting=parts[2], maintenance=parts[3], staff=parts[4]
    )


def payback_months(owned: Owned, saved_usd_per_month: float) -> float | None:
    """Months until what is saved each month has paid the price back, with interest; None if it never does.

    n = -ln(1 - P i / s) / ln(1 + i); P / s without interest. The sale at the end is not counted: it comes after.
    """
    interest = owned.capital_rate / _MONTHS_PER_YEAR
    if owned.price_usd == 0.0:
        return 0.0
    # A saving that would take a million years is none; the bound also keeps the quotient finite.
    if saved_usd_per_month <= owned.price_usd * max(interest, 1e-7):
        return None
    if interest < _FREE_CAPITAL:
        return owned.price_usd / saved_usd_per_month
    return -math.log1p(-owned.price_usd * interest / saved_usd_per_month) / math.log1p(interest)


def _annuity_usd(owned: Owned) -> float:
    """Equal monthly payments whose present value is the price less the discounted residual value."""
    interest = owned.capital_rate / _MONTHS_PER_YEAR
    residual = owned.price_usd * owned.residual_share
    if interest < _FREE_CAPITAL:
        return (owned.price_usd - residual) / owned.life_months
    discount = math.exp(-owned.life_months * math.log1p(interest))
    return (owned.price_usd - residual * discount) * interest / -math.expm1(-owned.life_months * math.log1p(interest))
