"""Why the KV pool, the tokens it holds or the requests it serves are printed otherwise than predicted.

The pool is what other parts leave, so its gap is first laid to the parts that are printed; what they do not explain is
looked for among the settings that are not.
"""

from collections.abc import Iterator

import msgspec

from service.domain.kv_pool import stage_share
from service.domain.log_case import (
    Case,
    Measure,
    Supposed,
    best_cause,
    gib,
    other_versions,
    pool_of_case,
    with_formats,
    with_graphs,
    with_settings,
)
from service.domain.log_part_causes import batch_suppositions, layers_in_host_memory
from service.domain.message import Message
from service.domain.numeric import as_float
from service.domain.units import GIB
from service.domain.verdict import Outcome

CLOSE_SHARE = 0.03
SAME_SHARE = 0.015
"""Figures this close are the same but for rounding and block sizes."""

DEFAULT_FRACTIONS = (0.9, 0.92)
"""vLLM's default gpu_memory_utilization before and since 0.21."""

LEAST_RANK_RATIO = 1.3
"""Ranks of one deployment do not differ more than this (vLLM issues 13061, 10702)."""

OTHERS_BYTES = 1.0 * GIB
"""Memory in use at start beyond the engine's own context from which on it is named."""


def pool_cause(case: Case, actual: float) -> Message:
    """The part that moved the pool most, or the setting that did."""
    if "fixed_pool" in case.facts.marks or as_float(case.subject.deployment.settings.kv_cache_memory_bytes):
        return Message("gap_fixed_pool")
    if case.subject.behaviour.memory_rule == "whole_context":
        return _context_cause(case, actual)
    gap = actual - pool_of_case(case.outcome)
    shares = _contributions(case)
    rest = gap - sum(shares.values())
    sign = 1.0 if gap > 0.0 else -1.0
    name = max(shares, key=lambda part: sign * shares[part], default=None)
    if name is not None and sign * shares[name] >= sign * rest:
        moved = Message(f"log_part_{name}")
        return Message("gap_pool_follows_part", {"part": moved, "share_gib": gib(shares[name]), "gap_gib": gib(gap)})
    return setting_cause(case, actual, pool_of_case) or _rest(case)


def setting_cause(case: Case, actual: float, measure: Measure) -> Message | None:
    """The unstated setting under which ``measure`` is as printed."""
    return best_cause(case, actual, measure, _suppositions(case), CLOSE_SHARE)


def _rest(case: Case) -> Message:
    printed = case.facts.printed
    if case.subject.behaviour.memory_rule != "utilization_of_total":
        return Message("gap_pool_rest")
    if printed.activation_bytes is None or printed.non_torch_bytes is None or printed.total_bytes is None:
        return Message("gap_pool_unprinted")
    return Message("gap_pool_rest")


def _contributions(case: Case) -> dict[str, float]:
    """Bytes that each printed part adds to the pool beyond prediction."""
    printed, settings = case.facts.printed, case.facts.launched.settings
    parts, behaviour = case.outcome.parts, case.subject.behaviour
    static = behaviour.memory_rule == "static_fraction"
    asked = as_float(case.subject.deployment.settings.memory_fraction)
    fraction = float(settings.get("mem_fraction_static" if static else "gpu_memory_utilization", asked))
    base = as_float(parts.budget) / asked if asked else as_float(parts.total)
    found = {"memory_fraction": (fraction - asked) * base}
    if static:
        if printed.free_bytes is not None:
            found["free"] = fraction * (printed.free_bytes - base)
    elif printed.total_bytes is not None:
        found["total"] = fraction * (printed.total_bytes - as_float(parts.total))
    if printed.weights_bytes is not None:
        found["weights"] = as_float(parts.weights) - printed.weights_bytes
    if static:
        return found
    if printed.activation_bytes is not None:
        found["activation"] = as_float(parts.activation) - printed.activation_bytes
    if printed.non_torch_bytes is not None:
        found["non_torch"] = as_float(parts.non_torch) - printed.non_torch_bytes
    counted = _graphs_counted(case)
    if counted is not None:
        found["cuda_graph"] = (as_float(parts.cuda_graph) if behaviour.graphs_in_budget else 0.0) - counted
    return found


def _graphs_counted(case: Case) -> float | None:
    """Graph bytes that the engine took off the pool, where the log tells."""
    if "graphs_beside_budget" in case.facts.marks:
        return 0.0
    estimate = case.facts.printed.graph_estimate_bytes
    return float(estimate) if "graphs_in_budget" in case.facts.marks and estimate is not None else None


