"""How far the printed KV capacity may be from the predicted one.

The pool is what is left, so its error is that of the parts around it: relative errors of weights, activation, graphs
and communicators, and of the card's total, add up in squares. The shares are 90 % residuals of start-up logs (the
memory cases of ``tests/accuracy``); engines without such logs get wider ones.
"""

import math

from service.domain.answer import Interval
from service.domain.deployment import Deployment, MemoryParts
from service.domain.engine import EngineBehaviour
from service.domain.numeric import as_float
from service.domain.units import GIB

WEIGHTS_SHARE = 0.012
ACTIVATION_SHARE = 0.07
GRAPH_SHARE = 0.5
NON_TORCH_SHARE = 0.15
TOTAL_SHARE = 0.003
FLOOR_BYTES = 0.10 * GIB
POOL_SHARE = 0.004
"""Errors (90 %) of each part as a share of it."""

ANALYTIC_FACTOR = 2.5
"""For engines and rules without logs to compare with."""


def capacity_interval(
    parts: MemoryParts, deployment: Deployment, behaviour: EngineBehaviour, capacity_tokens: float
) -> Interval:
    """90 % interval of the tokens that the engine prints; in proportion to the pool's bytes."""
    pool = as_float(parts.kv_cache)
    given = as_float(deployment.settings.kv_cache_memory_bytes) > 0.0 or behaviour.memory_rule == "whole_context"
    calibrated = behaviour.memory_rule == "utilization_of_total"
    if pool <= 0.0 or capacity_tokens <= 0.0:
        return Interval(low=0.0, high=0.0, basis="calibrated" if calibrated else "analytic")
    share = POOL_SHARE
    if not given:
        squares = FLOOR_BYTES**2
        squares += (WEIGHTS_SHARE * as_float(parts.weights)) ** 2
        squares += (ACTIVATION_SHARE * as_float(parts.activation)) ** 2
        squares += (NON_TORCH_SHARE * as_float(parts.non_torch)) ** 2
        squares += (TOTAL_SHARE * as_float(parts.total)) ** 2
        if behaviour.graphs_in_budget:
            squares += (GRAPH_SHARE * as_float(parts.cuda_graph)) ** 2
        share += math.sqrt(squares) / pool * (1.0 if calibrated else ANALYTIC_FACTOR)
    return Interval(
        low=max(math.floor(capacity_tokens * (1.0 - share)), 0.0),
        high=float(math.ceil(capacity_tokens * (1.0 + share))),
        basis="calibrated" if calibrated else "analytic",
    )
