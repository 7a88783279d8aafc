"""The normal form of a workload: the rate or the number of requests to carry at the peak, and the sum of a month."""

from typing import Literal

import msgspec

from service.domain.answer import Assumed
from service.domain.errors import ImpossibleCombination
from service.domain.lengths import Lengths, TokenCount, TokenLengths, lengths
from service.domain.message import Message
from service.domain.units import HOURS_PER_MONTH, SECONDS_PER_HOUR
from service.domain.workload import Batch, Kind, Targets, Traffic, Users

Loop = Literal["open", "closed", "batch"]
"""open: requests come at a rate whatever the service does; closed: a fixed number is in progress; batch: a pile is
worked off at the rate its deadline needs."""

DEFAULT_RUNS_PER_MONTH = 30.0
"""A batch without a stated rhythm runs daily."""
_DEMANDS = ("requests_per_second", "concurrent_requests", "users", "batch")


class Demand(msgspec.Struct, frozen=True, kw_only=True):
    """What the engine's door sees at the planned peak (`burst_factor` and the model calls of a request included)."""

    loop: Loop
    requests_per_second: float | None
    """Calls of the model per second; None for a closed loop, whose rate the deployment decides."""
    concurrency: float | None
    """Calls always in progress; None unless the loop is closed."""
    arrival_cv2: float
    """Squared coefficient of variation of the gaps between arrivals; 0 for a batch, which is fed evenly."""

    @property
    def amount(self) -> float:
        """What replicas share: calls in progress of a closed loop, else calls per second."""
        return float((self.requests_per_second if self.concurrency is None else self.concurrency) or 0.0)


def demand(traffic: Traffic, llm_calls_per_request: float = 1.0, pointer: str = "/traffic") -> Demand:
    """Normal form of ``traffic``; ``pointer`` is its place in the body.

    Calls of one request follow each other, so they multiply a rate but not the number in progress of a closed loop.
    Raises ``ImpossibleCombination`` unless exactly one of the four ways to state the load is given (and one of the two
    for users).
    """
    check_traffic(traffic, pointer)
    burst = traffic.burst_factor
    if traffic.concurrent_requests is not None:
        return Demand(
            loop="closed", requests_per_second=None, concurrency=traffic.concurrent_requests * burst, arrival_cv2=0.0
        )
    rate = _peak_rate(traffic) * llm_calls_per_request * burst
    if traffic.batch is not None:
        return Demand(loop="batch", requests_per_second=rate, concurrency=None, arrival_cv2=0.0)
    cv = 1.0 if traffic.arrivals is None else traffic.arrivals.cv
    return Demand(loop="open", requests_per_second=rate, concurrency=None, arrival_cv2=cv * cv)


def stated_load(traffic: Traffic) -> tuple[str, float]:
    """Where in a body the load stands, and the number that the caller gave; ``traffic`` must have passed the check."""
    if traffic.requests_per_second is not None:
        return "/traffic/requests_per_second", traffic.requests_per_second
    if traffic.concurrent_requests is not None:
        return "/traffic/concurrent_requests", traffic.concurrent_requests
    if traffic.batch is not None:
        return "/traffic/batch/requests", traffic.batch.requests
    users = traffic.users
    if users is not None and users.active_at_peak is not None:
        return "/traffic/users/active_at_peak", users.active_at_peak
    return "/traffic/users/registered", (users.registered if users is not None else None) or 0.0


def check_traffic(traffic: Traffic, pointer: str = "/traffic") -> None:
    """Raise ``ImpossibleCombination`` where members of ``traffic`` contradict each other."""
    given = [name for name in _DEMANDS if getattr(traffic, name) is not None]
    if len(given) != 1:
        code = "traffic_demand_missing" if not given else "traffic_demand_twice"
        raise ImpossibleCombination(pointer, Message(code, {"given": ", ".join(given)}), suggestions=_DEMANDS)
    if traffic.hourly_profile is not None and len(traffic.hourly_profile) not in (24, 168):
        message = Message("traffic_profile_length", {"length": len(traffic.hourly_profile)})
        raise ImpossibleCombination(pointer=f"{pointer}/hourly_profile", message=message)
    if traffic.users is not None:
        _active_users(traffic.users, pointer)


def check_targets(targets: Targets, pointer: str = "/targets") -> None:
    """Raise ``ImpossibleCombination`` for a latency target without any bound."""
    for name in ("ttft_ms", "tpot_ms", "e2e_ms"):
        bounds = getattr(targets, name)
        if bounds is not None and bounds.p50 is bounds.p95 is bounds.p99 is bounds.mean is None:
            raise ImpossibleCombination(
                pointer=f"{pointer}/{name}",
                message=Message("target_without_bound"),
                suggestions=("p50", "p95", "p99", "mean"),
            )


