"""How many requests are in progress at once for a load and a duration (Little's law, with percentiles)."""

import math
from typing import Annotated

import msgspec
from msgspec import Meta

from service.domain.answer import Assumed
from service.domain.demand import Demand, demand, traffic_assumptions
from service.domain.lengths import lengths
from service.domain.message import Message
from service.domain.occupancy import number_quantiles, peakedness
from service.domain.queueing import in_progress, rate_of
from service.domain.workload import Traffic

DEFAULT_HEADROOM = 0.3
"""The contract's default for planned loads."""
LEVELS = (0.5, 0.95, 0.99)

DurationSeconds = Annotated[
    float, Meta(ge=0.001, le=86_400, description="Mean time from a request's arrival to its last token, seconds.")
]
Headroom = Annotated[float, Meta(ge=0, le=10, description="Share by which capacity exceeds the planned load.")]


class ActiveRequests(msgspec.Struct, frozen=True, kw_only=True):
    """Requests in progress at the peak: the mean, and the numbers not exceeded 50, 95 and 99 % of the time."""

    mean: float
    p50: int
    p95: int
    p99: int


class DemandRates(msgspec.Struct, frozen=True, kw_only=True):
    """What the service carries at the peak, over all users; token rates are null where token counts are not given."""

    requests_per_second: float
    input_tokens_per_second: float | None
    output_tokens_per_second: float | None


class WithHeadroom(msgspec.Struct, frozen=True, kw_only=True):
    """The same quantities times 1 + headroom; whole numbers are rounded up."""

    active_requests: ActiveRequests
    demand: DemandRates


class ConcurrencyEstimate(msgspec.Struct, frozen=True, kw_only=True):
    """Requests in progress and the demand behind them, as stated and with headroom."""

    active_requests: ActiveRequests
    demand: DemandRates
    with_headroom: WithHeadroom
    assumptions: list[Assumed]


def concurrency_estimate(
    traffic: Traffic,
    duration_s: float,
    headroom: float | None = None,
    pointer: str = "/traffic",
) -> ConcurrencyEstimate:
    """Requests in progress for requests that take ``duration_s`` on average.

    Raises ``ImpossibleCombination`` where ``traffic`` contradicts itself.
    """
    load = demand(traffic, pointer=pointer)
    margin = DEFAULT_HEADROOM if headroom is None else headroom
    active = active_requests(load, duration_s)
    rates = _rates(traffic, load, duration_s, pointer)
    return ConcurrencyEstimate(
        active_requests=active,
        demand=rates,
        with_headroom=WithHeadroom(
            active_requests=_enlarged(active, 1.0 + margin), demand=_scaled(rates, 1.0 + margin)
        ),
        assumptions=load_assumptions(traffic, headroom, pointer),
    )


def load_assumptions(traffic: Traffic, headroom: float | None, pointer: str = "/traffic") -> list[Assumed]:
    """What is assumed of the traffic and of the headroom, whether or not an estimate comes about."""
    found = traffic_assumptions(traffic, pointer)
    if headroom is None:
        found.append(Assumed("/headroom", DEFAULT_HEADROOM, Message("assumed_headroom")))
    return found


def active_requests(load: Demand, duration_s: float) -> ActiveRequests:
    """Distribution of the number in progress; a closed loop holds its number, whatever the duration."""
    if load.concurrency is not None:
        whole = math.ceil(load.concurrency)
        return ActiveRequests(mean=load.concurrency, p50=whole, p95=whole, p99=whole)
    mean = float(in_progress(load.requests_per_second or 0.0, duration_s))
    p50, p95, p99 = number_quantiles(mean, peakedness(load.arrival_cv2), LEVELS)
    return ActiveRequests(mean=mean, p50=p50, p95=p95, p99=p99)


def _rates(traffic: Traffic, load: Demand, duration_s: float, pointer: str) -> DemandRates:
    clients = load.concurrency
    rate = load.requests_per_second or 0.0 if clients is None else float(rate_of(clients, duration_s))
    inputs, outputs = traffic.input_tokens, traffic.output_tokens
    return DemandRates(
        requests_per_second=rate,
        input_tokens_per_second=None if inputs is None else rate * lengths(inputs, f"{pointer}/input_tokens").mean,
        output_tokens_per_second=None if outputs is None else rate * lengths(outputs, f"{pointer}/output_tokens").mean,
    )


def _enlarged(active: ActiveRequests, factor: float) -> ActiveRequests:
    return ActiveRequests(
        mean=active.mean * factor,
        p50=_whole(active.p50 * factor),
        p95=_whole(active.p95 * factor),
        p99=_whole(active.p99 * factor),
    )


def _scaled(rates: DemandRates, factor: float) -> DemandRates:
    inputs, outputs = rates.input_tokens_per_second, rates.output_tokens_per_second
    return DemandRates(
        requests_per_second=rates.requests_per_second * factor,
        input_tokens_per_second=None if inputs is None else inputs * factor,
        output_tokens_per_second=None if outputs is None else outputs * factor,
    )


def _whole(value: float) -> int:
    """Rounded up, but for the last bits that a product such as 10 x 1.1 adds."""
    return math.ceil(value * (1.0 - 1e-12))
