"""Whether a deployment starts, and if not, which part is short and by how much."""

from typing import Literal

import msgspec

from service.domain.deployment import KvCapacity, MemoryParts
from service.domain.engine_support import engine_refusal
from service.domain.kv_pool import pool_of, resident_bytes
from service.domain.legal_layout import layout_fault
from service.domain.memory import Account, account, kv_capacity, parts_of
from service.domain.memory_checks import memory_checks
from service.domain.message import Message, Param
from service.domain.numeric import as_float
from service.domain.subject import Subject
from service.domain.units import GIB

Verdict = Literal["starts", "does_not_fit"]

ReasonCode = Literal[
    "engine_unsupported",
    "weights_format_unsupported",
    "kv_format_unsupported",
    "layout_illegal",
    "weights_exceed_memory",
    "free_memory_below_budget",
    "no_room_for_kv",
    "context_does_not_fit",
    "out_of_memory_at_load",
]
"""engine_unsupported: the engine does not run this card or model in this version. weights_format_unsupported,
kv_format_unsupported: not in this format. layout_illegal: heads, vocabulary, experts or layers do not divide.
weights_exceed_memory: they do not load. free_memory_below_budget: the start-up check fails before load.
no_room_for_kv: nothing is left for cache blocks. context_does_not_fit: one request of max_model_len does not.
out_of_memory_at_load: graph capture or the sampler's warm-up, after the pool is taken, finds too little."""

BLOCK_RULES = frozenset({"grouped_blocks", "uniform_blocks"})

FIRST_STEP_TOKENS = 16
"""First step of a search over lengths, a common block size."""
STEP_GROWTH = 4


class Outcome(msgspec.Struct, frozen=True):
    """A deployment weighed."""

    counted: Account
    parts: MemoryParts
    capacity: KvCapacity
    reason_code: ReasonCode | None
    reason: Message | None
    longest_context: int | None
    """Longest max_model_len that starts, where the asked one does not."""

    @property
    def verdict(self) -> Verdict:
        """``starts`` where nothing is short."""
        return "starts" if self.reason_code is None else "does_not_fit"


def weigh(subject: Subject) -> Outcome:
    """Weigh one deployment under its engine's rules."""
    return _weighed(subject, refused(subject))


def weigh_unless_refused(subject: Subject) -> Outcome | None:
    """Weigh one deployment; None where the engine refuses it whatever its memory."""
    return None if refused(subject) is not None else _weighed(subject, None)


_Short = tuple[ReasonCode, Message]


def _weighed(subject: Subject, refusal: _Short | None) -> Outcome:
    architecture, deployment, behaviour = subject.architecture, subject.deployment, subject.behaviour
    counted = account(architecture, deployment, behaviour)
    parts = parts_of(counted, architecture, deployment, behaviour)
    capacity = kv_capacity(architecture, deployment, behaviour, parts)
    short = refusal or _short_of_memory(subject, counted, parts, capacity)
    longest = None
    if short is not None and short[0] == "context_does_not_fit":
        longest = longest_context(subject, as_float(parts.kv_cache), 1)
        short = short[0], Message(short[1].code, {**short[1].params, "longest": longest})
    code, reason = short if short is not None else (None, None)
    return Outcome(
        counted=counted, parts=parts, capacity=capacity, reason_code=code, reason=reason, longest_context=longest
    )


def _gib(value: float) -> float:
    return round(value / GIB, 2)


def refused(subject: Subject) -> _Short | None:
    """Why the engine does not take this card, model, format or layout at all; launch settings have no part in it."""
    refusal = engine_refusal(
        subject.behaviour, subject.architecture.model_type, subject.accelerator, subject.weights, subject.kv_cache
    )
    if refusal is not None:
        return refusal.reason_code, refusal.reason
    span_data = subject.behaviour.experts_span_data
    fault = layout_fault(subject.architecture, subject.deployment.layout, span_data=span_data)
    return None if fault is None else ("layout_illegal", fault)


def _short_of_memory(subject: Subject, counted: Account, parts: MemoryParts, capacity: KvCapacity) -> _Short | None:
    """The first bound of ``memory_checks`` that is broken, with its numbers."""
    for check in memory_checks(subject.architecture, subject.behaviour, counted, parts, capacity):
        if check.short:
            needed, limit = as_float(check.value), as_float(check.limit)
            sentence: str = check.code
            if check.code == "no_room_for_kv" and not subject.architecture.cache:
                sentence = "activations_exceed_memory"
            numbers: dict[str, Param] = {
                "needed_gib": _gib(needed),
                "has_gib": _gib(limit),
                "short_gib": _gib(needed - limit),
                "asked": int(as_float(subject.deployment.settings.max_model_len)),
            }
            return check.code, Message(sentence, numbers)
    return None


def request_bytes(subject: Subject, pool_bytes: float, tokens: float, *, resident: bool) -> float:
    """Pool bytes of one request of ``tokens``: while it decodes, or as the engine's start-up check counts it."""
    architecture, deployment, behaviour = subject.architecture, subject.deployment, subject.behaviour
    if resident or behaviour.cache_rule not in BLOCK_RULES:
        return as_float(resident_bytes(architecture, deployment, behaviour, pool_bytes, tokens))
    return as_float(pool_of(architecture, deployment, behaviour, tokens).start_bytes)


def longest_context(subject: Subject, pool_bytes: float, sequences: int, *, resident: bool = False) -> int:
    """Longest context at which ``sequences`` requests fit a pool together; 0 where not even one token does.

    A request's bytes never fall with its length, and grow nearly in proportion to it: a search in growing steps from
    where the proportion points, then a bisection.
    """

    def needed_bytes(tokens: int) -> float:
        return request_bytes(subject, pool_bytes, tokens, resident=resident) * sequences

    low, high = 0, int(as_float(subject.deployment.settings.max_model_len))
    most = needed_bytes(high)
    if most <= pool_bytes:
        return high
    guess, step = max(int(high * max(pool_bytes, 0.0) / most), 1), FIRST_STEP_TOKENS
    if needed_bytes(guess) <= pool_bytes:
        low = guess
        while low + step < high and needed_bytes(low + step) <= pool_bytes:
            low += step
            step *= STEP_GROWTH
        high = min(high, low + step)
    else:
        high = guess
        while high - step > low and needed_bytes(high - step) > pool_bytes:
            high -= step
            step *= STEP_GROWTH
        low = max(low, high - step)
    while high - low > 1:
        middle = (low + high) // 2
        if needed_bytes(middle) <= pool_bytes:
            low = middle
        else:
            high = middle
    return low
