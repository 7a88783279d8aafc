"""Distribution of TTFT, TPOT and end-to-end time at one operating point.

TTFT = host + rest of the running step + waiting for other prompts (one server: the token budget) + waiting for a place
in the batch (many servers) + the prompt's own steps. TPOT varies with the prompts that land in a request's own steps
and with the number of requests around it. End to end = TTFT + (output - 1) x TPOT, over the output's distribution.
Percentiles come from these parts: deviations from the means add as their squares do (as in
``strata.sum_of_independent``), waits are zero with some probability and else exponential, lengths follow their own
distributions; so two distributions of one mean give two percentiles.
"""

import math
from typing import Literal

import msgspec

from service.domain.attention_work import prefill_flops
from service.domain.batching import Serving, Step, request_rate, step_at
from service.domain.lengths import Lengths
from service.domain.numeric import Number, ceil, choose, greater, lesser, log, sqrt
from service.domain.queueing import Wait, many_server_wait, single_server_wait
from service.domain.request_shape import RequestShape
from service.domain.roofline import rows_s

Level = Literal["mean", "p50", "p95", "p99"]
LEVELS: tuple[Level, ...] = ("mean", "p50", "p95", "p99")

_EXCEEDED = {"p50": 0.5, "p95": 0.05, "p99": 0.01}
_NORMAL_SCORE = {"mean": 0.0, "p50": 0.0, "p95": 1.6448536269514722, "p99": 2.3263478740408408}

OCCUPANCY_AVERAGING = 0.6
"""Variance of the number in progress that is left after averaging over one request's stay, over that at one moment:
2/3 for stays of equal length (M/D/infinity covariance 1 - t/S), 1/2 or less for spread ones."""

CLOSED_LOOP_WAVE = 0.2
"""A closed loop starts all its clients at once, and equal requests go on finishing together: about this share of
requests meets such a wave, and waits for half of it on average. Over 60 fixed-concurrency rows (perf_cases aic-
silicon-*, vLLM and SGLang) the mean extra TTFT is 0.1 x clients x prefill time, whatever the number of clients."""


class Load(msgspec.Struct, frozen=True):
    """One operating point of a deployment."""

    batch: Number
    """Running sequences of one data rank."""
    rate: Number
    """Requests per second of the whole deployment."""
    step: Step
    places: Wait | None
    """Waiting for a place in the batch; None where the number of clients bounds it (closed loop)."""


class Delays(msgspec.Struct, frozen=True):
    """Parts of the latencies at one operating point, from which any percentile follows."""

    host_s: Number
    rest_s: Number
    """Mean rest of the running step."""
    prompts: Wait
    places: Wait
    """Waiting for a place in the batch; in a closed loop, for the wave of the other clients."""
    queue_s: Number
    """Mean wait before the prompt's own steps: rest of a step, other prompts, a place in the batch."""
    own_mean_s: Number
    ttft_mean_s: Number
    tpot_mean_s: Number
    tpot_deviation_s: Number
    tpot_most_s: Number
    """Time per token if every step carried prompts."""


def load_at(serving: Serving, batch: Number, known_rate: Number | None = None) -> Load:
    """Operating point of a running batch; its rate follows by Little's law where it is not known."""
    step = step_at(serving, batch)
    rate = request_rate(serving, batch, step.mean_s) if known_rate is None else known_rate
    return Load(
        batch=batch, rate=rate, step=step, places=places_wait(serving, step, rate) if serving.open_loop else None
    )


def places_wait(serving: Serving, step: Step, rate: Number) -> Wait:
    """Wait for a place among the ceilings of all data ranks at an open-loop rate."""
    output, costs = serving.shape.output, serving.costs
    stay_s = serving.shape.steps * costs.stages * step.mean_s
    output_cv2 = output.second_moment / (output.mean * output.mean) - 1.0
    return many_server_wait(rate, stay_s, costs.ranks * serving.limit.batch, serving.arrival_cv2, output_cv2)


def no_wait(like: Number) -> Wait:
    """A wait of nothing, for as many candidates as ``like`` has."""
    zero = 0.0 * like
    return Wait(mean_s=zero, probability=zero, scale_s=zero, utilization=zero, saturated=zero < 0.0)


def wave(serving: Serving, load: Load, service_s: Number) -> Wait:
    """Wait for the prompts of the other clients of a closed loop that come at the same time.

    A wave of n prompts of ``service_s`` lasts n x service; spread output lengths take the clients apart.
    """
    output, costs = serving.shape.output, serving.costs
    spread = math.sqrt(max(output.second_moment - output.mean * output.mean, 0.0)) / serving.shape.tokens_per_step
    others_s = greater(load.batch - 1.0, 0.0) * service_s
    together = others_s / greater(others_s + spread * costs.stages * load.step.mean_s, 1e-12)
    probability = CLOSED_LOOP_WAVE * together
    scale_s = others_s / 2.0
    return Wait(
        mean_s=probability * scale_s,
        probability=probability,
        scale_s=scale_s,
        utilization=0.0 * scale_s,
        saturated=scale_s < 0.0,
    )


