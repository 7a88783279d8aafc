"""Why a part of memory is printed otherwise than predicted: weights, activations, graphs, libraries, the card itself."""

from collections.abc import Iterator

from service.domain.log_case import (
    Case,
    Supposed,
    best_cause,
    gib,
    other_versions,
    with_formats,
    with_settings,
    with_tensor,
)
from service.domain.message import Message
from service.domain.numeric import as_float

TENSOR_RANKS = (1.0, 2.0, 4.0, 8.0, 16.0)

BATCHED_TOKENS = (2048.0, 8192.0, 16384.0)
"""vLLM's defaults of max_num_batched_tokens by class of card and way of use (arg_utils.py)."""

OTHER_FORMAT_SHARE = 0.08
"""Formats lie further apart than this; a smaller gap is a matter of which tensors are quantized."""

CLOSE_SHARE = 0.02
"""How near a supposed cause must come to a printed weight figure."""
PEAK_SHARE = 0.10
"""The same of an activation peak."""


def weights_cause(case: Case, actual: float) -> Message:
    """Layers or bytes kept in host memory, another format, another number of ranks; else the checkpoint itself."""
    hosted = layers_in_host_memory(case)
    if hosted is not None:
        return hosted
    if as_float(case.subject.deployment.settings.cpu_offload_bytes):
        return Message("gap_offload_not_printed")
    split = as_float(case.subject.deployment.layout.pipeline) > 1.0
    if split and case.subject.behaviour.memory_rule == "whole_context":
        return Message("gap_split_unevenly")
    more = actual - as_float(case.outcome.parts.weights)
    found = None
    if abs(more) > OTHER_FORMAT_SHARE * actual:
        found = best_cause(
            case, actual, lambda outcome: as_float(outcome.parts.weights), _weight_suppositions(case), CLOSE_SHARE
        )
    if found is not None:
        return found
    if more > 0.0 and "draft_model" in case.facts.marks:
        found = Message("gap_draft_weights", {"more_gib": gib(more)})
    elif more > 0.0 and "lora" in case.facts.marks:
        found = Message("gap_adapter_weights", {"more_gib": gib(more)})
    elif split:
        found = Message("gap_uneven_stages")
    return found or Message("gap_checkpoint", {"format": case.subject.weights.id})


def layers_in_host_memory(case: Case) -> Message | None:
    """Where llama.cpp put some layers on the card only."""
    printed = case.facts.printed
    if printed.layers is None or printed.layers_on_card is None or printed.layers_on_card >= printed.layers:
        return None
    return Message("gap_layers_in_host_memory", {"on_card": printed.layers_on_card, "layers": printed.layers})


def _weight_suppositions(case: Case) -> Iterator[Supposed]:
    for other in case.alternatives.weights:
        if other.id != case.subject.weights.id:
            named = Message("gap_weights_format", {"format": other.id, "asked": case.subject.weights.id})
            yield with_formats(case.subject, weights=other), named
    asked = as_float(case.subject.deployment.layout.tensor)
    if case.facts.launched.tensor is None:
        for ranks in TENSOR_RANKS:
            if ranks != asked:
                named = Message("gap_tensor_ranks", {"ranks": int(ranks), "asked": int(asked)})
                yield with_tensor(case.subject, ranks), named


def activation_cause(case: Case, actual: float) -> Message:
    """Other batch sizes, a profiled image, attention without FlashAttention; else the version's kernels."""
    if case.subject.behaviour.activation_rule == "compute_buffer":
        return Message("gap_compute_buffer")
    supposed = (*other_versions(case), *batch_suppositions(case))
    found = best_cause(case, actual, lambda outcome: as_float(outcome.parts.activation), supposed, PEAK_SHARE)
    if found is not None:
        return found
    if case.subject.architecture.vision_tokens_max:
        return Message("gap_vision_profile")
    if case.alternatives.behaviours:
        return Message("gap_version_unknown", {"version": case.subject.behaviour.version})
    return Message("gap_kernels")


def batch_suppositions(case: Case) -> Iterator[Supposed]:
    """Default batch sizes of another class of card or way of use, where the log does not state the size."""
    settings = case.subject.deployment.settings
    if case.states("max_num_batched_tokens") or case.subject.behaviour.memory_rule != "utilization_of_total":
        return
    for batched in BATCHED_TOKENS:
        if batched != as_float(settings.max_num_batched_tokens):
            named = Message("gap_batch_size", {"tokens": int(batched)})
            yield with_settings(case.subject, max_num_batched_tokens=batched), named


def graph_cause(case: Case, actual: float) -> Message:
    """A difference below zero, no capture at all, or capture sizes other than the default's."""
    if actual < 0.0:
        return Message("gap_graph_difference")
    if as_float(case.subject.deployment.settings.cuda_graphs) == 0.0:
        return Message("gap_graphs_captured")
    estimate = case.facts.printed.graph_estimate_bytes
    if estimate is not None:
        return Message("gap_graph_profile", {"estimate_gib": gib(estimate), "took_gib": gib(actual)})
    return Message("gap_capture_sizes")


def non_torch_cause(case: Case, actual: float) -> Message:
    """Communicators of several ranks, or libraries and other processes."""
    if "weights_with_libraries" in case.facts.marks:
        return Message("gap_weights_with_libraries")
    layout = case.subject.deployment.layout
    if as_float(layout.tensor) * as_float(layout.pipeline) * as_float(layout.data) > 1.0:
        return Message("gap_communicators")
    if actual > as_float(case.outcome.parts.non_torch):
        return Message("gap_other_allocations")
    return Message("gap_libraries")


def total_cause(case: Case, actual: float) -> Message:
    """The driver shows another amount: ECC, a slice, a virtual card, or another card."""
    return Message("gap_card_total", {"gpu": case.subject.accelerator.id, "actual_gib": gib(actual)})


def budget_cause(case: Case, actual: float) -> Message:
    """Another fraction, or the same fraction of another total."""
    printed = case.facts.printed
    total = printed.total_bytes or as_float(case.outcome.parts.total)
    fraction = as_float(case.subject.deployment.settings.memory_fraction)
    taken = actual / total
    if abs(taken - fraction) > 0.002:  # noqa: PLR2004 - the rounding of both printed figures
        return Message("gap_memory_fraction", {"fraction": round(taken, 3), "asked": fraction})
    return Message("gap_card_total", {"gpu": case.subject.accelerator.id, "actual_gib": gib(total)})
