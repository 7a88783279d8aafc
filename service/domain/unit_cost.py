"""Rent of a month and what one token or request of it costs; the same for a float and for an array of candidates."""

import msgspec

from service.domain.numeric import Number, choose, greater
from service.domain.units import SECONDS_PER_HOUR, TOKENS_PER_MILLION

LEAST_VOLUME = 1e-3
"""Tokens or requests of a month below which there is no cost of one: nothing is served."""


class TokenWeights(msgspec.Struct, frozen=True, kw_only=True):
    """How much of the cost a token bears, relative to the others; all >= 0, not all 0."""

    input: float
    cached_input: float
    output: float


LIST_PRICE_WEIGHTS = TokenWeights(input=1.0, cached_input=0.1, output=4.0)
"""Shape of managed APIs' price lists, where output costs three to five times the input and cached input a tenth of it:
the project's own rule of thumb, used when neither a managed API nor a performance model gives a better one."""


def paid_hours(serving_hours: Number, idle_hours: Number, starts: Number, start_up_s: Number) -> Number:
    """Hours of a month that are billed: those that serve, those kept running without traffic, and start-ups."""
    return serving_hours + idle_hours + starts * start_up_s / SECONDS_PER_HOUR


def monthly_compute_usd(price_usd_per_hour: Number, instances: Number, hours: Number) -> Number:
    """Rent of ``instances`` whole instances for ``hours`` of a month."""
    return price_usd_per_hour * instances * hours


def usd_per_million(monthly_usd: Number, monthly_tokens: Number) -> Number:
    """Dollars per million tokens; 0.0 where none are served (below ``LEAST_VOLUME``)."""
    return usd_per_unit(monthly_usd, monthly_tokens) * TOKENS_PER_MILLION


def usd_per_unit(monthly_usd: Number, monthly_volume: Number) -> Number:
    """Dollars for one of ``monthly_volume``; 0.0 where nothing is served (below ``LEAST_VOLUME``)."""
    return choose(monthly_volume >= LEAST_VOLUME, monthly_usd / greater(monthly_volume, LEAST_VOLUME), 0.0)


def weighted_tokens(weights: TokenWeights, fresh: Number, cached: Number, output: Number) -> Number:
    """Tokens of the three kinds in units of the split's weight: total cost over this is the price of weight 1."""
    return weights.input * fresh + weights.cached_input * cached + weights.output * output
