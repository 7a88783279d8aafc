"""How the capacity of a KV pool comes about: bytes per token, whole blocks, requests at once."""

import math

from service.domain.derivation import Derived, derived
from service.domain.kv_cache import SPARSE_FP8_EXTRA_BYTES, WIDE_BYTES, WINDOWED, GroupPlan, group_plan
from service.domain.kv_pool import STATE_POOL_RATIO, context_parts, pool_of, slot_parts, stage_share
from service.domain.numeric import Number, as_float
from service.domain.subject import Subject
from service.domain.verdict import BLOCK_RULES, Outcome, request_bytes
from service.domain.vram_budget import VramBudget
from service.domain.workload_fit import Asked

CACHED_ROWS = "PagedAttention (arXiv 2309.06180), section 3; latents: DeepSeek-V2 (arXiv 2405.04434), section 2.1"
BLOCKS = "vLLM v1/core/kv_cache_utils.py get_num_blocks, get_max_concurrency_for_kv_cache_config"
SLOTS = "SGLang srt/model_executor/model_runner.py profile_max_num_token"
CONTEXT = "llama.cpp src/llama-kv-cache"
FIT = "service/domain/workload_fit.py"


def cache_steps(subject: Subject, outcome: Outcome, budget: VramBudget, asked: Asked | None) -> tuple[Derived, ...]:
    """Steps of the pool's capacity; none for a model that caches nothing."""
    if not subject.architecture.cache:
        return ()
    if subject.behaviour.cache_rule in BLOCK_RULES:
        capacity = _block_steps(subject, outcome, budget)
    elif subject.behaviour.cache_rule == "token_slots":
        capacity = _slot_steps(subject, outcome, budget)
    else:
        capacity = _context_steps(subject, outcome, budget)
    return (_per_token(subject, budget), *capacity, *_fit_steps(subject, outcome, budget, asked))


def _plan(subject: Subject) -> GroupPlan:
    settings = subject.deployment.settings
    return group_plan(subject.architecture.cache, settings.draft_layers, subject.behaviour.group_padding_ratio)


def _growing(subject: Subject, plan: GroupPlan) -> frozenset[str]:
    """Kinds of layers whose bytes per token the engine's figure counts."""
    kinds = frozenset(group.layers.kind for group in plan.kinds) - {"state"}
    behaviour, hybrid = subject.behaviour, as_float(subject.deployment.settings.hybrid_kv_cache) > 0.0
    if behaviour.cache_rule == "whole_context":
        return kinds - WINDOWED if behaviour.windowed_cache else kinds
    if behaviour.cache_rule == "token_slots":
        return plan.growing if plan.has_windows else kinds
    grouped = behaviour.cache_rule == "grouped_blocks" and not plan.uniform
    if grouped and (hybrid or plan.has_state or not plan.has_windows):
        return plan.growing
    return kinds - {"cross"}


def _per_token(subject: Subject, budget: VramBudget) -> Derived:
    """Sum over kinds of layers; those of one kind but different widths are numbered."""
    deployment, behaviour = subject.deployment, subject.behaviour
    plan, kv_bytes = _plan(subject), as_float(deployment.precision.kv_bytes)
    by_layers = behaviour.cache_rule == "whole_context"
    tensor = 1.0 if by_layers else as_float(deployment.layout.tensor)
    cards = as_float(deployment.layout.tensor) * as_float(deployment.layout.pipeline)
    count = subject.architecture.layers
    share = math.ceil(count / cards) / count if by_layers else as_float(stage_share(subject.architecture, deployment))
    inputs: dict[str, Number] = {"bytes_per_element": kv_bytes}
    terms = []
    for number, group in enumerate(plan.kinds, start=1):
        layers = group.layers
        if layers.kind not in _growing(subject, plan):
            continue
        name = layers.kind if len(plan.kinds) == 1 else f"{layers.kind}_{number}"
        inputs[f"{name}_layers"] = float(math.ceil(group.count * share))
        extra = float(layers.extra_bytes_per_token)
        if layers.kind == "latent" and by_layers and behaviour.latent_as_heads:
            heads = float(layers.query_heads * layers.score_dim)
            inputs[f"{name}_elements"] = heads
            terms.append(f"{name}_layers * {name}_elements * bytes_per_element")
            continue
        inputs[f"{name}_elements"] = float(layers.elements_per_head)
        each = f"{name}_elements * bytes_per_element"
        if layers.kind == "latent":
            extra += SPARSE_FP8_EXTRA_BYTES if extra and kv_bytes < WIDE_BYTES else 0.0
        else:
            inputs |= {f"{name}_kv_heads": float(layers.kv_heads), "tensor": tensor}
            each = f"ceil({name}_kv_heads / tensor) * {each}"
        if extra:
            inputs[f"{name}_extra_bytes"] = extra
            each = f"({each} + {name}_extra_bytes)"
        terms.append(f"{name}_layers * {each}")
    size = budget.kv_cache.bytes_per_token
    return derived("/kv_cache/bytes_per_token", " + ".join(terms) or "0", inputs, size, "bytes", CACHED_ROWS)


def _pool(outcome: Outcome) -> float:
    return max(as_float(outcome.parts.kv_cache), 0.0)


