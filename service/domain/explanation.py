"""Answers in words: what they say, what could make them wrong, what the model leaves out, and what to check next."""

from collections.abc import Iterator

from service.domain.concurrency import ActiveRequests
from service.domain.cost import CostProjection, CostProjectionRequest
from service.domain.derivation import Explanation
from service.domain.message import Message, Param
from service.domain.numeric import as_float
from service.domain.performance import PerformanceEstimate
from service.domain.subject import Subject
from service.domain.vram_budget import VramBudget
from service.domain.weights import FLOAT_BYTES
from service.domain.work import Work


def explain_memory(subject: Subject, budget: VramBudget) -> Explanation:
    """A VRAM budget in words."""
    card = budget.per_gpu
    numbers: dict[str, Param] = {
        "model": subject.model,
        "gpu": subject.accelerator.id,
        "gpus": budget.gpus,
        "weights_gib": card.weights_gib,
        "pool_gib": card.kv_cache_gib,
        "tokens": budget.kv_cache.capacity_tokens,
    }
    summary = Message("explain_memory_starts", numbers)
    if budget.reason is not None:
        summary = Message("explain_does_not_fit", {"model": subject.model, "gpu": numbers["gpu"], "why": budget.reason})
    return Explanation(
        summary=summary,
        risks=tuple(risk.message for risk in budget.warnings),
        not_considered=tuple(left_out_of_memory(subject)),
    )


def memory_checks_to_do(subject: Subject, budget: VramBudget) -> tuple[Message, ...]:
    """What to check of a memory estimate before paying for cards."""
    return (
        Message("check_card_memory", {"gpu": subject.accelerator.id, "total_gib": budget.per_gpu.total_gib}),
        Message("check_engine_version", {"engine": subject.behaviour.engine, "version": subject.behaviour.version}),
        Message("check_start_log", {"tokens": budget.kv_cache.capacity_tokens}),
    )


def left_out_of_memory(subject: Subject) -> Iterator[Message]:
    """What the memory model does not know about this deployment."""
    yield Message("not_considered_other_processes")
    yield Message("not_considered_fragmentation")
    yield from left_out_of_formats(subject)
    if as_float(subject.deployment.settings.lora_bytes):
        yield Message("not_considered_adapter_swaps")
    if subject.architecture.parameters.vision:
        yield Message("not_considered_media")


def left_out_of_formats(subject: Subject) -> Iterator[Message]:
    """Answer quality, where a format is not the one that the model was published in."""
    weights, cache, architecture = subject.weights, subject.kv_cache, subject.architecture
    published = weights.id == architecture.checkpoint_format or weights.id in FLOAT_BYTES
    if not published or cache.id not in {*FLOAT_BYTES, architecture.checkpoint_kv_cache}:
        yield Message("not_considered_quality", {"weights": weights.id, "kv_cache": cache.id})


def left_out_of_performance(subject: Subject, asked: Work) -> Iterator[Message]:
    """What the performance model does not know about this workload."""
    yield from left_out_of_formats(subject)
    gpus, node = as_float(subject.deployment.layout.gpus), subject.accelerator.max_gpus_per_node
    if gpus > node:
        yield Message("not_considered_multi_node", {"gpus": int(gpus), "node": node})
    if asked.application is None:
        yield Message("not_considered_network")
    yield Message("not_considered_warm_up")
    if asked.open_loop:
        yield Message("not_considered_retries")
    if asked.prefix_hit > 0.0:
        yield Message("not_considered_prefix_hits", {"share": asked.prefix_hit})
    request = subject.request
    if request is not None and request.speculative is not None:
        yield Message("not_considered_acceptance")
    if as_float(subject.deployment.settings.lora_bytes):
        yield Message("not_considered_adapter_swaps")
    if subject.architecture.parameters.vision:
        yield Message("not_considered_media")


def speed_of(estimate: PerformanceEstimate) -> Message:
    """Latencies and rate in half a sentence."""
    rate = 0.0 if estimate.throughput is None else estimate.throughput.requests_per_second
    if estimate.ttft_ms is None:
        return Message("explain_speed_unbounded", {"rate": rate})
    if estimate.tpot_ms is None:
        return Message("explain_speed_reads", {"rate": rate, "ttft_ms": estimate.ttft_ms.p95})
    numbers = {"rate": rate, "ttft_ms": estimate.ttft_ms.p95, "tpot_ms": estimate.tpot_ms.p95}
    return Message("explain_speed", numbers)


