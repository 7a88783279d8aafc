"""How latencies and rates come about: parts of the first token, the mixture of steps, Little's law."""

import msgspec

from service.domain.batching import Serving, step_at
from service.domain.calibration import Profile
from service.domain.derivation import Derived, derived
from service.domain.engine import Speculative
from service.domain.numeric import Number, ceil, greater
from service.domain.operating_point import Most, OperatingPoint, most_of
from service.domain.performance import PerformanceEstimate, operating_point, serving_of
from service.domain.roofline import rows_s
from service.domain.slo import UserTime, bounds, user_time
from service.domain.subject import Subject
from service.domain.units import MS_PER_S
from service.domain.verdict import weigh
from service.domain.work import Work

BATCHING = "continuous batching (Orca, OSDI 2022) in steady state: service/domain/batching.py"
STEP = "roofline (Williams et al., 2009) with the efficiencies of profile_revision: service/domain/roofline.py"
LATENCY = "service/domain/latency.py"
LITTLE = "Little's law, L = lambda W (Operations Research 9(3), 1961)"
QUEUE = "mean waits: Pollaczek-Khinchine and Allen-Cunneen (service/domain/queueing.py)"
DEFINITION = "definition"

Numbers = dict[str, Number]


class Timed(msgspec.Struct, frozen=True):
    """One deployment under its load, as ``performance`` saw it."""

    service: Serving
    point: OperatingPoint
    beyond_s: float
    """Mean wait above capacity."""
    most: Most
    user: UserTime


def timed(subject: Subject, profile: Profile, asked: Work, speculative: Speculative | None = None) -> Timed:
    """The operating point of a deployment that fits."""
    service = serving_of(subject, weigh(subject), profile, asked, speculative)
    user = user_time(asked.application)
    most = most_of(service, bounds(asked.targets), user)
    point, beyond = operating_point(service, asked, most)
    return Timed(
        service=service,
        point=point,
        beyond_s=0.0 if beyond is None else beyond["mean"],
        most=most,
        user=user,
    )


def performance_derivation(found: Timed, asked: Work, estimate: PerformanceEstimate) -> tuple[Derived, ...]:
    """Steps of ``estimate``, which is the answer of ``performance`` at ``found``."""
    return (
        *_first_token(found, estimate),
        *_each_token(found, estimate),
        *_whole_request(found, estimate),
        *_rates(found, asked, estimate),
    )


def _first_token(found: Timed, estimate: PerformanceEstimate) -> tuple[Derived, ...]:
    parts, costs = estimate.ttft_breakdown, found.service.costs
    if parts is None or estimate.ttft_ms is None:
        return ()
    delays, shape, load = found.point.delays, found.service.shape, found.point.load
    running = load.batch / costs.stages if costs.chunked else 0.0
    room = greater(costs.budget_tokens - running * shape.rows_per_step, 1.0)
    passes = ceil(shape.computed_input / room) + costs.stages - 1.0
    chunks: Numbers = {
        "computed_input_tokens": shape.computed_input,
        "prefill_tokens_per_step": room,
        "pipeline": costs.stages,
        "chunk_ms": delays.own_mean_s / passes * MS_PER_S,
    }
    waits: Numbers = {
        "rest_of_step_ms": delays.rest_s * MS_PER_S,
        "other_prompts_ms": delays.prompts.mean_s * MS_PER_S,
        "place_in_batch_ms": delays.places.mean_s * MS_PER_S,
        "above_capacity_ms": found.beyond_s * MS_PER_S,
    }
    total: Numbers = {"host_ms": parts.host_ms, "queue_ms": parts.queue_ms, "prefill_ms": parts.prefill_ms}
    prefill = "(ceil(computed_input_tokens / prefill_tokens_per_step) + pipeline - 1) * chunk_ms"
    return (
        derived("/ttft_breakdown/queue_ms", " + ".join(waits), waits, parts.queue_ms, "ms", QUEUE),
        derived("/ttft_breakdown/prefill_ms", prefill, chunks, parts.prefill_ms, "ms", STEP),
        derived("/ttft_ms/mean", " + ".join(total), total, estimate.ttft_ms.mean, "ms", LATENCY),
    )


def _each_token(found: Timed, estimate: PerformanceEstimate) -> tuple[Derived, ...]:
    if estimate.tpot_ms is None or estimate.single_stream is None or estimate.single_stream.tpot_ms is None:
        return ()
    costs, shape, step = found.service.costs, found.service.shape, found.point.load.step
    mixture: Numbers = {
        "pipeline": costs.stages,
        "decode_step_ms": step.decode_s * MS_PER_S,
        "prompt_share": step.prompt_share,
        "prompt_step_ms": step.prompt_s * MS_PER_S,
        "tokens_per_step": shape.tokens_per_step,
    }
    longer = "(prompt_step_ms - decode_step_ms)" if costs.chunked else "prompt_step_ms"
    mean = f"pipeline * (decode_step_ms + prompt_share * {longer}) / tokens_per_step"
    parts = found.point.delays
    spread: Numbers = {
        "tpot_mean_ms": parts.tpot_mean_s * MS_PER_S,
        "deviation_ms": parts.tpot_deviation_s * MS_PER_S,
        "every_step_with_prompts_ms": parts.tpot_most_s * MS_PER_S,
        "normal_score": 1.6448536269514722,
    }
    alone: Numbers = {
        "pipeline": costs.stages,
        "host_ms": costs.fixed_s * MS_PER_S,
        "sequence_ms": costs.sequence_s * MS_PER_S,
        "matrices_ms": rows_s(costs, shape.rows_per_step) * MS_PER_S,
        "tokens_per_step": shape.tokens_per_step,
    }
    p95 = "min(tpot_mean_ms + normal_score * deviation_ms, every_step_with_prompts_ms)"
    single = "pipeline * (host_ms + sequence_ms + matrices_ms) / tokens_per_step"
    return (
        derived("/single_stream/tpot_ms", single, alone, estimate.single_stream.tpot_ms, "ms", STEP),
        derived("/tpot_ms/mean", mean, mixture, estimate.tpot_ms.mean, "ms", BATCHING),
        derived("/tpot_ms/p95", p95, spread, estimate.tpot_ms.p95, "ms", LATENCY),
    )