def _block_steps(subject: Subject, outcome: Outcome, budget: VramBudget) -> tuple[Derived, ...]:
    architecture, deployment, behaviour = subject.architecture, subject.deployment, subject.behaviour
    tokens = as_float(outcome.capacity.at_tokens)
    pool = pool_of(architecture, deployment, behaviour, tokens)
    if as_float(pool.block_bytes) <= 0.0:
        return ()
    each = max(as_float(pool.request_blocks), 1.0)
    blocks = "floor(kv_cache_bytes / block_bytes)"
    sizes: dict[str, Number] = {"kv_cache_bytes": _pool(outcome), "block_bytes": pool.block_bytes}
    several = as_float(pool.groups) > 1.0
    if several and behaviour.print_rule == "concurrency_times_length":
        printed = f"floor({blocks} / request_blocks * at_tokens)"
        inputs: dict[str, Number] = {**sizes, "request_blocks": each, "at_tokens": tokens}
    else:
        printed = f"floor({blocks} / layer_groups) * block_size" if several else f"{blocks} * block_size"
        inputs = {**sizes, "block_size": pool.block_tokens}
        if several:
            inputs["layer_groups"] = pool.groups
    cache = budget.kv_cache
    requests = f"round({blocks} / request_blocks * data, 2)"
    requests_inputs: dict[str, Number] = {**sizes, "request_blocks": each, "data": deployment.layout.data}
    request_inputs: dict[str, Number] = {"request_blocks": pool.request_blocks, "block_bytes": pool.block_bytes}
    return (
        derived("/kv_cache/capacity_tokens", printed, inputs, cache.capacity_tokens, "tokens", BLOCKS),
        derived(
            "/kv_cache/request_bytes",
            "request_blocks * block_bytes",
            request_inputs,
            cache.request_bytes,
            "bytes",
            BLOCKS,
        ),
        derived("/kv_cache/max_concurrency", requests, requests_inputs, cache.max_concurrency, "requests", BLOCKS),
    )


def _slot_steps(subject: Subject, outcome: Outcome, budget: VramBudget) -> tuple[Derived, ...]:
    """Tokens by the share of the pool that is not recurrent state, and requests by what either part holds."""
    deployment, capacity, cache = subject.deployment, outcome.capacity, budget.kv_cache
    _, slot, state = slot_parts(subject.architecture, deployment, subject.behaviour)
    has_state = _plan(subject).has_state
    of_tokens = "kv_cache_bytes / (1 + state_pool_ratio)" if has_state else "kv_cache_bytes"
    pool: dict[str, Number] = {"kv_cache_bytes": _pool(outcome)}
    if has_state:
        pool["state_pool_ratio"] = STATE_POOL_RATIO
    at_once: dict[str, Number] = {
        "capacity_tokens": capacity.capacity_tokens,
        "at_tokens": max(as_float(capacity.at_tokens), 1.0),
        "data": deployment.layout.data,
    }
    requests = "capacity_tokens / at_tokens"
    if has_state:
        requests = f"min({requests}, floor((kv_cache_bytes - {of_tokens}) / state_bytes))"
        at_once |= {**pool, "state_bytes": max(as_float(state), 1.0)}
    steps = [
        derived(
            "/kv_cache/max_concurrency",
            f"round({requests} * data, 2)",
            at_once,
            cache.max_concurrency,
            "requests",
            SLOTS,
        )
    ]
    if as_float(slot) > 0.0:
        inputs = {**pool, "slot_bytes": max(as_float(slot), 1.0)}
        tokens = cache.capacity_tokens
        expression = f"floor({of_tokens} / slot_bytes)"
        steps.insert(0, derived("/kv_cache/capacity_tokens", expression, inputs, tokens, "tokens", SLOTS))
    return tuple(steps)


def _context_steps(subject: Subject, outcome: Outcome, budget: VramBudget) -> tuple[Derived, ...]:
    architecture, deployment, behaviour = subject.architecture, subject.deployment, subject.behaviour
    cell, fixed = context_parts(architecture, deployment, behaviour)
    pool, cache = _pool(outcome), budget.kv_cache
    if as_float(cell) <= 0.0 or pool <= as_float(fixed):
        return ()
    settings = deployment.settings
    inputs: dict[str, Number] = {
        "kv_cache_bytes": pool,
        "fixed_bytes": fixed,
        "bytes_per_token": cell,
        "ctx_size": settings.max_model_len,
    }
    printed = "min(floor((kv_cache_bytes - fixed_bytes) / bytes_per_token), ctx_size)"
    at_once: dict[str, Number] = {
        "capacity_tokens": outcome.capacity.capacity_tokens,
        "at_tokens": max(as_float(outcome.capacity.at_tokens), 1.0),
        "parallel": settings.max_num_seqs,
        "data": deployment.layout.data,
    }
    requests = "round(min(capacity_tokens / at_tokens, parallel) * data, 2)"
    return (
        derived("/kv_cache/capacity_tokens", printed, inputs, cache.capacity_tokens, "tokens", CONTEXT),
        derived("/kv_cache/max_concurrency", requests, at_once, cache.max_concurrency, "requests", CONTEXT),
    )


def _fit_steps(subject: Subject, outcome: Outcome, budget: VramBudget, asked: Asked | None) -> tuple[Derived, ...]:
    fit = budget.workload_fit
    if asked is None or fit is None:
        return ()
    of_all: dict[str, Number] = {
        "context_tokens": float(asked.context_tokens),
        "concurrent_sequences": float(asked.concurrent_sequences),
    }
    required = "context_tokens * concurrent_sequences"
    steps = [derived("/workload_fit/required_tokens", required, of_all, fit.required_tokens, "tokens", FIT)]
    pool = _pool(outcome)
    each = request_bytes(subject, pool, float(asked.context_tokens), resident=True)
    if each > 0.0 and asked.context_tokens <= as_float(subject.deployment.settings.max_model_len):
        at_once: dict[str, Number] = {
            "kv_cache_bytes": pool,
            "request_bytes": each,
            "data": subject.deployment.layout.data,
        }
        expression = "floor(kv_cache_bytes / request_bytes) * data"
        most = fit.max_concurrency_at_context
        steps.append(derived("/workload_fit/max_concurrency_at_context", expression, at_once, most, "requests", FIT))
    return tuple(steps)
