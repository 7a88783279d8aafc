"""How a VRAM budget comes about: weights, budget, pool, and what else takes a card's memory."""

from service.domain.derivation import Derived, derived
from service.domain.derivation_cache import cache_steps
from service.domain.derivation_weights import weight_steps
from service.domain.engine import FRACTION_FIELDS, MemoryRule
from service.domain.kv_pool import context_parts
from service.domain.numeric import Number, as_float
from service.domain.subject import Subject
from service.domain.units import GIB
from service.domain.verdict import Outcome, weigh
from service.domain.vram_budget import VramBudget
from service.domain.workload_fit import Asked

SOURCES: dict[MemoryRule, str] = {
    "utilization_of_total": "vLLM v1/worker/gpu_worker.py determine_available_memory",
    "static_fraction": "SGLang srt/model_executor/model_runner.py profile_max_num_token",
    "fraction_of_free": "TensorRT-LLM KvCacheConfig.free_gpu_memory_fraction",
    "whole_context": "llama.cpp src/llama-kv-cache",
}


def memory_derivation(subject: Subject, budget: VramBudget, asked: Asked | None = None) -> tuple[Derived, ...]:
    """Steps of ``budget``, which is the answer of ``vram_budget`` for ``subject``."""
    outcome = weigh(subject)
    return (
        *weight_steps(subject, outcome, budget.weights),
        _budget_step(subject, outcome, budget),
        *_pool_step(subject, outcome, budget),
        _unused_step(budget),
        *cache_steps(subject, outcome, budget, asked),
    )


def _taken(outcome: Outcome) -> dict[str, Number]:
    parts = outcome.parts
    return {
        "weights_bytes": parts.weights,
        "activation_bytes": parts.activation,
        "non_torch_bytes": parts.non_torch,
    }


def _budget_step(subject: Subject, outcome: Outcome, budget: VramBudget) -> Derived:
    rule, parts = subject.behaviour.memory_rule, outcome.parts
    inputs: dict[str, Number] = {"total_bytes": parts.total}
    if rule != "whole_context":
        inputs[FRACTION_FIELDS[rule]] = subject.deployment.settings.memory_fraction
    if rule != "utilization_of_total":
        inputs["context_bytes"] = subject.behaviour.context_gib * GIB
    if rule == "utilization_of_total":
        expression = "gpu_memory_utilization * total_bytes"
    elif rule == "static_fraction":
        inputs["non_torch_bytes"] = parts.non_torch
        expression = "mem_fraction_static * (total_bytes - context_bytes - non_torch_bytes)"
    elif rule == "fraction_of_free":
        inputs |= _taken(outcome)
        taken = "weights_bytes + activation_bytes + non_torch_bytes + context_bytes"
        expression = f"{taken} + free_gpu_memory_fraction * (total_bytes - ({taken}))"
    else:
        expression = "total_bytes - context_bytes"
    return derived("/per_gpu/budget_bytes", expression, inputs, budget.per_gpu.budget_bytes, "bytes", SOURCES[rule])


def _pool_step(subject: Subject, outcome: Outcome, budget: VramBudget) -> tuple[Derived, ...]:
    """The pool; none for a model that caches nothing, or where a pool of fixed size does not fit."""
    rule, parts, settings = subject.behaviour.memory_rule, outcome.parts, subject.deployment.settings
    given = as_float(settings.kv_cache_memory_bytes)
    fixed = given > 0.0 or rule == "whole_context"
    if not subject.architecture.cache or (fixed and as_float(parts.kv_cache) <= 0.0):
        return ()
    inputs: dict[str, Number]
    if given > 0.0:
        expression, inputs = "kv_cache_memory_bytes", {"kv_cache_memory_bytes": given}
    elif rule == "utilization_of_total":
        expression = "budget_bytes - weights_bytes - activation_bytes - non_torch_bytes"
        inputs = {"budget_bytes": parts.budget, **_taken(outcome)}
        if subject.behaviour.graphs_in_budget:
            expression, inputs = f"{expression} - cuda_graph_bytes", {**inputs, "cuda_graph_bytes": parts.cuda_graph}
    elif rule == "static_fraction":
        expression, inputs = (
            "budget_bytes - weights_bytes",
            {
                "budget_bytes": parts.budget,
                "weights_bytes": parts.weights,
            },
        )
    elif rule == "fraction_of_free":
        taken = " - ".join(("total_bytes", *_taken(outcome), "context_bytes"))
        expression = f"free_gpu_memory_fraction * ({taken})"
        inputs = {
            "free_gpu_memory_fraction": settings.memory_fraction,
            "total_bytes": parts.total,
            **_taken(outcome),
            "context_bytes": subject.behaviour.context_gib * GIB,
        }
    else:
        expression, inputs = _whole_context(subject)
    if as_float(parts.kv_cache) < 0.0:
        expression = f"max({expression}, 0)"
    pool = budget.per_gpu.kv_cache_bytes
    return (derived("/per_gpu/kv_cache_bytes", expression, inputs, pool, "bytes", SOURCES[rule]),)


def _whole_context(subject: Subject) -> tuple[str, dict[str, Number]]:
    architecture, deployment, behaviour = subject.architecture, subject.deployment, subject.behaviour
    cell, fixed = context_parts(architecture, deployment, behaviour)
    return "bytes_per_token * ctx_size + fixed_bytes", {
        "bytes_per_token": cell,
        "ctx_size": deployment.settings.max_model_len,
        "fixed_bytes": fixed,
    }


def _unused_step(budget: VramBudget) -> Derived:
    card = budget.per_gpu
    names = (
        "total_bytes",
        "weights_bytes",
        "activation_bytes",
        "cuda_graph_bytes",
        "non_torch_bytes",
        "kv_cache_bytes",
    )
    inputs = {name: float(getattr(card, name)) for name in names}
    source = "service/domain/vram_budget.py"
    return derived("/per_gpu/unused_bytes", " - ".join(names), inputs, card.unused_bytes, "bytes", source)
