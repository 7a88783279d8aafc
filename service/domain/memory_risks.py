"""What may still fail after the KV pool is sized, or surprise later."""

import msgspec

from service.domain.message import Message
from service.domain.numeric import as_float
from service.domain.subject import Subject
from service.domain.units import GIB
from service.domain.verdict import Outcome

SMALLEST_SLACK_GIB = 0.65
"""Least that was left after graphs and warm-up on 40 starts of vLLM 0.19 at 0.95 (H100)."""


UNIFIED_MEMORY = "LPDDR"
"""Memory types that host and accelerator share begin so."""


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
    risks = (
        _beside_the_budget(subject, outcome)
        + _context_risks(subject, outcome)
        + _image_risks(subject)
        + _unified_risks(subject)
    )
    return tuple(risks)


def _beside_the_budget(subject: Subject, outcome: Outcome) -> list[Risk]:
    """Graphs and the sampler's warm-up come after the pool and live in what the budget leaves of the card."""
    behaviour, parts = subject.behaviour, outcome.parts
    if behaviour.memory_rule == "whole_context":
        return []
    counted = outcome.counted
    room = as_float(parts.unused) - as_float(counted.at_start)
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
    later = as_float(counted.warm_up) + as_float(counted.fragments)
    left = room + as_float(counted.activation)
    if graph > 0.0 and left - later < SMALLEST_SLACK_GIB * GIB:
        return [_risk("sampler_warm_up", needed_gib=_gib(later), has_gib=_gib(left))]
    return []


def _unified_risks(subject: Subject) -> list[Risk]:
    """What compilers and the page cache hold of a shared memory counts as the engine's own (spark-vllm-docker pull 286)."""
    unified = subject.accelerator.memory_type.startswith(UNIFIED_MEMORY)
    return (
        [_risk("unified_memory_profiled")] if unified and subject.behaviour.activation_rule == "profiled_peak" else []
    )


def _image_risks(subject: Subject) -> list[Risk]:
    ranks = as_float(subject.deployment.layout.tensor)
    if subject.behaviour.images_on_first_card and subject.architecture.parameters.vision and ranks > 1.0:
        return [_risk("images_on_first_card", ranks=ranks)]
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
