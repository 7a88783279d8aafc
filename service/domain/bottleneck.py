"""What holds a deployment back at one operating point: the bound of its batch, or the longest part of its mean step."""

from typing import Literal

from service.domain.batching import Serving
from service.domain.collectives import all_reduce_s
from service.domain.expert_work import touched_share
from service.domain.latency import Load
from service.domain.numeric import as_float
from service.domain.roofline import rows_s

Bottleneck = Literal[
    "weights_memory",
    "kv_capacity",
    "prefill_compute",
    "decode_compute",
    "decode_bandwidth",
    "interconnect",
    "host_overhead",
    "scheduler",
    "queue",
    "network",
]
"""weights_memory, kv_capacity: memory for weights, for tokens. prefill_compute: matrix units on prompts, or
max_num_batched_tokens that prompts fill. decode_compute: matrix units on running sequences. decode_bandwidth: reading
weights and cache. interconnect: exchanges between accelerators. host_overhead: scheduling and launches. scheduler:
max_num_seqs. queue: more is asked than capacity. network: the way between users and engine."""


def batch_bound(serving: Serving) -> Bottleneck:
    """Which ceiling the batch meets first."""
    limit = serving.limit
    cache, settings, budget = as_float(limit.by_cache), as_float(limit.by_settings), as_float(limit.by_budget)
    if cache <= min(settings, budget):
        return "kv_capacity"
    return "scheduler" if settings <= budget else "prefill_compute"


def longest_part(serving: Serving, load: Load) -> Bottleneck:
    """The part of the mean step (one float deployment) that takes longest; ties go to the first named."""
    parts = step_parts(serving, load)
    return max(parts, key=lambda name: parts[name])


def step_parts(serving: Serving, load: Load) -> dict[Bottleneck, float]:
    """Seconds of the mean step of one stage by what they are spent on (parts that overlap are counted in full)."""
    costs, step = serving.costs, load.step
    running = as_float(load.batch) / as_float(costs.stages)
    rows = running * serving.shape.rows_per_step
    share = as_float(step.prompt_share)
    prompts_s = rows_s(costs, rows + step.prompt_tokens) - rows_s(costs, rows if costs.chunked else 0.0)
    read_s = as_float(costs.read_s)
    compute_s = as_float(costs.row_s) * rows
    exchange_s = (
        as_float(costs.reduces * all_reduce_s(costs.reduce, costs.row_bytes * rows)) + as_float(costs.hop_s) * rows
    )
    if costs.experts is not None:
        reaching = rows * as_float(costs.experts.rows_factor)
        read_s += as_float(costs.experts.read_s * touched_share(costs.experts, reaching))
        compute_s += as_float(costs.experts.row_s) * reaching
        exchange_s += as_float(costs.experts.exchange_latency_s + costs.experts.exchange_s_per_row * rows)
    attention_s = as_float(costs.prefill_attention_s) * running / serving.shape.steps
    cache_s = as_float(costs.kv_read_s) * running
    return {
        "decode_bandwidth": read_s + cache_s,
        "prefill_compute": share * as_float(prompts_s) + attention_s,
        "decode_compute": compute_s,
        "interconnect": exchange_s,
        "host_overhead": as_float(costs.host_s) + (as_float(costs.sequence_s) - as_float(costs.kv_read_s)) * running,
    }
