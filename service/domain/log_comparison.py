"""A start-up log against the budget that is predicted for the same launch, part by part, each gap with its cause."""

from collections.abc import Callable
from typing import Literal

import msgspec

from service.domain.engine_logs import Failure, LogFacts
from service.domain.log_case import Alternatives, Case, gib
from service.domain.log_part_causes import (
    activation_cause,
    budget_cause,
    graph_cause,
    layers_in_host_memory,
    non_torch_cause,
    total_cause,
    weights_cause,
)
from service.domain.log_pool_causes import OTHERS_BYTES, concurrency_cause, pool_cause, tokens_cause
from service.domain.memory import kv_capacity
from service.domain.message import Message, Param
from service.domain.numeric import as_float
from service.domain.subject import Subject
from service.domain.units import GIB
from service.domain.verdict import Verdict, longest_context, weigh

PartName = Literal["total", "budget", "weights", "activation", "cuda_graph", "non_torch", "kv_cache"]
CapacityName = Literal["capacity_tokens", "max_concurrency", "longest_context"]


class Band(msgspec.Struct, frozen=True):
    """How far prediction and print may lie apart and still agree: a share of what is printed, or so many bytes."""

    share: float
    floor_bytes: float = 0.0


BANDS: dict[PartName, Band] = {
    "total": Band(0.005),
    "budget": Band(0.005),
    "weights": Band(0.02, 0.03 * GIB),
    "activation": Band(0.10, 0.10 * GIB),
    "cuda_graph": Band(0.50, 0.30 * GIB),
    "non_torch": Band(0.15, 0.10 * GIB),
    "kv_cache": Band(0.03, 0.05 * GIB),
}
"""About the 90 % residuals of the memory cases, part by part."""
CAPACITY_SHARE = 0.03


