"""Token lengths of requests: what a caller tells about them, and the distribution that follows.

A number means that every request has it. An object is a log-normal through what is given, cut at ``max`` (a longer one
stops there, as ``max_tokens`` makes it) and at 1 token; its location is solved so that the mean after the cuts is the
given mean. Without ``p95`` the spread is that of measured traffic, without ``max`` the cut is at the 99.9th percentile.
"""

import math
from functools import lru_cache
from itertools import accumulate, pairwise
from statistics import NormalDist
from typing import Annotated

import msgspec
from msgspec import Meta

from service.domain.errors import ImpossibleCombination
from service.domain.message import Message
from service.domain.strata import STRATUM_WEIGHTS

Tokens = Annotated[float, Meta(ge=1, le=10_000_000)]

DEFAULT_SIGMA = math.sqrt(math.log(2.0))
"""Log-normal of coefficient of variation 1. Azure LLM traces 2023 (CC-BY): input 0.96 (code) and 0.96 (conversation),
output 2.15 and 0.77."""
_Z95 = NormalDist().inv_cdf(0.95)
_Z99 = NormalDist().inv_cdf(0.99)
_Z_CUT = NormalDist().inv_cdf(0.999)
_STEEPEST_SIGMA = _Z95
"""p95 / mean of an uncut log-normal grows with its spread up to here (exp(z95² / 2) = 3.87) and falls after."""
_WIDEST_SIGMA = 4.0
_HALVINGS = 46
_Z_EDGES = (-math.inf, *(NormalDist().inv_cdf(edge) for edge in list(accumulate(STRATUM_WEIGHTS))[:-1]), math.inf)
_INFINITE_Z = 40.0
"""Beyond it the normal tail is zero in double precision."""


