"""What may still fail after the KV pool is sized, or surprise later."""

import msgspec

from service.domain.activation import profiled_peak
from service.domain.message import Message
from service.domain.numeric import as_float
from service.domain.subject import Subject
from service.domain.units import GIB
from service.domain.verdict import Outcome


class Risk(msgspec.Struct, frozen=True):
    """A warning: the deployment is reckoned to start, but this may go wrong."""

    code: str
    message: Message


def _risk(code: str, **numbers: float) -> Risk:
    return Risk(code=code, message=Message(code, numbers))


def _gib(value: float) -> float:
    return round(value / GIB, 2)


def memory_risks(subject: Subject, outcome: Outcome) -> tuple[Risk, ...]:
    """Later out-of-memory risks of a deployment that starts; none for one that does not."""
    if outcome.reason_code is not None:
        return ()
    risks = _beside_the_budget(subject, outcome) + _context_risks(subject, outcome)
    return tuple(risks)


def _beside_the_budget(subject: Subject, outcome: Outcome) -> list[Risk]:
    """Graphs and the sampler's warm-up come after the pool and live in what the budget leaves of the card."""
    behaviour, parts = subject.behaviour, outcome.parts
    if behaviour.memory_rule == "whole_context":
        return []
    room = as_float(parts.unused) - behaviour.context_gib * GIB
    graph = as_float(parts.cuda_graph)
    if room < 0.0:
        code = (
            "activations_beside_the_pool"
            if behaviour.activation_rule == "outside_budget"
            else "graphs_beside_the_budget"
        )
        return [_risk(code, needed_gib=_gib(graph), has_gib=_gib(room + graph))]
    if behaviour.activation_rule != "profiled_peak" or behaviour.memory_rule != "utilization_of_total":
        return []
    sampler = as_float(profiled_peak(subject.architecture, subject.deployment, behaviour).sampler)
    if graph > 0.0 and room < sampler:
        # gpt-oss-20b at 0.95 on an H100 failed here: the profiling run's freed peak may be too fragmented to reuse.
        return [_risk("sampler_warm_up", needed_gib=_gib(sampler), has_gib=_gib(room))]
    return []


def _context_risks(subject: Subject, outcome: Outcome) -> list[Risk]:
    risks: list[Risk] = []
    settings, architecture = subject.deployment.settings, subject.architecture
    asked = as_float(settings.max_model_len)
    if asked > architecture.max_position_embeddings:
        risks.append(_risk("context_beyond_checkpoint", asked=asked, declared=architecture.max_position_embeddings))
    capacity = as_float(outcome.capacity.capacity_tokens)
    if architecture.cache and subject.behaviour.memory_rule != "utilization_of_total" and capacity < asked:
        risks.append(_risk("pool_below_context", asked=asked, capacity=capacity))
    return risks
