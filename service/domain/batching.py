"""Steady state of continuous batching: everything as a function of the running batch of one data rank.

Each step carries the batch's decode rows and, on average, the prompt tokens that replace what finishes: batch x
computed input / steps of a request, whatever the step takes. Prompts are not spread evenly: most steps decode only,
some carry a prompt (or a chunk of one), so the mean step is that mixture. Output rate and mean time per token follow
from the batch, and grow with it; a rate, a closed loop or a latency target is met by bisection on the batch.
"""

import msgspec
import numpy as np

from service.domain.architecture import Architecture
from service.domain.numeric import Flag, Number, choose, clamp, greater, lesser
from service.domain.request_shape import RequestShape
from service.domain.roofline import StepCosts, rows_s

HALVINGS = 22
"""Bisection steps on the batch: 2e-7 of its ceiling."""

CORRECTIONS = 10
"""False-position steps: the batch for a rate within 1e-4 of its value, mostly 1e-8."""

_SMALLEST = 1e-30


class Ceiling(msgspec.Struct, frozen=True):
    """The largest running batch of one data rank, and what bounds it (sequences)."""

    batch: Number
    by_settings: Number
    """max_num_seqs."""
    by_cache: Number
    """Requests of mean length in progress that the KV pool holds."""
    by_budget: Number
    """At which prompts alone fill max_num_batched_tokens of every step."""


class Serving(msgspec.Struct, frozen=True):
    """A deployment (or many) that serves requests of one shape."""

    architecture: Architecture
    shape: RequestShape
    costs: StepCosts
    limit: Ceiling
    arrival_cv2: float = 1.0
    """Squared coefficient of variation of the gaps between arrivals."""
    open_loop: bool = True
    """Requests come whatever the service does, and may wait for a place in the batch."""
    decoding_share: Number = 1.0
    """Share of its stay that a lone request decodes; the rest it computes its prompt."""

    def others(self, batch: Number) -> Number:
        """Share of all prompts that land in a running request's steps: in a closed loop not its own, (n - 1) / n.

        The number of clients is estimated from the running batch and the share of their stay that they run.
        """
        if self.open_loop:
            return 1.0
        clients = greater(batch / self.decoding_share, 1.0)
        return (clients - 1.0) / clients


class Step(msgspec.Struct, frozen=True):
    """Times of the steps at one running batch (one pipeline stage)."""

    mean_s: Number
    decode_s: Number
    """A step without prompt tokens."""
    prompt_s: Number
    """A step with them."""
    prompt_tokens: Number
    """Prompt tokens of a step that has any."""
    prompt_share: Number
    """Share of steps that have any (without chunked prefill: such steps per decode step)."""


def step_at(serving: Serving, batch: Number) -> Step:
    """Steps of the slowest stage when each data rank runs ``batch`` sequences over all its pipeline stages."""
    chunked = serving.costs.chunked
    if not isinstance(chunked, np.ndarray):
        return _steps(serving, batch, chunked=bool(chunked))
    cut, whole = _steps(serving, batch, chunked=True), _steps(serving, batch, chunked=False)
    return Step(**{name: choose(chunked, getattr(cut, name), getattr(whole, name)) for name in Step.__struct_fields__})


def _steps(serving: Serving, batch: Number, *, chunked: bool) -> Step:
    """``step_at`` of deployments that all cut their prompts into chunks, or none of which does."""
    costs, shape = serving.costs, serving.shape
    running = batch / costs.stages
    # A step is only run when somebody decodes: at a mean below one, one sequence at a time.
    decoding = greater(running, 1.0)
    decode_rows = decoding * shape.rows_per_step
    others = serving.others(batch)
    arriving = running * (shape.computed_input / shape.steps) * others
    sequences_s = costs.fixed_s + costs.sequence_s * decoding
    decode_s = sequences_s + rows_s(costs, decode_rows)
    attention_s = costs.prefill_attention_s * (running / shape.steps) * others
    if chunked:
        room = greater(costs.budget_tokens - decode_rows, 1.0)
        tokens = greater(lesser(shape.computed_input, room), arriving)
        share = arriving / tokens
        prompt_s = sequences_s + rows_s(costs, decode_rows + tokens)
        mean_s = decode_s + share * (prompt_s - decode_s) + attention_s
    else:
        tokens = lesser(greater(arriving, shape.computed_input), costs.budget_tokens)
        share = arriving / tokens
        prompt_s = costs.fixed_s + rows_s(costs, tokens)
        mean_s = decode_s + share * prompt_s + attention_s
    return Step(
        mean_s=mean_s,
        decode_s=decode_s,
        prompt_s=prompt_s + attention_s / greater(share, 1e-12),
        prompt_tokens=tokens,
        prompt_share=share,
    )


def request_rate(serving: Serving, batch: Number, mean_step_s: Number) -> Number:
    """Requests per second of the whole deployment at a running batch (Little's law over a request's steps)."""
    return serving.costs.ranks * batch / (serving.shape.steps * serving.costs.stages * mean_step_s)


def rate_at(serving: Serving, batch: Number) -> Number:
    """Requests per second of the whole deployment at a running batch of each data rank."""
    return request_rate(serving, batch, step_at(serving, batch).mean_s)


def batch_for_rate(serving: Serving, rate: Number) -> Number:
    """Running batch at which the deployment keeps up with ``rate``; the ceiling where it cannot.

    Root of batch - rate x stay(batch) by false position with the Illinois rule; nearly a straight line, so few steps
    do.
    """
    limit = serving.limit.batch
    arriving = rate / serving.costs.ranks * (serving.shape.steps * serving.costs.stages)
    low, high = 0.0 * limit, limit * 1.0
    low_gap = -arriving * step_at(serving, low).mean_s
    high_gap = high - arriving * step_at(serving, high).mean_s
    found = high
    moved_low: Flag = low_gap > 0.0
    moved_high = moved_low
    for _ in range(CORRECTIONS):
        share = low_gap / lesser(low_gap - high_gap, -_SMALLEST)
        found = low + (high - low) * clamp(share, 0.0, 1.0)
        gap = found - arriving * step_at(serving, found).mean_s
        short: Flag = gap < 0.0
        # An end that stays twice in a row counts half, or it would stay for good.
        high_gap = choose(short, choose(moved_low, high_gap / 2.0, high_gap), gap)
        low_gap = choose(short, gap, choose(moved_high, low_gap / 2.0, low_gap))
        high = choose(short, high, found)
        low = choose(short, found, low)
        moved_low, moved_high = short, gap >= 0.0
    # One application of Little's law gives small batches full relative precision.
    return lesser(arriving * step_at(serving, found).mean_s, limit)
