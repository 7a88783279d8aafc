"""How the replicas, instances and the bill of a recommended option come about."""

from service.domain.derivation import Derived, derived
from service.domain.derivation_performance import Numbers, Timed
from service.domain.market import LET_BY_MONTH
from service.domain.numeric import as_float
from service.domain.packing import pack
from service.domain.question import Ask
from service.domain.recommendation import Recommendation
from service.domain.units import HOURS_PER_MONTH

REPLICAS = "whole copies of what one carries under the targets: service/domain/replicas.py"
PACKING = "whole instances, no replica split over two: service/domain/packing.py"
SHARE = "the planned load, spread evenly over the serving replicas"


def replica_derivation(ask: Ask, option: Recommendation, found: Timed) -> tuple[Derived, ...]:
    """Steps from the load to the bill of ``option``, whose replica runs as ``found``; fields below the option."""
    demand, breakdown = ask.question.work.demand, option.replica_breakdown
    closed = demand.concurrency is not None
    load = as_float((demand.concurrency if closed else demand.requests_per_second) or 0.0)
    most = as_float(found.most.clients if closed else found.most.rate)
    unit = "requests" if closed else "requests/s"
    carried: Numbers = {"load": load, "most_per_replica": most}
    margin: Numbers = {**carried, "headroom_share": ask.question.headroom, "for_load": float(breakdown.for_load)}
    copies: Numbers = {
        "for_load": float(breakdown.for_load),
        "headroom": float(breakdown.headroom),
        "spare": float(breakdown.spare),
    }
    larger = "max(ceil(load * (1 + headroom_share) / most_per_replica), 1) - for_load"
    least = "max(ceil(load / most_per_replica), 1)"
    return (
        derived("/replica_breakdown/for_load", least, carried, breakdown.for_load, "replicas", REPLICAS),
        derived("/replica_breakdown/headroom", larger, margin, breakdown.headroom, "replicas", REPLICAS),
        derived("/replicas", " + ".join(copies), copies, option.replicas, "replicas", REPLICAS),
        *_share(ask, option, load, unit),
        *_instances(option),
        *_bill(ask, option),
    )


def _share(ask: Ask, option: Recommendation, load: float, unit: str) -> tuple[Derived, ...]:
    """One replica's share of an open load: the rate that its performance is given at."""
    flow = option.performance.throughput
    if not ask.question.work.open_loop or flow is None or option.performance.saturated:
        return ()
    inputs: Numbers = {
        "load": load,
        "for_load": float(option.replica_breakdown.for_load),
        "headroom": float(option.replica_breakdown.headroom),
    }
    field = "/performance/throughput/requests_per_second"
    return (derived(field, "load / (for_load + headroom)", inputs, flow.requests_per_second, unit, SHARE),)


def _instances(option: Recommendation) -> tuple[Derived, ...]:
    sizes: Numbers = {
        "replicas": float(option.replicas),
        "gpus_per_instance": float(option.gpus_per_instance),
        "gpus_per_replica": float(option.gpus_per_replica),
    }
    needed = "ceil(replicas / floor(gpus_per_instance / gpus_per_replica))"
    idle = "instances * gpus_per_instance - replicas * gpus_per_replica"
    paid: Numbers = {**sizes, "instances": float(option.instances)}
    return (
        derived("/instances", needed, sizes, option.instances, "instances", PACKING),
        derived("/idle_gpus", idle, paid, option.idle_gpus, "accelerators", PACKING),
    )


def _bill(ask: Ask, option: Recommendation) -> tuple[Derived, ...]:
    """Production, and each environment beside it at its own instances and hours."""
    inputs: Numbers = {"production_usd": option.cost.monthly_usd.total}
    expression = "production_usd"
    if ask.environments:
        inputs["price_usd_per_hour"] = option.offer.price_usd_per_hour
    for number, environment in enumerate(ask.environments, start=1):
        packed = pack(environment.replicas, float(option.gpus_per_replica), float(option.gpus_per_instance))
        hours = environment.hours_per_month
        expression += f" + price_usd_per_hour * instances_{number} * hours_{number}"
        inputs[f"instances_{number}"] = packed.instances
        inputs[f"hours_{number}"] = max(hours, HOURS_PER_MONTH) if option.offer.term in LET_BY_MONTH else hours
    return (derived("/monthly_usd", expression, inputs, option.monthly_usd, "USD", option.offer.source),)
