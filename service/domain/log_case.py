"""A deployment beside the log of its start, and what would have been predicted had something been otherwise.

A gap is explained by evaluating its possible causes: the one after which prediction and print agree is named.
"""

from collections.abc import Callable, Iterable, Iterator

import msgspec

from service.domain.engine import EngineBehaviour
from service.domain.engine_logs import LogFacts
from service.domain.engine_support import engine_refusal
from service.domain.message import Message
from service.domain.numeric import as_float
from service.domain.quantization import Quantization
from service.domain.subject import Subject
from service.domain.verdict import Outcome, weigh
from service.domain.weights import precision

Measure = Callable[[Outcome], float]
"""A figure of an outcome."""

BETTER_SHARE = 0.5
"""A cause must bring the error below this share of what it was."""


class Alternatives(msgspec.Struct, frozen=True):
    """What a log may turn out to be about."""

    weights: tuple[Quantization, ...] = ()
    kv_caches: tuple[Quantization, ...] = ()
    behaviours: tuple[EngineBehaviour, ...] = ()
    """Other versions of the engine; none where the version is known."""


class Case(msgspec.Struct, frozen=True):
    """What is compared."""

    facts: LogFacts
    subject: Subject
    outcome: Outcome
    alternatives: Alternatives = Alternatives()

    def states(self, setting: str) -> bool:
        """Whether the log states a launch setting."""
        return setting in self.facts.launched.settings


def with_settings(subject: Subject, **changes: float) -> Subject:
    """The same deployment under other launch settings."""
    settings = msgspec.structs.replace(subject.deployment.settings, **changes)
    return msgspec.structs.replace(subject, deployment=msgspec.structs.replace(subject.deployment, settings=settings))


def with_tensor(subject: Subject, tensor: float) -> Subject:
    """The same deployment over another number of tensor ranks."""
    layout = msgspec.structs.replace(subject.deployment.layout, tensor=tensor)
    return msgspec.structs.replace(subject, deployment=msgspec.structs.replace(subject.deployment, layout=layout))


def with_formats(
    subject: Subject, weights: Quantization | None = None, kv_cache: Quantization | None = None
) -> Subject:
    """The same deployment in other formats; a checkpoint's size belongs to its own format and is left out."""
    weights, kv_cache = weights or subject.weights, kv_cache or subject.kv_cache
    size = subject.checkpoint_bytes if weights.id == subject.weights.id else None
    bytes_of = precision(subject.architecture, weights, kv_cache, size)
    deployment = msgspec.structs.replace(subject.deployment, precision=bytes_of)
    return msgspec.structs.replace(subject, weights=weights, kv_cache=kv_cache, deployment=deployment)


def with_graphs(subject: Subject, *, in_budget: bool) -> Subject:
    """The same deployment with CUDA graphs taken off the pool, or beside the budget."""
    behaviour = msgspec.structs.replace(subject.behaviour, graphs_in_budget=in_budget)
    return msgspec.structs.replace(subject, behaviour=behaviour)


Supposed = tuple[Subject, Message]
"""A deployment as it would be if a cause held, and the cause."""


def other_versions(case: Case) -> Iterator[Supposed]:
    """The same launch under other versions of the engine that run it, where the version is not known."""
    subject = case.subject
    for behaviour in case.alternatives.behaviours:
        refusal = engine_refusal(
            behaviour, subject.architecture.model_type, subject.accelerator, subject.weights, subject.kv_cache
        )
        if refusal is not None:
            continue
        named = Message("gap_version", {"version": behaviour.version, "asked": subject.behaviour.version})
        yield msgspec.structs.replace(subject, behaviour=behaviour), named


def best_cause(
    case: Case, actual: float, measure: Measure, supposed: Iterable[Supposed], band_share: float
) -> Message | None:
    """The cause after which ``measure`` is nearest to ``actual``; None where none brings it within the band."""
    if actual <= 0.0:
        return None
    limit = min(band_share, BETTER_SHARE * abs(measure(case.outcome) / actual - 1.0))
    best = None
    for subject, cause in supposed:
        error = abs(measure(weigh(subject)) / actual - 1.0)
        if error < limit:
            best, limit = cause, error
    return best


def gib(value: float) -> float:
    """GiB to a hundredth, as logs print it."""
    return round(value / 1024**3, 2)


def pool_of_case(outcome: Outcome) -> float:
    """Bytes of the KV pool, below zero where the rest exceeds the budget."""
    return as_float(outcome.parts.kv_cache)
