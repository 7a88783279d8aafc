"""Which changes of a deployment cannot be its remedy, by bounds that cost little beside weighing it."""

import math

from service.domain.numeric import as_float
from service.domain.subject import Subject
from service.domain.units import GIB
from service.domain.verdict import Outcome, ReasonCode, request_bytes
from service.domain.weights import SHARED_AS
from service.domain.workload_fit import Asked

REFUSALS: frozenset[ReasonCode] = frozenset(
    {"engine_unsupported", "weights_format_unsupported", "kv_format_unsupported", "layout_illegal"}
)
"""No launch setting changes these."""


def cannot_help(subject: Subject, outcome: Outcome, changed: Subject) -> bool:
    """Whether a change leaves what is wrong as it is, so that there is no need to weigh it."""
    same_card = changed.accelerator is subject.accelerator
    match outcome.reason_code:
        case "engine_unsupported":
            return same_card
        case "weights_format_unsupported":
            return same_card and changed.weights is subject.weights
        case "kv_format_unsupported":
            return same_card and changed.kv_cache is subject.kv_cache
        case "layout_illegal":
            return changed.deployment.layout is subject.deployment.layout
        case _:
            return _weights_still_exceed(subject, outcome, changed) or _far_too_heavy(changed)


def settings_could_help(subject: Subject, outcome: Outcome, asked: Asked | None) -> bool:
    """Whether batch, graph and fraction settings could free what an asked workload lacks.

    They free no more than activations, graphs and the memory beside the largest fraction proposed.
    """
    if outcome.reason_code is not None or asked is None or not subject.architecture.cache:
        return True
    parts, ranks = outcome.parts, as_float(subject.deployment.layout.data)
    pool = max(as_float(parts.kv_cache), 0.0)
    each = request_bytes(subject, pool, asked.context_tokens, resident=True)
    short = math.ceil(asked.concurrent_sequences / ranks) * each - pool
    beside = max(as_float(parts.total) - as_float(parts.budget), 0.0)
    return short <= as_float(parts.activation) + as_float(parts.cuda_graph) + beside


def _weights_still_exceed(subject: Subject, outcome: Outcome, changed: Subject) -> bool:
    """Whether a change that leaves each accelerator its weights leaves them too large for the card: no need to weigh it."""
    before, after = subject.deployment, changed.deployment
    if after.layout is not before.layout or changed.weights is not subject.weights:
        return False
    # With several stages, other activations may make another stage bind; the card alone does not.
    staged = as_float(before.layout.pipeline) > 1.0
    if staged and (after.settings is not before.settings or after.precision is not before.precision):
        return False
    free = as_float(after.card.usable_memory_bytes) - subject.behaviour.context_gib * GIB
    return as_float(outcome.counted.weights) > free


def _far_too_heavy(subject: Subject) -> bool:
    """Whether an even share of the layers' weights already exceeds the card.

    A lower bound, cheap beside weighing: nothing is held by less than an even share, and much is repeated.
    """
    architecture, deployment = subject.architecture, subject.deployment
    if as_float(deployment.layout.pipeline) > 1.0:
        return False
    size, counts = deployment.precision.weight_bytes, architecture.parameters
    whole: float = sum(getattr(counts, name) * as_float(size[name]) for name in SHARED_AS)
    held = whole / as_float(deployment.layout.gpus) - as_float(deployment.settings.cpu_offload_bytes)
    return held > as_float(deployment.card.usable_memory_bytes)