class ComparedPart(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes of one accelerator, of the rank that binds."""

    name: PartName
    predicted_bytes: int
    actual_bytes: int | None
    """As printed; null where the log does not print it."""
    difference_bytes: int | None
    """Printed less predicted."""
    agrees: bool | None
    """Whether they lie as close as the accuracy of this part allows; null where nothing is printed."""
    cause_code: str
    cause: Message
    """Flag or fact that explains the gap."""


class ComparedCapacity(msgspec.Struct, frozen=True, kw_only=True):
    """A count that follows from the KV pool."""

    name: CapacityName
    predicted: float
    actual: float | None
    agrees: bool | None
    cause_code: str
    cause: Message


class ComparedVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """Whether the engine starts."""

    predicted: Verdict
    predicted_reason_code: str | None
    actual: Verdict | None
    """Null where the log ends before either shows."""
    actual_reason_code: str | None
    """As in a VRAM budget, or `out_of_memory`, `out_of_memory_at_warm_up`."""


class Finding(msgspec.Struct, frozen=True):
    """Something that the log tells beside its figures."""

    code: str
    message: Message


class LogComparison(msgspec.Struct, frozen=True, kw_only=True):
    """Predicted against printed."""

    verdict: ComparedVerdict
    parts: tuple[ComparedPart, ...]
    capacity: tuple[ComparedCapacity, ...]
    findings: tuple[Finding, ...]


PartCause = Callable[[Case, float], Message]


def compare_log(facts: LogFacts, subject: Subject, alternatives: Alternatives) -> LogComparison:
    """Compare a log with the budget of ``subject``, which is the launch that the log is of."""
    outcome = weigh(subject)
    case = Case(facts, subject, outcome, alternatives)
    predicted, printed = outcome.parts, facts.printed
    parts = (
        _part(case, "total", predicted.total, printed.total_bytes, total_cause),
        _part(case, "budget", predicted.budget, printed.budget_bytes, budget_cause),
        _part(case, "weights", predicted.weights, printed.weights_bytes, weights_cause),
        _part(case, "activation", predicted.activation, printed.activation_bytes, activation_cause),
        _part(case, "cuda_graph", predicted.cuda_graph, _graphs(facts), graph_cause),
        _part(case, "non_torch", predicted.non_torch, printed.non_torch_bytes, non_torch_cause),
        _part(case, "kv_cache", predicted.kv_cache, printed.kv_cache_bytes, pool_cause),
    )
    return LogComparison(
        verdict=_verdict(case), parts=parts, capacity=_capacity(case), findings=(*_findings(case), *_spreads(facts))
    )


def _graphs(facts: LogFacts) -> int | None:
    printed = facts.printed
    return printed.graph_estimate_bytes if printed.cuda_graph_bytes is None else printed.cuda_graph_bytes


def _part(case: Case, name: PartName, predicted: object, actual: int | None, why: PartCause) -> ComparedPart:
    number = float(predicted)  # type: ignore[arg-type] # one deployment: a float
    band = BANDS[name]
    agrees = None
    if actual is None:
        cause = _not_printed(case)
    else:
        agrees = abs(actual - number) <= max(band.share * abs(actual), band.floor_bytes)
        cause = Message("gap_none") if agrees else why(case, float(actual))
    return ComparedPart(
        name=name,
        predicted_bytes=int(number),
        actual_bytes=actual,
        difference_bytes=None if actual is None else actual - int(number),
        agrees=agrees,
        cause_code=cause.code,
        cause=cause,
    )


def _not_printed(case: Case) -> Message:
    engine = case.facts.launched.engine
    return Message("gap_not_printed_vllm" if engine == "vllm" else "gap_not_printed")


def _count(
    name: CapacityName, predicted: float, actual: float | None, why: Callable[[float], Message]
) -> ComparedCapacity:
    agrees = None if actual is None else abs(actual - predicted) <= CAPACITY_SHARE * actual
    cause = Message("gap_not_printed") if actual is None else Message("gap_none")
    if actual is not None and not agrees:
        cause = why(actual)
    return ComparedCapacity(
        name=name, predicted=predicted, actual=actual, agrees=agrees, cause_code=cause.code, cause=cause
    )


def _capacity(case: Case) -> tuple[ComparedCapacity, ...]:
    printed, outcome, subject = case.facts.printed, case.outcome, case.subject
    tokens = printed.capacity_tokens
    found = [
        _count(
            "capacity_tokens",
            float(int(as_float(outcome.capacity.capacity_tokens))),
            None if tokens is None else float(tokens),
            lambda actual: tokens_cause(case, actual),
        )
    ]
    at = None if printed.at_tokens is None else float(printed.at_tokens)
    capacity = kv_capacity(subject.architecture, subject.deployment, subject.behaviour, outcome.parts, at)
    concurrency = round(as_float(capacity.max_concurrency), 2)
    found.append(
        _count(
            "max_concurrency",
            concurrency,
            printed.max_concurrency,
            lambda actual: concurrency_cause(case, actual, max(concurrency, 0.01)),
        )
    )
    if printed.longest_context is not None:
        longest = longest_context(subject, as_float(outcome.parts.kv_cache), 1)
        found.append(
            _count(
                "longest_context",
                float(longest),
                float(printed.longest_context),
                lambda _: Message("gap_follows_pool"),
            )
        )
    return tuple(found)


def _verdict(case: Case) -> ComparedVerdict:
    failure = case.facts.failure
    actual: Verdict | None = None
    if failure is not None:
        actual = "does_not_fit"
    elif case.facts.started:
        actual = "starts"
    return ComparedVerdict(
        predicted=case.outcome.verdict,
        predicted_reason_code=case.outcome.reason_code,
        actual=actual,
        actual_reason_code=None if failure is None else failure.code,
    )


def _findings(case: Case) -> tuple[Finding, ...]:
    facts, printed = case.facts, case.facts.printed
    found = [] if facts.failure is None else [_failed(facts, facts.failure)]
    found += [Finding(mark, Message(f"log_{mark}")) for mark in sorted(facts.marks)]
    total = printed.total_bytes or int(as_float(case.outcome.parts.total))
    own = case.subject.behaviour.context_gib * GIB + as_float(case.outcome.parts.non_torch)
    if printed.free_bytes is not None and total - printed.free_bytes - own > OTHERS_BYTES:
        numbers: dict[str, Param] = {"used_gib": gib(total - printed.free_bytes), "total_gib": gib(total)}
        found.append(Finding("memory_in_use", Message("log_memory_in_use", numbers)))
    hosted = layers_in_host_memory(case)
    if hosted is not None:
        found.append(Finding("layers_in_host_memory", hosted))
    return tuple(found)


def _failed(facts: LogFacts, failure: Failure) -> Finding:
    """The failure with its figures, where they are printed."""
    printed, numbers = facts.printed, dict[str, Param]()
    if failure.code == "context_does_not_fit" and printed.needed_kv_bytes is not None:
        numbers = {"needed_gib": gib(printed.needed_kv_bytes), "has_gib": gib(printed.kv_cache_bytes or 0)}
        return Finding(failure.code, Message("log_failed_context_by", numbers))
    if failure.code == "free_memory_below_budget" and printed.free_bytes is not None:
        numbers = {"free_gib": gib(printed.free_bytes), "total_gib": gib(printed.total_bytes or 0)}
        return Finding(failure.code, Message("log_failed_free_by", numbers))
    if failure.tried_bytes is not None:
        numbers = {"tried_gib": gib(failure.tried_bytes), "free_gib": gib(failure.free_bytes or 0)}
        if failure.free_bytes is not None:
            return Finding(failure.code, Message(f"log_failed_{failure.code}_by", numbers))
    return Finding(failure.code, Message(f"log_failed_{failure.code}"))


def _spreads(facts: LogFacts) -> list[Finding]:
    found = []
    for field, spread in sorted(facts.spreads.items()):
        if field == "capacity_tokens":
            numbers: dict[str, Param] = {"low": spread.low, "high": spread.high}
            found.append(Finding("ranks_differ", Message("log_ranks_differ_in_tokens", numbers)))
            continue
        part = Message(f"log_part_{field.removesuffix('_bytes')}")
        numbers = {"part": part, "low_gib": gib(spread.low), "high_gib": gib(spread.high)}
        found.append(Finding("ranks_differ", Message("log_ranks_differ", numbers)))
    return found
