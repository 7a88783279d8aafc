"""How requests in progress come about: Little's law, and the headroom on top."""

from service.domain.concurrency import DEFAULT_HEADROOM, ConcurrencyEstimate
from service.domain.demand import demand
from service.domain.derivation import Derived, derived
from service.domain.derivation_performance import DEFINITION, LITTLE, Numbers
from service.domain.workload import Traffic

HEADROOM = "safety stock on a planned load: service/domain/concurrency.py"


def concurrency_derivation(
    traffic: Traffic,
    duration_s: float,
    headroom: float | None,
    estimate: ConcurrencyEstimate,
) -> tuple[Derived, ...]:
    """Steps of ``estimate``; a closed loop holds its number, and its rate follows from the duration."""
    load = demand(traffic)
    active, rates, enlarged = estimate.active_requests, estimate.demand, estimate.with_headroom
    stay: Numbers = {"requests_per_second": rates.requests_per_second, "request_duration_s": duration_s}
    if load.concurrency is None:
        first = derived("/active_requests/mean", " * ".join(stay), stay, active.mean, "requests", LITTLE)
    else:
        held: Numbers = {"concurrent_requests": load.concurrency, "request_duration_s": duration_s}
        rate = rates.requests_per_second
        first = derived("/demand/requests_per_second", " / ".join(held), held, rate, "requests/s", LITTLE)
    steps = [first]
    for side in ("input", "output"):
        tokens = getattr(rates, f"{side}_tokens_per_second")
        if tokens and rates.requests_per_second:
            each: Numbers = {
                "requests_per_second": rates.requests_per_second,
                f"{side}_tokens": tokens / rates.requests_per_second,
            }
            name = f"/demand/{side}_tokens_per_second"
            steps.append(derived(name, " * ".join(each), each, tokens, "tokens/s", DEFINITION))
    margin: Numbers = {"headroom": DEFAULT_HEADROOM if headroom is None else headroom}
    more = enlarged.active_requests.mean
    of_active: Numbers = {"active_requests": active.mean, **margin}
    of_rate: Numbers = {"planned": rates.requests_per_second, **margin}
    steps += [
        derived(
            "/with_headroom/active_requests/mean",
            "active_requests * (1 + headroom)",
            of_active,
            more,
            "requests",
            HEADROOM,
        ),
        derived(
            "/with_headroom/demand/requests_per_second",
            "planned * (1 + headroom)",
            of_rate,
            enlarged.demand.requests_per_second,
            "requests/s",
            HEADROOM,
        ),
    ]
    return tuple(steps)
