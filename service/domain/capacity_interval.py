"""How far the printed KV capacity may be from the predicted one.

The pool is what is left of a card, so its error is a share of the card's memory: half of a pool's tokens are uncertain
where the pool is a tenth of the card, few where it is most of it. The shares are 90 % quantiles of the residuals of
start-up logs, by class of engine, version band, kinds of layers and accelerators, and stand in the engine's data; a class
of fewer than 20 logs takes those of the class around it.
"""

import math
from typing import Literal

from service.domain.answer import Interval
from service.domain.architecture import Architecture
from service.domain.deployment import Deployment, MemoryParts
from service.domain.engine import EngineBehaviour, ResidualClass
from service.domain.numeric import as_float

POOL_SHARE = 0.002
"""Rounding of printed sizes to hundredths of a GiB, and of pools to blocks."""

UNIFORM_KINDS = frozenset({"full", "latent"})


def residual_class(
    architecture: Architecture, deployment: Deployment, behaviour: EngineBehaviour
) -> ResidualClass | None:
    """The narrowest class of logs that a deployment belongs to; None where the engine's data has none."""
    layers = "uniform" if {group.kind for group in architecture.cache} <= UNIFORM_KINDS else "hybrid"
    accelerators = "several" if as_float(deployment.layout.gpus) > 1.0 else "one"
    return next(
        (
            row
            for row in behaviour.residuals
            if row.layers in {layers, "any"} and row.accelerators in {accelerators, "any"}
        ),
        None,
    )


def capacity_interval(
    architecture: Architecture,
    parts: MemoryParts,
    deployment: Deployment,
    behaviour: EngineBehaviour,
    capacity_tokens: float,
) -> Interval:
    """90 % interval of the tokens that the engine prints; in proportion to the pool's bytes.

    A pool of given size, or one that is the whole context, is only rounded.
    """
    pool = as_float(parts.kv_cache)
    row = residual_class(architecture, deployment, behaviour)
    basis: Literal["calibrated", "analytic"] = "calibrated" if row is not None and row.own else "analytic"
    if pool <= 0.0 or capacity_tokens <= 0.0:
        return Interval(low=0.0, high=0.0, basis=basis)
    share = POOL_SHARE
    given = as_float(deployment.settings.kv_cache_memory_bytes) > 0.0 or behaviour.memory_rule == "whole_context"
    if row is not None and not given:
        share += row.share_of_memory * as_float(parts.total) / pool
    return Interval(
        low=float(max(math.floor(capacity_tokens * (1.0 - share)), 0)),
        high=float(math.ceil(capacity_tokens * (1.0 + share))),
        basis=basis,
    )