def _suppositions(case: Case) -> Iterator[Supposed]:
    subject = case.subject
    told = {"graphs_in_budget", "graphs_beside_budget"} & case.facts.marks
    if subject.behaviour.memory_rule == "utilization_of_total":
        if not told:
            in_budget = not subject.behaviour.graphs_in_budget
            named = Message("gap_graphs_in_budget" if in_budget else "gap_graphs_beside_budget")
            yield with_graphs(subject, in_budget=in_budget), named
        asked = as_float(subject.deployment.settings.memory_fraction)
        for fraction in DEFAULT_FRACTIONS:
            if fraction != asked and not case.states("gpu_memory_utilization"):
                named = Message("gap_memory_fraction", {"fraction": fraction, "asked": asked})
                yield with_settings(subject, memory_fraction=fraction), named
        yield from batch_suppositions(case)
        yield from other_versions(case)
    free = case.facts.printed.free_bytes
    own = as_float(case.outcome.parts.total) - subject.behaviour.context_gib * GIB
    if free is not None and own - free > OTHERS_BYTES:
        others = own - free
        card = msgspec.structs.replace(
            subject.deployment.card,
            usable_memory_bytes=as_float(subject.deployment.card.usable_memory_bytes) - others,
        )
        deployment = msgspec.structs.replace(subject.deployment, card=card)
        named = Message("gap_other_process", {"taken_gib": gib(others)})
        yield msgspec.structs.replace(subject, deployment=deployment), named


def _context_cause(case: Case, actual: float) -> Message:
    """Of a pool that holds the whole context: layers in host memory, format, sliding layers, slots."""
    hosted = layers_in_host_memory(case)
    if hosted is not None:
        return hosted
    found = best_cause(case, actual, pool_of_case, _cache_suppositions(case), CLOSE_SHARE)
    if found is not None:
        return found
    return Message("gap_split_unevenly" if as_float(stage_share_of(case)) < 1.0 else "gap_context_cache")


def stage_share_of(case: Case) -> float:
    """Share of the layers on the fullest card."""
    return as_float(stage_share(case.subject.architecture, case.subject.deployment))


def _cache_suppositions(case: Case) -> Iterator[Supposed]:
    for other in case.alternatives.kv_caches:
        if other.kv_bits != case.subject.kv_cache.kv_bits:
            named = Message("gap_kv_format", {"format": other.id, "asked": case.subject.kv_cache.id})
            yield with_formats(case.subject, kv_cache=other), named
    if len(case.subject.architecture.cache) > 1:
        hybrid = as_float(case.subject.deployment.settings.hybrid_kv_cache)
        named = Message("gap_windows_billed_full" if hybrid else "gap_windows_billed_short")
        yield with_settings(case.subject, hybrid_kv_cache=1.0 - hybrid), named


def tokens_cause(case: Case, actual: float) -> Message:
    """The pool itself, the cached format, the fullest rank, or how unequal layers share blocks."""
    printed = case.facts.printed
    hosted = layers_in_host_memory(case)
    if hosted is not None:
        return hosted
    if printed.kv_cache_bytes is None or min(pool_of_case(case.outcome), printed.kv_cache_bytes, actual) <= 0.0:
        found = best_cause(case, actual, _tokens, _cache_suppositions(case), CLOSE_SHARE)
        return found or setting_cause(case, actual, _tokens) or _rest(case)
    predicted = pool_of_case(case.outcome) / max(_tokens(case.outcome), 1.0)
    ratio = printed.kv_cache_bytes / actual / predicted
    if abs(ratio - 1.0) <= SAME_SHARE:
        return Message("gap_follows_pool")
    for other in case.alternatives.kv_caches:
        own = case.subject.kv_cache.kv_bits
        if own and other.kv_bits and other.kv_bits != own and abs(ratio / (other.kv_bits / own) - 1.0) <= CLOSE_SHARE:
            return Message("gap_kv_format", {"format": other.id, "asked": case.subject.kv_cache.id})
    return _layout_cause(case, ratio)


def _layout_cause(case: Case, ratio: float) -> Message:
    """Why a token takes ``ratio`` times the predicted bytes, in the same format."""
    printed, layout = case.facts.printed, case.subject.deployment.layout
    own = int(as_float(case.outcome.capacity.block_tokens))
    if len(case.subject.architecture.cache) > 1:
        if printed.block_size is not None and own > 1 and printed.block_size != own:
            return Message("gap_block_size", {"block": printed.block_size, "predicted": own})
        if "padded_groups" in case.facts.marks:
            return Message("gap_padded_groups")
        return Message("gap_print_rule")
    if 1.0 < ratio < LEAST_RANK_RATIO and as_float(layout.tensor) * as_float(layout.pipeline) > 1.0:
        return Message("gap_least_rank")
    if "draft_model" in case.facts.marks:
        return Message("gap_draft_cache")
    return Message("gap_token_bytes")


def _tokens(outcome: Outcome) -> float:
    return as_float(outcome.capacity.capacity_tokens)


def concurrency_cause(case: Case, actual: float, predicted: float) -> Message:
    """The tokens, or how many blocks a request of unequal layers is counted for."""
    tokens = case.facts.printed.capacity_tokens
    own = _tokens(case.outcome)
    if tokens and own and abs((actual / predicted) / (tokens / own) - 1.0) <= 2 * SAME_SHARE:
        return Message("gap_follows_tokens")
    if len(case.subject.architecture.cache) > 1:
        return Message("gap_hybrid_concurrency")
    if as_float(case.subject.deployment.layout.data) > 1.0:
        return Message("gap_data_ranks")
    return Message("gap_follows_pool")
