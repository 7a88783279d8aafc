"""Where a deployment runs under a demand, for one or for many: the load it settles at, and the most it can carry."""

from collections.abc import Sequence

import msgspec

from service.domain.batching import HALVINGS, Serving, batch_for_rate, rate_at
from service.domain.calibration import Profile
from service.domain.demand import Demand
from service.domain.latency import Delays, Load, delays, load_at, no_wait
from service.domain.numeric import Flag, Number, choose, greater, lesser
from service.domain.slo import Bound, UserTime, bounded_s, most_under


class OperatingPoint(msgspec.Struct, frozen=True):
    """A load, its delays, and how far it is from what the deployment can carry."""

    load: Load
    delays: Delays
    capacity: Number
    """Requests per second with the batch at its ceiling."""
    saturated: Flag
    """More is asked than ``capacity`` (open loop), or more clients than run and prefill at once (closed loop)."""


class Most(msgspec.Struct, frozen=True):
    """The most that one deployment carries under targets."""

    batch: Number
    """Running sequences of a data rank; 0 where the targets fail even at no load."""
    rate: Number
    """Requests per second."""
    clients: Number
    """Requests in progress (Little's law over the whole stay)."""

    def of(self, demand: Demand) -> Number:
        """The most in the unit of ``demand.amount``."""
        return self.rate if demand.concurrency is None else self.clients


def at_rate(serving: Serving, rate: Number) -> OperatingPoint:
    """Open loop at ``rate`` requests per second; at capacity where that is less."""
    capacity = rate_at(serving, serving.limit.batch)
    load = load_at(serving, batch_for_rate(serving, rate), lesser(rate, capacity))
    return _point(serving, load, capacity, rate >= capacity)


def at_clients(serving: Serving, clients: Number) -> OperatingPoint:
    """Closed loop of ``clients`` (a serving with ``open_loop`` off): batch + rate x TTFT = clients."""
    capacity = rate_at(serving, serving.limit.batch)
    each = clients / serving.costs.ranks
    low: Number = 0.0 * serving.limit.batch
    high = lesser(serving.limit.batch, each)
    ceiling = high
    for _ in range(HALVINGS):
        middle = (low + high) / 2.0
        fewer: Flag = _clients(serving, middle) < clients
        low = choose(fewer, middle, low)
        high = choose(fewer, high, middle)
    saturated: Flag = (_clients(serving, ceiling) < clients) & (each >= serving.limit.batch)
    batch = choose(saturated, ceiling, high)
    return _point(serving, load_at(serving, batch), capacity, saturated)


def at_ceiling(serving: Serving, most_sequences: Number) -> OperatingPoint:
    """A pile worked off: the batch at its ceiling, or all ``most_sequences`` (of the whole deployment) at once.

    Its delays are those of a request that is let in; what the pile itself waits is the caller's.
    """
    batch = lesser(serving.limit.batch, greater(most_sequences / serving.costs.ranks, 1e-6))
    load = msgspec.structs.replace(load_at(serving, batch), places=no_wait(batch))
    return _point(serving, load, load.rate, load.rate < 0.0)


def at_pile(serving: Serving, most: Most, requests: Number) -> OperatingPoint:
    """``requests`` worked off with the largest batch that keeps the targets (the ceiling where none does)."""
    batch = choose(most.batch > 0.0, most.batch, serving.limit.batch)
    return at_ceiling(serving, lesser(requests, serving.costs.ranks * batch))


def most_of(serving: Serving, wanted: Sequence[Bound], user: UserTime) -> Most:
    """The most that a deployment carries while all bounds hold (all bounds of the serving's own loop)."""
    batch = most_under(serving, wanted, user)
    load = load_at(serving, batch)
    parts = delays(serving, load)
    stay_s = parts.ttft_mean_s + (serving.shape.output.mean - 1.0) * parts.tpot_mean_s
    return Most(batch=batch, rate=load.rate, clients=load.rate * stay_s)


def meets(  # noqa: PLR0913 - a point, what is wanted of it, and how sure it is
    serving: Serving, point: OperatingPoint, wanted: Sequence[Bound], user: UserTime, profile: Profile, asked: Number
) -> tuple[Flag, Flag]:
    """Whether all bounds hold at a point: likely (as estimated), and safe (at the bad end of the 90 % interval).

    ``asked``: requests per second to carry. A closed loop takes what it gets: 0.
    """
    likely: Flag = asked <= point.capacity
    safe: Flag = asked * profile.throughput_spread <= point.capacity
    for bound in wanted:
        value = bounded_s(serving, point.load, point.delays, bound, user)
        spread = profile.tpot_spread if bound.metric == "tpot" else profile.ttft_spread
        likely = likely & (value <= bound.limit_s * ROUNDING)
        safe = safe & (value * spread <= bound.limit_s)
    return likely, safe & likely


ROUNDING = 1.001
"""Bisections on a batch leave latencies this close to their limits."""


def _clients(serving: Serving, batch: Number) -> Number:
    load = load_at(serving, batch)
    return serving.costs.ranks * batch + load.rate * delays(serving, load).ttft_mean_s


def _point(serving: Serving, load: Load, capacity: Number, saturated: Flag) -> OperatingPoint:
    return OperatingPoint(load=load, delays=delays(serving, load), capacity=capacity, saturated=saturated)