def token_lengths(traffic: Traffic, pointer: str = "/traffic") -> tuple[Lengths, Lengths]:
    """Distributions of input and output tokens.

    Raises ``ImpossibleCombination`` where one is not given or has no such log-normal.
    """
    return (
        _needed(traffic.input_tokens, f"{pointer}/input_tokens"),
        _needed(traffic.output_tokens, f"{pointer}/output_tokens"),
    )


def kind_of(traffic: Traffic, kind: Kind | None) -> Kind:
    """The kind given, else batch for a batch and interactive for everything else."""
    return kind or ("batch" if traffic.batch is not None else "interactive")


def mean_share_of_peak(traffic: Traffic) -> float:
    """Mean of the hourly profile; 1.0 without one (the peak all day)."""
    profile = traffic.hourly_profile
    return 1.0 if profile is None else sum(profile) / len(profile)


def monthly_requests(traffic: Traffic, hours_per_month: float = HOURS_PER_MONTH, calls: float = 1.0) -> float | None:
    """Calls of the model in a month: peak rate (without burst) x mean of the profile x hours, or the batches' sum.

    None for a closed loop, where it follows from the deployment's rate. ``traffic`` must have passed ``check_traffic``.
    """
    if traffic.concurrent_requests is not None:
        return None
    if traffic.batch is not None:
        return traffic.batch.requests * runs_per_month(traffic.batch) * calls
    return _peak_rate(traffic) * calls * mean_share_of_peak(traffic) * hours_per_month * SECONDS_PER_HOUR


def runs_per_month(batch: Batch) -> float:
    """Runs in a month, by default daily."""
    return DEFAULT_RUNS_PER_MONTH if batch.runs_per_month is None else batch.runs_per_month


def traffic_assumptions(traffic: Traffic, pointer: str = "/traffic") -> list[Assumed]:
    """Defaults that decide numbers and that the caller did not give."""
    found = []
    if traffic.arrivals is None and (traffic.requests_per_second is not None or traffic.users is not None):
        found.append(Assumed(f"{pointer}/arrivals/process", "poisson", Message("assumed_poisson_arrivals")))
    if traffic.batch is not None and traffic.batch.runs_per_month is None:
        message = Message("assumed_runs_per_month")
        found.append(Assumed(f"{pointer}/batch/runs_per_month", DEFAULT_RUNS_PER_MONTH, message))
    for name, count in (("input_tokens", traffic.input_tokens), ("output_tokens", traffic.output_tokens)):
        found.extend(_assumed_lengths(count, f"{pointer}/{name}"))
    return found


def _assumed_lengths(count: TokenCount | None, pointer: str) -> list[Assumed]:
    if not isinstance(count, TokenLengths):
        return []
    known = lengths(count, pointer)
    found = []
    if count.p95 is None:
        found.append(Assumed(f"{pointer}/p95", known.p95, Message("assumed_token_spread")))
    if count.max is None:
        found.append(Assumed(f"{pointer}/max", known.max, Message("assumed_token_cut")))
    return found


def _needed(count: TokenCount | None, pointer: str) -> Lengths:
    if count is None:
        raise ImpossibleCombination(pointer, Message("traffic_tokens_missing"))
    return lengths(count, pointer)


def _peak_rate(traffic: Traffic) -> float:
    """Requests per second at the peak, without burst."""
    if traffic.requests_per_second is not None:
        return traffic.requests_per_second
    if traffic.users is not None:
        return _active_users(traffic.users, "/traffic") * traffic.users.requests_per_active_user_hour / SECONDS_PER_HOUR
    batch = traffic.batch
    if batch is None:
        return 0.0
    # Runs that overlap in time must be worked off as fast as they come, even where each alone could take longer.
    rhythm_s = HOURS_PER_MONTH * SECONDS_PER_HOUR / runs_per_month(batch)
    return batch.requests / min(batch.deadline_s, rhythm_s)


def _active_users(users: Users, pointer: str) -> float:
    by_share = users.registered is not None or users.active_share_at_peak is not None
    if by_share == (users.active_at_peak is not None):
        raise ImpossibleCombination(pointer=f"{pointer}/users", message=Message("users_two_shapes"))
    if users.active_at_peak is not None:
        return users.active_at_peak
    if users.registered is None or users.active_share_at_peak is None:
        missing = "registered" if users.registered is None else "active_share_at_peak"
        message = Message("users_share_incomplete", {"missing": missing})
        raise ImpossibleCombination(pointer=f"{pointer}/users", message=message)
    return users.registered * users.active_share_at_peak
