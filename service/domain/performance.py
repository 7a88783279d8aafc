"""Latency and throughput of one deployment under a workload: the answer of ``performance-estimates``.

All numbers come from the array formulas of ``operating_point`` and ``latency``, called with floats, so a
recommendation's performance and this answer are the same to the bit.
"""

import msgspec

from service.domain.answer import Assumed, Interval
from service.domain.batching import Serving
from service.domain.bottleneck import Bottleneck, batch_bound, longest_part
from service.domain.calibration import Profile
from service.domain.engine import Speculative
from service.domain.latency import LEVELS, Level, load_at, own_steps_s
from service.domain.latency_answer import (
    NO_WAIT,
    Latency,
    Seconds,
    TtftBreakdown,
    UserVisible,
    basis_of,
    breakdown,
    interval,
    latency,
    seconds,
)
from service.domain.load_curve import CurvePoint, load_curve
from service.domain.message import Message
from service.domain.numeric import as_float
from service.domain.operating_point import Most, OperatingPoint, at_ceiling, at_clients, at_pile, at_rate, most_of
from service.domain.roofline import step_s
from service.domain.serving import MOST_SEQUENCES, serving
from service.domain.slo import bounds, user_time
from service.domain.subject import Subject
from service.domain.units import MS_PER_S
from service.domain.verdict import Outcome, ReasonCode, Verdict
from service.domain.work import Work, shape_of


class Throughput(msgspec.Struct, frozen=True, kw_only=True):
    """Rates of the whole deployment at this load."""

    output_tokens_per_second: float
    output_tokens_per_second_per_user: float | None
    """Pace at which one request's tokens come: the inverse of the mean time per output token; null without output."""
    total_tokens_per_second: float
    """Input and output."""
    requests_per_second: float
    intervals: dict[str, Interval]


class SingleStream(msgspec.Struct, frozen=True, kw_only=True):
    """One request of mean length alone, milliseconds."""

    ttft_ms: float
    tpot_ms: float | None
    """Null for models that only read."""


class BatchRun(msgspec.Struct, frozen=True, kw_only=True):
    """A batch worked off at full load."""

    duration_s: float
    meets_deadline: bool


class PerformanceEstimate(msgspec.Struct, frozen=True, kw_only=True):
    """Latency and throughput of a deployment under a workload; its numbers are null where it does not fit."""

    verdict: Verdict
    reason_code: ReasonCode | str | None
    """Why it does not start; ``performance_unknown`` where no compute figure of the card is known."""
    reason: Message | None
    saturated: bool
    """More is asked than the deployment can carry."""
    ttft_ms: Latency | None
    """Time to first token at the engine's door; null above capacity in an open loop without ``run``."""
    tpot_ms: Latency | None
    """Time per output token after the first; null for models that only read."""
    e2e_ms: Latency | None
    """From request to last token at the engine's door."""
    ttft_breakdown: TtftBreakdown | None
    throughput: Throughput | None
    single_stream: SingleStream | None
    bottleneck: Bottleneck | None
    max_requests_per_second: float | None
    """Most that the deployment carries under the targets; without targets, its capacity."""
    running_requests: float | None
    """Mean requests that decode at once, over all data ranks."""
    active_requests: float | None
    """Mean requests between arrival and last token (Little's law)."""
    curve: tuple[CurvePoint, ...]
    user_visible: UserVisible | None
    batch: BatchRun | None
    intervals: dict[str, Interval]
    """Of ``max_requests_per_second``."""
    assumptions: tuple[Assumed, ...]


MEMORY_BOTTLENECKS: dict[str, Bottleneck] = {
    "weights_exceed_memory": "weights_memory",
    "free_memory_below_budget": "weights_memory",
    "no_room_for_kv": "kv_capacity",
    "context_does_not_fit": "kv_capacity",
    "out_of_memory_at_load": "weights_memory",
}

_UNIFORM: dict[Level, float] = {"mean": 0.5, "p50": 0.5, "p95": 0.95, "p99": 0.99}
"""A queue that grows steadily: waits are spread evenly up to the last."""


