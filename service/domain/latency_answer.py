"""Latencies of an operating point as an answer: milliseconds by level, with intervals, at the door and the user's."""

import math

import msgspec

from service.domain.answer import Basis, Interval, significant
from service.domain.batching import Serving
from service.domain.calibration import Profile
from service.domain.latency import LEVELS, Level, e2e_s, root_of_squares, tpot_s, ttft_s
from service.domain.numeric import as_float
from service.domain.operating_point import OperatingPoint
from service.domain.slo import UserTime
from service.domain.units import MS_PER_S


class Latency(msgspec.Struct, frozen=True, kw_only=True):
    """Milliseconds over all requests."""

    mean: float
    p50: float
    p95: float
    p99: float
    intervals: dict[str, Interval]
    """90 % intervals of ``mean``, ``p50``, ``p95`` and ``p99``."""


class TtftBreakdown(msgspec.Struct, frozen=True, kw_only=True):
    """Parts of the mean time to first token, milliseconds."""

    queue_ms: float
    """Rest of the running step, other prompts, a place in the batch."""
    prefill_ms: float
    """The prompt's own steps."""
    host_ms: float
    """HTTP, tokenizer, scheduling."""


class UserVisible(msgspec.Struct, frozen=True, kw_only=True):
    """What the user of the application waits for."""

    ttft_ms: Latency | None
    """To the first token of the last call of the model."""
    e2e_ms: Latency | None
    """To the last token."""


class Seconds(msgspec.Struct, frozen=True):
    """Latencies by level (one deployment), waiting beyond capacity included."""

    ttft: dict[Level, float]
    tpot: dict[Level, float]
    e2e: dict[Level, float]
    user_ttft: dict[Level, float]
    user_e2e: dict[Level, float]


NO_WAIT: dict[Level, float] = dict.fromkeys(LEVELS, 0.0)


def seconds(service: Serving, point: OperatingPoint, user: UserTime, beyond: dict[Level, float]) -> Seconds:
    """All latencies of a point; ``beyond``: wait above capacity by level."""
    load, parts = point.load, point.delays
    ttft: dict[Level, float] = {}
    tpot: dict[Level, float] = {}
    e2e: dict[Level, float] = {}
    user_ttft: dict[Level, float] = {}
    user_e2e: dict[Level, float] = {}
    for level in LEVELS:
        first = ttft_s(service, load, parts, level)
        ttft[level] = as_float(first) + beyond[level]
        tpot[level] = as_float(tpot_s(parts, level))
        e2e[level] = as_float(e2e_s(service.shape, parts, first, level)) + beyond[level]
        calls = as_float(e2e_s(service.shape, parts, first, level, user.calls)) + user.calls * beyond[level]
        user_e2e[level] = user.overhead_s + calls
        user_ttft[level] = user.overhead_s + _to_last_call(user.calls, e2e, ttft, level)
    return Seconds(ttft=ttft, tpot=tpot, e2e=e2e, user_ttft=user_ttft, user_e2e=user_e2e)


def _to_last_call(calls: float, e2e: dict[Level, float], ttft: dict[Level, float], level: Level) -> float:
    """Calls but one to their end, and the last to its first token; deviations add as squares."""
    before = max(calls - 1.0, 0.0)
    mean = before * e2e["mean"] + ttft["mean"]
    whole = math.sqrt(before) * (e2e[level] - e2e["mean"])
    return mean + as_float(root_of_squares(whole, ttft[level] - ttft["mean"]))


def latency(values: dict[Level, float], spread: float, basis: Basis) -> Latency:
    """Milliseconds with intervals of a factor either way."""
    shown = {level: value * MS_PER_S for level, value in values.items()}
    return Latency(
        mean=shown["mean"],
        p50=shown["p50"],
        p95=shown["p95"],
        p99=shown["p99"],
        intervals={level: interval(value, spread, basis) for level, value in shown.items()},
    )


def interval(value: float, spread: float, basis: Basis) -> Interval:
    """The 90 % interval value / spread .. value x spread."""
    return Interval(low=significant(value / spread), high=significant(value * spread), basis=basis)


def basis_of(profile: Profile) -> Basis:
    """``calibrated`` where the card's class and the engine were measured end to end."""
    return "calibrated" if as_float(profile.calibrated) > 0.0 else "analytic"


def breakdown(point: OperatingPoint, beyond: dict[Level, float]) -> TtftBreakdown:
    """Parts of the mean time to first token; they add up to it."""
    parts = point.delays
    return TtftBreakdown(
        queue_ms=(as_float(parts.queue_s) + beyond["mean"]) * MS_PER_S,
        prefill_ms=as_float(parts.own_mean_s) * MS_PER_S,
        host_ms=as_float(parts.host_s) * MS_PER_S,
    )
