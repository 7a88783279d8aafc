"""The VRAM budget of one deployment: verdict, parts of a card's memory, KV capacity, what would make it fit."""

import msgspec

from service.domain.answer import Assumed, Interval
from service.domain.capacity_interval import capacity_interval
from service.domain.launch import Launch, launch
from service.domain.memory import draft_bytes
from service.domain.memory_risks import Risk, memory_risks
from service.domain.message import Message
from service.domain.numeric import as_float
from service.domain.remedies import NO_PROPOSALS, Proposals, Remedy, remedies
from service.domain.subject import Subject
from service.domain.units import GIB
from service.domain.verdict import Outcome, ReasonCode, Verdict, weigh
from service.domain.weights import SHARED_AS
from service.domain.workload_fit import Asked, WorkloadFit, workload_fit


class PerGpu(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes of the fullest accelerator. The parts add up to ``total_bytes``.

    Where the deployment does not fit, the KV cache is 0 and ``unused_bytes`` is what the parts leave of the card: below
    zero where they exceed it.
    """

    total_bytes: int
    """Memory as the engine's process sees it."""
    budget_bytes: int
    """What the engine lets itself use."""
    weights_bytes: int
    activation_bytes: int
    """Peak of the profiling run, or the compute buffer."""
    cuda_graph_bytes: int
    """Estimate of captured graphs; inside the budget or beside it, by version."""
    non_torch_bytes: int
    """Communicators and libraries outside the tensor allocator."""
    kv_cache_bytes: int
    unused_bytes: int
    total_gib: float
    budget_gib: float
    weights_gib: float
    activation_gib: float
    cuda_graph_gib: float
    non_torch_gib: float
    kv_cache_gib: float
    unused_gib: float


class KvCacheBudget(msgspec.Struct, frozen=True, kw_only=True):
    """What the KV pool of one data rank holds."""

    format: str
    """Quantization id of cached keys and values."""
    bytes_per_token: int
    """Growth of one long sequence per token on one accelerator."""
    capacity_tokens: int
    """Tokens as the engine prints them at start-up."""
    block_size: int
    """Tokens of the smallest block."""
    max_concurrency: float
    """Requests of ``at_tokens`` at once, over all data ranks, as the engine prints it."""
    at_tokens: int
    request_bytes: int
    """Pool bytes that the engine counts for one such request."""
    interval: Interval
    """Of ``capacity_tokens``."""


class VramBudget(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a deployment starts, and where the memory of each card goes."""

    verdict: Verdict
    reason_code: ReasonCode | None
    reason: Message | None
    longest_context: int | None
    """Longest max_model_len that starts, where the asked one does not."""
    warnings: tuple[Risk, ...]
    gpus: int
    per_gpu: PerGpu
    weights: dict[str, int]
    """``per_gpu.weights_bytes`` by tensor class."""
    kv_cache: KvCacheBudget
    workload_fit: WorkloadFit | None
    remedies: tuple[Remedy, ...]
    launch: Launch
    assumptions: tuple[Assumed, ...]


def vram_budget(
    subject: Subject,
    asked: Asked | None = None,
    proposals: Proposals = NO_PROPOSALS,
    assumptions: tuple[Assumed, ...] = (),
) -> VramBudget:
    """Budget of one deployment; ``asked``: whether so many requests of such a length fit at once.

    Remedies, from ``proposals`` among others, are looked for only where the deployment or the asked workload does not
    fit.
    """
    outcome = weigh(subject)
    fit = None if asked is None else workload_fit(subject, as_float(outcome.parts.kv_cache), asked)
    fits = outcome.reason_code is None and (fit is None or fit.fits)
    found = () if fits else remedies(subject, outcome, asked, proposals)
    weights = weights_by_class(subject, outcome)
    return VramBudget(
        verdict=outcome.verdict,
        reason_code=outcome.reason_code,
        reason=outcome.reason,
        longest_context=outcome.longest_context,
        warnings=memory_risks(subject, outcome),
        gpus=int(as_float(subject.deployment.layout.gpus)),
        per_gpu=_per_gpu(outcome, sum(weights.values())),
        weights=weights,
        kv_cache=_kv_cache(subject, outcome),
        workload_fit=fit,
        remedies=found,
        launch=launch(subject),
        assumptions=assumptions,
    )


def _per_gpu(outcome: Outcome, weights: int) -> PerGpu:
    parts = outcome.parts
    total, activation = int(as_float(parts.total)), int(as_float(parts.activation))
    graph, non_torch = int(as_float(parts.cuda_graph)), int(as_float(parts.non_torch))
    pool = max(int(as_float(parts.kv_cache)), 0)
    budget = int(as_float(parts.budget))
    unused = total - weights - activation - graph - non_torch - pool
    return PerGpu(
        total_bytes=total,
        budget_bytes=budget,
        weights_bytes=weights,
        activation_bytes=activation,
        cuda_graph_bytes=graph,
        non_torch_bytes=non_torch,
        kv_cache_bytes=pool,
        unused_bytes=unused,
        total_gib=round(total / GIB, 3),
        budget_gib=round(budget / GIB, 3),
        weights_gib=round(weights / GIB, 3),
        activation_gib=round(activation / GIB, 3),
        cuda_graph_gib=round(graph / GIB, 3),
        non_torch_gib=round(non_torch / GIB, 3),
        kv_cache_gib=round(pool / GIB, 3),
        unused_gib=round(unused / GIB, 3),
    )


def weights_by_class(subject: Subject, outcome: Outcome) -> dict[str, int]:
    """Whole bytes of the binding stage by tensor class, with adapters, drafts and what is kept in host memory."""
    counted, settings = outcome.counted, subject.deployment.settings
    shares = counted.stage_weights
    stage = _stage(outcome)
    found: dict[str, float] = {
        name: as_float(size) * as_float(shares.share(name, stage, subject.architecture.layers))
        for name, size in shares.by_class.items()
        if name in SHARED_AS
    }
    first = stage == 0
    last = stage == 2 or as_float(subject.deployment.layout.pipeline) < 2.0  # noqa: PLR2004 - the stages are 0, 1, 2
    if first:
        found["embedding"] = as_float(shares.by_class["embedding"])
        found["vision"] = as_float(shares.by_class["vision"])
    if last:
        head = as_float(shares.by_class["lm_head"])
        found["lm_head"] = head if first or head else as_float(shares.by_class["embedding"])
    found["rotary_tables"] = as_float(shares.rotary)
    found["adapters"] = as_float(settings.lora_bytes)
    found["draft"] = as_float(draft_bytes(subject.architecture, subject.deployment))
    offload = as_float(settings.cpu_offload_bytes)
    if offload:
        held = sum(found.values()) - found["adapters"] - found["draft"]
        found["in_host_memory"] = -min(offload, held)
    return {name: int(size) for name, size in found.items() if size}


def stage_share_of(subject: Subject, outcome: Outcome, name: str) -> float:
    """Share of a tensor class's layers on the binding stage; 1.0 for what stands beside the layers."""
    return as_float(outcome.counted.stage_weights.share(name, _stage(outcome), subject.architecture.layers))


def _stage(outcome: Outcome) -> int:
    """The stage that binds: 0 (first), 1 (middle) or 2 (last)."""
    return 0 if outcome.counted.first_binds else 2 if outcome.counted.last_binds else 1


def _kv_cache(subject: Subject, outcome: Outcome) -> KvCacheBudget:
    capacity, deployment = outcome.capacity, subject.deployment
    tokens = as_float(capacity.capacity_tokens)
    return KvCacheBudget(
        format=subject.kv_cache.id,
        bytes_per_token=int(as_float(capacity.bytes_per_token)),
        capacity_tokens=int(tokens),
        block_size=int(as_float(capacity.block_tokens)),
        max_concurrency=round(as_float(capacity.max_concurrency), 2),
        at_tokens=int(as_float(capacity.at_tokens)),
        request_bytes=int(as_float(capacity.request_bytes)),
        interval=capacity_interval(subject.architecture, outcome.parts, deployment, subject.behaviour, tokens),
    )