def performance(  # noqa: PLR0913 - a deployment, its memory and profile, and what is asked of it
    subject: Subject,
    outcome: Outcome,
    profile: Profile,
    asked: Work,
    speculative: Speculative | None = None,
    assumptions: tuple[Assumed, ...] = (),
) -> PerformanceEstimate:
    """Estimate of one deployment; ``outcome`` is its memory (``verdict.weigh``), ``profile`` its efficiencies."""
    if outcome.reason_code is not None:
        bottleneck = MEMORY_BOTTLENECKS.get(outcome.reason_code)
        return _nothing(outcome.verdict, outcome.reason_code, outcome.reason, bottleneck, assumptions)
    if as_float(subject.deployment.card.flops_per_s) <= 0.0:
        reason = Message("performance_unknown", {"gpu": subject.accelerator.id})
        return _nothing(outcome.verdict, "performance_unknown", reason, None, assumptions)

    service = serving_of(subject, outcome, profile, asked, speculative)
    user = user_time(asked.application)
    most = most_of(service, bounds(asked.targets), user)
    point, beyond = operating_point(service, asked, most)
    times = seconds(service, point, user, beyond or NO_WAIT)
    basis, calm = basis_of(profile), beyond is not None
    ttft_spread, tpot_spread = as_float(profile.ttft_spread), as_float(profile.tpot_spread)
    spread = as_float(profile.throughput_spread)
    most_rate = as_float(most.rate)
    reads_only = service.shape.rows_per_step <= 0.0
    rate = as_float(point.load.rate)
    visible = UserVisible(
        ttft_ms=latency(times.user_ttft, ttft_spread, basis) if calm else None,
        e2e_ms=latency(times.user_e2e, ttft_spread, basis) if calm else None,
    )
    return PerformanceEstimate(
        verdict=outcome.verdict,
        reason_code=None,
        reason=None,
        saturated=overloaded(point, asked),
        ttft_ms=latency(times.ttft, ttft_spread, basis) if calm else None,
        tpot_ms=None if reads_only else latency(times.tpot, tpot_spread, basis),
        e2e_ms=latency(times.e2e, ttft_spread, basis) if calm else None,
        ttft_breakdown=breakdown(point, beyond) if beyond is not None else None,
        throughput=_throughput(service, rate, times, profile),
        single_stream=_single_stream(service),
        bottleneck=_bottleneck(service, point, asked),
        max_requests_per_second=most_rate,
        running_requests=as_float(service.costs.ranks * point.load.batch),
        active_requests=rate * times.e2e["mean"] if calm else None,
        curve=load_curve(service),
        user_visible=None if asked.application is None else visible,
        batch=_batch_run(rate, asked),
        intervals={"max_requests_per_second": interval(most_rate, spread, basis)},
        assumptions=assumptions,
    )


def serving_of(
    subject: Subject, outcome: Outcome, profile: Profile, asked: Work, speculative: Speculative | None = None
) -> Serving:
    """The deployment put to the asked work."""
    settings = subject.deployment.settings
    return serving(
        subject.architecture,
        subject.deployment,
        subject.behaviour,
        outcome.parts,
        profile,
        shape_of(asked, subject.architecture, speculative, prefix_caching=settings.prefix_caching),
        asked.arrival_cv2,
        open_loop=asked.open_loop,
    )


def operating_point(service: Serving, asked: Work, most: Most) -> tuple[OperatingPoint, dict[Level, float] | None]:
    """Where the deployment runs, and by how much requests wait beyond it; ``most``: what it carries under the targets.

    The wait is None where it has no bound: an open loop above capacity without an end.
    """
    demand = asked.demand
    if demand.concurrency is not None:
        point = at_clients(service, demand.concurrency)
        return point, dict.fromkeys(LEVELS, _client_queue_s(point, service, demand.concurrency))
    if not asked.open_loop:
        pile = MOST_SEQUENCES if asked.batch_requests is None else asked.batch_requests
        return at_pile(service, most, pile), NO_WAIT
    rate = demand.requests_per_second or 0.0
    point = at_rate(service, rate)
    if not bool(point.saturated):
        return point, NO_WAIT
    full = at_ceiling(service, MOST_SEQUENCES)
    point = msgspec.structs.replace(full, saturated=True)
    if asked.run is None:
        return point, None
    lasts_s = asked.run.duration_s
    if asked.run.requests is not None:
        lasts_s = min(lasts_s or asked.run.requests / rate, asked.run.requests / rate)
    growth = max(rate / as_float(point.load.rate) - 1.0, 0.0) * (lasts_s or 0.0)
    return point, {level: share * growth for level, share in _UNIFORM.items()}