def explain_performance(subject: Subject, asked: Work, estimate: PerformanceEstimate) -> Explanation:
    """A performance estimate in words."""
    summary = Message(
        "explain_performance",
        {
            "model": subject.model,
            "gpus": int(as_float(subject.deployment.layout.gpus)),
            "gpu": subject.accelerator.id,
            "speed": speed_of(estimate),
            "most": estimate.max_requests_per_second or 0.0,
        },
    )
    if estimate.reason is not None:
        named: dict[str, Param] = {"model": subject.model, "gpu": subject.accelerator.id, "why": estimate.reason}
        summary = Message("explain_does_not_fit", named)
    return Explanation(
        summary=summary,
        risks=tuple(_performance_risks(estimate)),
        not_considered=tuple(left_out_of_performance(subject, asked)),
    )


def _performance_risks(estimate: PerformanceEstimate) -> Iterator[Message]:
    if estimate.saturated:
        yield Message("explain_risk_saturated", {"most": estimate.max_requests_per_second or 0.0})
    found = estimate.intervals.get("max_requests_per_second")
    if found is not None:
        code = "explain_risk_analytic" if found.basis == "analytic" else "explain_risk_interval"
        yield Message(code, {"low": found.low, "high": found.high})
    if estimate.batch is not None and not estimate.batch.meets_deadline:
        yield Message("explain_risk_deadline", {"duration_s": estimate.batch.duration_s})


def performance_checks_to_do(estimate: PerformanceEstimate) -> tuple[Message, ...]:
    """What to measure before relying on a performance estimate."""
    rate = 0.0 if estimate.throughput is None else estimate.throughput.requests_per_second
    return Message("check_benchmark", {"rate": rate}), Message("check_lengths")


def explain_concurrency(active: ActiveRequests | None, duration_s: float | None, why: Message | None) -> Explanation:
    """A concurrency estimate in words; ``why``: what keeps it from one."""
    left_out = (Message("not_considered_correlation"), Message("not_considered_retries"))
    if active is None or duration_s is None:
        summary = Message("explain_no_concurrency", {"why": why or Message("duration_missing")})
        return Explanation(summary=summary, risks=(), not_considered=left_out)
    numbers = {"mean": active.mean, "p95": active.p95, "p99": active.p99, "duration_s": duration_s}
    return Explanation(
        summary=Message("explain_concurrency", numbers),
        risks=(Message("explain_risk_duration"),),
        not_considered=left_out,
    )


def concurrency_checks_to_do() -> tuple[Message, ...]:
    """What to measure before relying on a concurrency estimate."""
    return Message("check_duration"), Message("check_running")


def explain_cost(request: CostProjectionRequest, found: CostProjection) -> Explanation:
    """A cost projection in words."""
    price = found.usd_per_million_output_tokens
    total = found.monthly_usd.total
    summary = (
        Message("explain_cost", {"total": total})
        if price is None
        else Message("explain_cost_per_token", {"total": total, "price": price})
    )
    risks = []
    if request.throughput is not None and request.utilization is None:
        risks.append(Message("explain_risk_full_load"))
    return Explanation(summary=summary, risks=tuple(risks), not_considered=tuple(left_out_of_cost(request)))


def left_out_of_cost(request: CostProjectionRequest) -> Iterator[Message]:
    """What the bill does not hold."""
    yield Message("not_considered_taxes")
    yield Message("not_considered_price_changes")
    free = (request.engineering_usd_per_month, request.backup_usd_per_month, request.platform_usd_per_month)
    if not all(free):
        yield Message("not_considered_people")
    if not request.failure_reserve_share:
        yield Message("not_considered_failures")


def cost_checks_to_do(request: CostProjectionRequest) -> tuple[Message, ...]:
    """What to check before signing for a price."""
    shown = Message("check_price") if request.offer is None else Message("check_offer", {"offer": request.offer})
    return shown, Message("check_utilization")