class TokenLengths(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Tokens of a request as a distribution: log-normal through what is given, cut at `max`."""

    mean: Annotated[Tokens, Meta(description="Mean tokens of a request, after the cut at `max`.")]
    p95: (
        Annotated[Tokens, Meta(description="95th percentile; by default that of a coefficient of variation of 1.")]
        | None
    ) = None
    max: Annotated[Tokens, Meta(description="No request is longer; by default the 99.9th percentile.")] | None = None


TokenCount = Tokens | TokenLengths
"""A number (every request has it) or a distribution."""


class Lengths(msgspec.Struct, frozen=True):
    """Distribution of the tokens of a request."""

    mean: float
    second_moment: float
    """Mean of the square."""
    p50: float
    p95: float
    p99: float
    max: float
    points: tuple[float, ...]
    """Ascending conditional means of the strata (``strata.STRATUM_WEIGHTS``); their weighted average is the mean."""


@lru_cache(maxsize=4096)
def lengths(count: TokenCount, pointer: str = "") -> Lengths:
    """Distribution of a token count; ``pointer`` is its place in the body, for the fault.

    Raises ``ImpossibleCombination`` where no log-normal has the given mean, p95 and max.
    """
    if not isinstance(count, TokenLengths):
        return _constant(float(count))
    mean, p95, cut = float(count.mean), count.p95, count.max
    _check_order(count, pointer)
    if mean in (1.0, cut, p95):
        return _constant(mean)
    if p95 is None:
        sigma = DEFAULT_SIGMA
        mu = _location(mean, sigma, cut)
    else:
        sigma = _spread(mean, p95, cut, pointer)
        mu = math.log(p95) - _Z95 * sigma
    return _distribution(mean, _clamped(mu, sigma, cut))


def mean_context_tokens(prompt: Lengths, output: Lengths) -> float:
    """Tokens that a request holds in the KV cache, averaged over its decode steps: E[in] + E[out²] / (2 E[out])."""
    return prompt.mean + output.second_moment / (2.0 * output.mean)


def _check_order(count: TokenLengths, pointer: str) -> None:
    if count.max is not None and count.mean > count.max:
        params = {"mean": count.mean, "max": count.max}
        raise ImpossibleCombination(pointer, Message("lengths_mean_above_max", params))
    if count.p95 is not None and count.max is not None and count.p95 > count.max:
        params = {"p95": count.p95, "max": count.max}
        raise ImpossibleCombination(pointer, Message("lengths_p95_above_max", params))
    if count.p95 is not None and count.p95 < count.mean:
        params = {"p95": count.p95, "mean": count.mean}
        raise ImpossibleCombination(pointer, Message("lengths_p95_below_mean", params))


def _constant(tokens: float) -> Lengths:
    points = (tokens,) * len(STRATUM_WEIGHTS)
    return Lengths(tokens, tokens * tokens, tokens, tokens, tokens, tokens, points)


class _Clamped(msgspec.Struct, frozen=True):
    """exp(mu + sigma z) for a standard normal z, held between 1 and the cut."""

    mu: float
    sigma: float
    cut: float
    z_floor: float
    z_cut: float

    def partial(self, power: int, low: float, high: float) -> float:
        """E[value^power; low < z <= high]: the log-normal's partial moment between the clamps, and the mass at each."""
        shift = power * self.sigma
        below = _mass(low, min(high, self.z_floor))
        inside = _mass(max(low, self.z_floor) - shift, min(high, self.z_cut) - shift)
        above = _mass(max(low, self.z_cut), high)
        return below + math.exp(power * self.mu + shift * shift / 2.0) * inside + self.cut**power * above

    def quantile(self, z: float) -> float:
        """The value at a normal score."""
        return min(self.cut, max(1.0, math.exp(self.mu + self.sigma * z)))


def _clamped(mu: float, sigma: float, cut: float | None) -> _Clamped:
    z_floor = -mu / sigma
    if cut is None:
        return _Clamped(mu, sigma, max(1.0, math.exp(mu + sigma * _Z_CUT)), z_floor, max(_Z_CUT, z_floor))
    return _Clamped(mu, sigma, cut, z_floor, max((math.log(cut) - mu) / sigma, z_floor))


def _mass(low: float, high: float) -> float:
    """Standard normal probability between two points, without cancellation in the upper tail; 0 if they cross."""
    if high <= low:
        return 0.0
    if low > 0.0:
        return 0.5 * (math.erfc(low / math.sqrt(2.0)) - math.erfc(high / math.sqrt(2.0)))
    return 0.5 * (math.erfc(-high / math.sqrt(2.0)) - math.erfc(-low / math.sqrt(2.0)))


def _clamped_mean(mu: float, sigma: float, cut: float | None) -> float:
    return _clamped(mu, sigma, cut).partial(1, -_INFINITE_Z, _INFINITE_Z)


def _location(mean: float, sigma: float, cut: float | None) -> float:
    """The mu of the given sigma at which the clamped mean is ``mean`` (it grows with mu)."""
    low = math.log(mean) - 6.0 * sigma
    high = (math.log(mean) if cut is None else math.log(cut)) + 6.0 * sigma
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        if _clamped_mean(middle, sigma, cut) < mean:
            low = middle
        else:
            high = middle
    return high


def _spread(mean: float, p95: float, cut: float | None, pointer: str) -> float:
    """The smallest sigma at which a log-normal through ``p95`` has the mean, which falls from p95 as sigma grows."""
    log_p95 = math.log(p95)

    def mean_at(sigma: float) -> float:
        return _clamped_mean(log_p95 - _Z95 * sigma, sigma, cut)

    low, high = 1e-9, _STEEPEST_SIGMA
    if mean_at(high) > mean:
        low, high = high, _WIDEST_SIGMA
        if mean_at(high) > mean:
            params = {"p95": p95, "mean": mean, "lowest_mean": min(mean_at(low), mean_at(high))}
            raise ImpossibleCombination(pointer, Message("lengths_p95_too_far_above_mean", params))
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        if mean_at(middle) > mean:
            low = middle
        else:
            high = middle
    return high


def _distribution(mean: float, spread: _Clamped) -> Lengths:
    points = tuple(
        spread.partial(1, max(low, -_INFINITE_Z), min(high, _INFINITE_Z)) / weight
        for (low, high), weight in zip(pairwise(_Z_EDGES), STRATUM_WEIGHTS, strict=True)
    )
    return Lengths(
        mean=mean,
        # Rounding may leave the moment of a nearly constant length below the square of its mean: no variance is negative.
        second_moment=max(spread.partial(2, -_INFINITE_Z, _INFINITE_Z), mean * mean),
        p50=spread.quantile(0.0),
        p95=spread.quantile(_Z95),
        p99=spread.quantile(_Z99),
        max=spread.cut,
        points=points,
    )
