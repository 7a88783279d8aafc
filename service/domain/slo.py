"""Latency targets as bounds on levels of three distributions, and the largest load under which all hold."""

from collections.abc import Sequence
from typing import Literal, cast

import msgspec

from service.domain.batching import Serving
from service.domain.latency import LEVELS, Delays, Level, Load, delays, e2e_s, load_at, tpot_s, ttft_s
from service.domain.numeric import Flag, Number, choose
from service.domain.units import MS_PER_S
from service.domain.workload import Application, Targets

Metric = Literal["ttft", "tpot", "e2e"]

HALVINGS = 14
"""Bisection steps on the batch under targets: 6e-5 of its ceiling."""


class Bound(msgspec.Struct, frozen=True):
    """Upper bound of one metric at one level."""

    metric: Metric
    level: Level
    limit_s: float


class UserTime(msgspec.Struct, frozen=True):
    """What stands between the engine's door and the user."""

    overhead_s: float = 0.0
    calls: float = 1.0
    """Calls of the model for one request of a user, one after the other."""


def user_time(application: Application | None) -> UserTime:
    """Overhead and calls of an application; none without one."""
    if application is None:
        return UserTime()
    return UserTime(overhead_s=application.overhead_ms / MS_PER_S, calls=application.llm_calls_per_request)


def bounds(targets: Targets | None) -> tuple[Bound, ...]:
    """All bounds that targets state, in the order of ttft, tpot, e2e."""
    found = []
    for metric, given in () if targets is None else _given(targets):
        for level in LEVELS:
            limit_ms = getattr(given, level, None)
            if limit_ms is not None:
                found.append(Bound(metric=metric, level=level, limit_s=limit_ms / MS_PER_S))
    return tuple(found)


def _given(targets: Targets) -> tuple[tuple[Metric, object], ...]:
    named = (("ttft", targets.ttft_ms), ("tpot", targets.tpot_ms), ("e2e", targets.e2e_ms))
    return tuple((cast("Metric", name), given) for name, given in named if given is not None)


def bounded_s(serving: Serving, load: Load, parts: Delays, bound: Bound, user: UserTime) -> Number:
    """Value of what a bound limits; end to end as the user sees it."""
    if bound.metric == "tpot":
        return tpot_s(parts, bound.level)
    first = ttft_s(serving, load, parts, bound.level)
    if bound.metric == "ttft":
        return first
    return user.overhead_s + e2e_s(serving.shape, parts, first, bound.level, user.calls)


def most_under(serving: Serving, wanted: Sequence[Bound], user: UserTime) -> Number:
    """Largest running batch of a data rank at which all bounds hold; 0 where none does, the ceiling without bounds."""
    low: Number = 0.0 * serving.limit.batch
    high = serving.limit.batch * 1.0
    if not wanted:
        return high
    for _ in range(HALVINGS):
        middle = (low + high) / 2.0
        load = load_at(serving, middle)
        parts = delays(serving, load)
        holds: Flag = True
        for bound in wanted:
            holds = holds & (bounded_s(serving, load, parts, bound, user) <= bound.limit_s)
        low = choose(holds, middle, low)
        high = choose(holds, high, middle)
    return low
