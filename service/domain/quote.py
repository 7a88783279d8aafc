"""From the price a seller quotes to US dollars per hour of the whole instance."""

from typing import Literal

from service.domain.units import HOURS_PER_MONTH, SECONDS_PER_HOUR

QuoteUnit = Literal["hour", "month", "gpu_hour", "gpu_month", "gpu_second"]
"""What a quoted price pays for: the whole instance, or one of its accelerators, for that time."""

_DECIMALS = 6
"""Prices per hour are kept to a millionth of a dollar, the finest step seen in price files."""


def usd_per_hour(
    price: float,
    unit: QuoteUnit,
    *,
    gpus: int = 1,
    hours_per_month: float = HOURS_PER_MONTH,
    usd_per_currency_unit: float = 1.0,
) -> float:
    """US dollars per hour of an instance with ``gpus`` accelerators.

    Sellers disagree on the hours of a month (672, 720, 730, 744), so a monthly price states its divisor.
    """
    whole = price * usd_per_currency_unit
    if unit.startswith("gpu_"):
        whole *= gpus
    if unit.endswith("month"):
        whole /= hours_per_month
    elif unit.endswith("second"):
        whole *= SECONDS_PER_HOUR
    return round(whole, _DECIMALS)