def _whole_request(found: Timed, estimate: PerformanceEstimate) -> tuple[Derived, ...]:
    first, each, whole = estimate.ttft_ms, estimate.tpot_ms, estimate.e2e_ms
    if first is None or whole is None:
        return ()
    inputs: Numbers = {"ttft_ms": first.mean}
    expression = "ttft_ms"
    if each is not None:
        expression = "ttft_ms + (output_tokens - 1) * tpot_ms"
        inputs |= {"output_tokens": found.service.shape.output.mean, "tpot_ms": each.mean}
    steps = [derived("/e2e_ms/mean", expression, inputs, whole.mean, "ms", DEFINITION)]
    visible = estimate.user_visible
    if visible is not None and visible.ttft_ms is not None and visible.e2e_ms is not None:
        beside: Numbers = {
            "application_ms": found.user.overhead_s * MS_PER_S,
            "llm_calls": found.user.calls,
            "e2e_ms": whole.mean,
        }
        last = "application_ms + max(llm_calls - 1, 0) * e2e_ms + ttft_ms"
        to_first = {**beside, "ttft_ms": first.mean}
        steps += [
            derived("/user_visible/ttft_ms/mean", last, to_first, visible.ttft_ms.mean, "ms", DEFINITION),
            derived(
                "/user_visible/e2e_ms/mean",
                "application_ms + llm_calls * e2e_ms",
                beside,
                visible.e2e_ms.mean,
                "ms",
                DEFINITION,
            ),
        ]
    return tuple(steps)


def _rates(found: Timed, asked: Work, estimate: PerformanceEstimate) -> tuple[Derived, ...]:
    flow, most = estimate.throughput, estimate.max_requests_per_second
    if flow is None or most is None:
        return ()
    service, shape = found.service, found.service.shape
    per_second, rate = flow.output_tokens_per_second, flow.requests_per_second
    steps = []
    pace_of_one = flow.output_tokens_per_second_per_user
    if estimate.tpot_ms is not None and pace_of_one is not None:
        output: Numbers = {"requests_per_second": rate, "output_tokens": shape.output.mean}
        pace: Numbers = {"ms_per_s": MS_PER_S, "tpot_ms": estimate.tpot_ms.mean}
        name = "/throughput/output_tokens_per_second"
        steps += [
            derived(name, " * ".join(output), output, per_second, "tokens/s", DEFINITION),
            derived(
                f"{name}_per_user",
                "ms_per_s / tpot_ms",
                pace,
                pace_of_one,
                "tokens/s",
                DEFINITION,
            ),
        ]
    both: Numbers = {
        "output_tokens_per_second": per_second,
        "requests_per_second": rate,
        "input_tokens": shape.input.mean,
    }
    every = "output_tokens_per_second + requests_per_second * input_tokens"
    name = "/throughput/total_tokens_per_second"
    steps.append(derived(name, every, both, flow.total_tokens_per_second, "tokens/s", DEFINITION))
    if estimate.active_requests is not None and estimate.e2e_ms is not None:
        stay: Numbers = {"requests_per_second": rate, "e2e_ms": estimate.e2e_ms.mean, "ms_per_s": MS_PER_S}
        law = "requests_per_second * e2e_ms / ms_per_s"
        steps.append(derived("/active_requests", law, stay, estimate.active_requests, "requests", LITTLE))
    full: Numbers = {
        "data": service.costs.ranks,
        "running_per_rank": found.most.batch,
        "steps_per_request": shape.steps,
        "pipeline": service.costs.stages,
        "step_ms": step_at(service, found.most.batch).mean_s * MS_PER_S,
        "ms_per_s": MS_PER_S,
    }
    law = "data * running_per_rank / (steps_per_request * pipeline * step_ms / ms_per_s)"
    steps.append(derived("/max_requests_per_second", law, full, most, "requests/s", LITTLE))
    if estimate.batch is not None and asked.batch_requests is not None:
        pile: Numbers = {"requests": asked.batch_requests, "requests_per_second": rate}
        lasts = estimate.batch.duration_s
        steps.append(derived("/batch/duration_s", "requests / requests_per_second", pile, lasts, "s", DEFINITION))
    return tuple(steps)
