"""Quotes in every unit and month length become dollars per hour of the whole instance."""

import pytest

from service.domain.quote import QuoteUnit, usd_per_hour


@pytest.mark.parametrize(
    ("price", "unit", "gpus", "hours_per_month", "rate", "expected"),
    [
        (2.5, "hour", 8, 730.0, 1.0, 2.5),  # the whole instance: the number of cards changes nothing
        (730.0, "month", 1, 730.0, 1.0, 1.0),
        (2099.0, "month", 1, 730.0, 1.0, 2.875342),
        (672.0, "month", 8, 672.0, 1.0, 1.0),  # Vultr bare metal
        (11773.44, "month", 8, 672.0, 1.0, 17.52),  # its MI300X plan: 672 x hourly
        (1750.0, "month", 1, 730.0, 1.0, 2.39726),  # Vultr GPU plan
        (720.0, "month", 1, 720.0, 1.0, 1.0),
        (17796.48, "month", 8, 744.0, 1.0, 23.92),  # DigitalOcean: 744 x hourly
        (6.69, "gpu_hour", 8, 730.0, 1.0, 53.52),  # Lambda quotes per GPU-hour
        (730.0, "gpu_month", 4, 730.0, 1.0, 4.0),
        (0.00116, "gpu_second", 1, 730.0, 1.0, 4.176),  # RunPod serverless
        (214.0, "month", 1, 730.0, 1.1637, 0.34114),  # Hetzner, EUR
    ],
)
def test_units_and_month_lengths(  # noqa: PLR0913 - one argument a column of the table
    *, price: float, unit: QuoteUnit, gpus: int, hours_per_month: float, rate: float, expected: float
) -> None:
    hourly = usd_per_hour(price, unit, gpus=gpus, hours_per_month=hours_per_month, usd_per_currency_unit=rate)
    assert hourly == pytest.approx(expected, abs=1e-6)


def test_a_month_without_a_stated_length_is_730_hours() -> None:
    assert usd_per_hour(1460.0, "month") == 2.0