def delays(serving: Serving, load: Load) -> Delays:
    """Parts of all latencies at an operating point."""
    costs, shape, step = serving.costs, serving.shape, load.step
    running = load.batch / costs.stages
    decode_rows = running * shape.rows_per_step
    room = choose(costs.chunked, greater(costs.budget_tokens - decode_rows, 1.0), costs.budget_tokens)
    full_s = costs.fixed_s + costs.full_rows_s + choose(costs.chunked, costs.sequence_s * running, 0.0)
    spread = shape.input.second_moment / (shape.input.mean * shape.input.mean)
    service_s = shape.computed_input * full_s / room + costs.prefill_attention_s
    prompts = single_server_wait(
        load.rate / costs.ranks, service_s, service_s * service_s * spread, serving.arrival_cv2
    )
    # An arrival meets a running step as often as the engine runs; in a closed loop, as often as others keep it running.
    met = lesser(load.batch if serving.open_loop else greater(load.batch - 1.0, 0.0), 1.0)
    rest_s = met * step.decode_s / 2.0
    places = wave(serving, load, service_s) if load.places is None else load.places
    queue_s = rest_s + prompts.mean_s + places.mean_s
    own_s = own_steps_s(serving, load, shape.input.mean)
    arriving = step.prompt_share * step.prompt_tokens
    per_token_s = (step.prompt_s - choose(costs.chunked, step.decode_s, 0.0)) / step.prompt_tokens
    burst = lesser(shape.computed_input * spread, room)
    landed = serving.arrival_cv2 * per_token_s * per_token_s * arriving * burst * shape.inverse_steps
    idle_s = lesser(costs.fixed_s + costs.read_s, step.mean_s)
    crowd = step.mean_s - idle_s
    crowding = serving.arrival_cv2 if serving.open_loop else 0.0
    crowded = crowding * OCCUPANCY_AVERAGING * crowd * crowd / greater(load.batch, 1.0)
    per_output_s = costs.stages / shape.tokens_per_step
    most_s = choose(costs.chunked, step.prompt_s, step.prompt_s + step.decode_s)
    return Delays(
        host_s=costs.host_request_s,
        rest_s=rest_s,
        prompts=prompts,
        places=places,
        queue_s=queue_s,
        own_mean_s=own_s,
        ttft_mean_s=costs.host_request_s + queue_s + own_s,
        tpot_mean_s=per_output_s * step.mean_s,
        tpot_deviation_s=per_output_s * sqrt(landed + crowded),
        tpot_most_s=per_output_s * greater(most_s, step.mean_s),
    )


def own_steps_s(serving: Serving, load: Load, tokens: float) -> Number:
    """Time of a prompt's own steps, its chunks running behind each other through the pipeline stages."""
    costs, shape = serving.costs, serving.shape
    running = choose(costs.chunked, load.batch / costs.stages, 0.0)
    decode_rows = running * shape.rows_per_step
    computed = shape.computed(tokens)
    room = greater(costs.budget_tokens - decode_rows, 1.0)
    chunks = ceil(computed / room)
    chunk_s = costs.fixed_s + costs.sequence_s * running + rows_s(costs, decode_rows + computed / chunks)
    passes = chunks + costs.stages - 1.0
    attention_s = prefill_flops(serving.architecture, shape, tokens) * costs.attention_s_per_flop / chunks
    return passes * (chunk_s + attention_s)


def ttft_s(serving: Serving, load: Load, parts: Delays, level: Level) -> Number:
    """Time to first token at a level of its distribution."""
    if level == "mean":
        return parts.ttft_mean_s
    below = 1.0 - _EXCEEDED[level]
    rest = parts.rest_s * 2.0 * (below - 0.5)
    tokens = quantile_of(serving.shape.input, level)
    own = 0.0 if tokens == serving.shape.input.mean else own_steps_s(serving, load, tokens) - parts.own_mean_s
    prompts, places = _wait_deviation(parts.prompts, level), _wait_deviation(parts.places, level)
    return parts.ttft_mean_s + root_of_squares(rest, own, prompts, places)


def tpot_s(parts: Delays, level: Level) -> Number:
    """Time per output token at a level of its distribution over requests (normal, and no slower than full steps)."""
    high = parts.tpot_mean_s + _NORMAL_SCORE[level] * parts.tpot_deviation_s
    return lesser(high, parts.tpot_most_s)


def e2e_s(shape: RequestShape, parts: Delays, ttft_level_s: Number, level: Level, calls: float = 1.0) -> Number:
    """Time from a request to its last token, ``ttft_level_s`` being its TTFT at that level.

    Of ``calls`` independent requests one after the other: means add, and so do squares of deviations.
    """
    after_first = shape.output.mean - 1.0
    mean_s = parts.ttft_mean_s + after_first * parts.tpot_mean_s
    if level == "mean":
        return calls * mean_s
    first = ttft_level_s - parts.ttft_mean_s
    length = (quantile_of(shape.output, level) - shape.output.mean) * parts.tpot_mean_s
    pace = after_first * (tpot_s(parts, level) - parts.tpot_mean_s)
    return calls * mean_s + math.sqrt(calls) * root_of_squares(first, length, pace)


def quantile_of(lengths: Lengths, level: Level) -> float:
    """A length distribution's value at a level."""
    return {"mean": lengths.mean, "p50": lengths.p50, "p95": lengths.p95, "p99": lengths.p99}[level]


def root_of_squares(*deviations: Number) -> Number:
    """Deviation of a sum of independent parts at one level: signed squares add."""
    total: Number = 0.0
    for deviation in deviations:
        total = total + deviation * _magnitude(deviation)
    root = sqrt(_magnitude(total))
    return choose(total >= 0.0, root, -root)


def _wait_deviation(wait: Wait, level: Level) -> Number:
    """How far the wait at a level is from its mean; above the median not below it: percentiles grow with load."""
    likely = greater(wait.probability / _EXCEEDED[level], 1.0)
    deviation = wait.scale_s * log(likely) - wait.mean_s
    return deviation if level == "p50" else greater(deviation, 0.0)


def _magnitude(value: Number) -> Number:
    return greater(value, -value)