def _client_queue_s(point: OperatingPoint, service: Serving, clients: float) -> float:
    """Wait of a closed loop's clients that neither run nor prefill: (clients - batch) / rate, less what is in TTFT."""
    if not bool(point.saturated):
        return 0.0
    outside = clients - as_float(service.costs.ranks * point.load.batch)
    return max(outside / as_float(point.load.rate) - as_float(point.delays.ttft_mean_s), 0.0)


def overloaded(point: OperatingPoint, asked: Work) -> bool:
    """Whether more is asked than the deployment carries; a batch: than its deadline allows."""
    rate = asked.demand.requests_per_second
    if asked.open_loop or rate is None:
        return bool(point.saturated)
    return rate > as_float(point.load.rate)


def _bottleneck(service: Serving, point: OperatingPoint, asked: Work) -> Bottleneck:
    if asked.open_loop and bool(point.saturated):
        return "queue"
    if not asked.open_loop and as_float(point.load.batch) >= as_float(service.limit.batch):
        return batch_bound(service)
    return longest_part(service, point.load)


def _throughput(service: Serving, rate: float, times: Seconds, profile: Profile) -> Throughput:
    shape, spread, basis = service.shape, as_float(profile.throughput_spread), basis_of(profile)
    writes = shape.rows_per_step > 0.0
    output = rate * shape.output.mean if writes else 0.0
    intervals = {"requests_per_second": interval(rate, spread, basis)}
    if writes:
        intervals["output_tokens_per_second"] = interval(output, spread, basis)
    return Throughput(
        output_tokens_per_second=output,
        output_tokens_per_second_per_user=1.0 / times.tpot["mean"] if writes else None,
        total_tokens_per_second=output + rate * shape.input.mean,
        requests_per_second=rate,
        intervals=intervals,
    )


def _single_stream(service: Serving) -> SingleStream:
    costs, shape = service.costs, service.shape
    idle = load_at(msgspec.structs.replace(service, open_loop=False), 0.0 * service.limit.batch)
    first = costs.host_request_s + own_steps_s(service, idle, shape.input.mean)
    step = costs.stages * step_s(costs, 1.0, shape.rows_per_step) / shape.tokens_per_step
    paced = as_float(step) * MS_PER_S if shape.rows_per_step > 0.0 else None
    return SingleStream(ttft_ms=as_float(first) * MS_PER_S, tpot_ms=paced)


def _batch_run(rate: float, asked: Work) -> BatchRun | None:
    if asked.batch_requests is None or asked.deadline_s is None:
        return None
    duration = asked.batch_requests / rate
    return BatchRun(duration_s=duration, meets_deadline=duration <= asked.deadline_s)


def _nothing(
    verdict: Verdict,
    reason_code: str,
    reason: Message | None,
    bottleneck: Bottleneck | None,
    assumptions: tuple[Assumed, ...],
) -> PerformanceEstimate:
    return PerformanceEstimate(
        verdict=verdict,
        reason_code=reason_code,
        reason=reason,
        saturated=False,
        ttft_ms=None,
        tpot_ms=None,
        e2e_ms=None,
        ttft_breakdown=None,
        throughput=None,
        single_stream=None,
        bottleneck=bottleneck,
        max_requests_per_second=None,
        running_requests=None,
        active_requests=None,
        curve=(),
        user_visible=None,
        batch=None,
        intervals={},
        assumptions=assumptions,
    )
