"""Mixture-of-experts layers: which experts a batch touches, what they take to read and compute, what ranks exchange."""

import math

import msgspec

from service.domain.architecture import Architecture
from service.domain.calibration import Profile
from service.domain.collectives import link_bytes_per_s, link_latency_s, link_share
from service.domain.deployment import ACTIVATION_BYTES, FINITE_PEAK_FLOPS_PER_S, WIDE_BYTES, Deployment
from service.domain.numeric import Number, choose, exp, greater, sqrt

TILE_ROWS = 16.0
"""Rows that a grouped product pads each expert to (vLLM's fused MoE at small batches); half is waste."""

IMBALANCE = 1.15
"""The busiest expert-parallel rank over the mean one; analytic, no measurement in the handed data."""

DISPATCH_BYTES = 1.0
"""Rows go to their experts in 8 bits where the model does (DeepEP) and come back in 16."""


class ExpertWork(msgspec.Struct, frozen=True):
    """Constants of all expert layers of one stage on one rank."""

    read_s: Number
    """Reading all experts that the rank holds."""
    row_s: Number
    """Computing one token's share."""
    miss_log: float
    """log of the probability that one token misses a given expert."""
    padded_rows: float
    """Tokens whose work equals the padding of all experts, once all are touched."""
    rows_factor: Number
    """Tokens that reach the rank's experts per row of its own batch (data ranks share experts)."""
    exchange_s_per_row: Number
    exchange_latency_s: Number


def expert_work(  # noqa: PLR0913 - what a layer of experts is made of
    architecture: Architecture,
    deployment: Deployment,
    held_bytes: Number,
    profile: Profile,
    stage: Number,
    *,
    span_data: bool,
) -> ExpertWork:
    """Constants for the experts of one rank; ``held_bytes`` as if it held every layer, ``stage`` its share of layers.

    A token picks ``experts_per_token`` of ``experts``; on a rank with the tensor share of all experts as on one with
    some experts whole, that is the same share of the bytes it holds.
    """
    layout, card = deployment.layout, deployment.card
    size = deployment.precision.weight_bytes["routed_experts"]
    experts = float(max(architecture.experts, 1))
    chosen = min(max(architecture.experts_per_token / experts, 1e-9), 1.0 - 1e-9)
    wide = size > WIDE_BYTES
    read_share = choose(wide, profile.wide_weight_read_share, profile.weight_read_share)
    peak_share = choose(wide, profile.wide_matmul_peak_share, profile.matmul_peak_share)
    peak = greater(choose(wide, card.flops_per_s, card.weight_flops_per_s), FINITE_PEAK_FLOPS_PER_S)
    spread = choose(layout.expert > 0.0, 1.0, 0.0)
    uneven = 1.0 + spread * (IMBALANCE - 1.0) * choose(layout.tensor * layout.data > 1.0, 1.0, 0.0)
    shared = choose(spread > 0.0, layout.data, layout.data if span_data else 1.0)
    ranks = layout.tensor * layout.data
    exchanging = choose(shared > 1.0, 1.0, 0.0) * architecture.moe_layers * stage
    bytes_per_row = architecture.experts_per_token * architecture.hidden_size * (DISPATCH_BYTES + ACTIVATION_BYTES)
    rate = link_bytes_per_s(card) * link_share(ranks, profile)
    return ExpertWork(
        read_s=uneven * held_bytes * stage / (card.bandwidth_bytes_per_s * read_share * profile.expert_share),
        row_s=uneven * 2.0 * chosen * held_bytes / size * stage / (peak * peak_share * profile.expert_share),
        miss_log=math.log1p(-chosen),
        padded_rows=TILE_ROWS / 2.0 / chosen,
        rows_factor=shared,
        exchange_s_per_row=exchanging * bytes_per_row * (1.0 - 1.0 / ranks) / rate,
        exchange_latency_s=exchanging * 2.0 * link_latency_s(ranks, profile),
    )


def touched_share(work: ExpertWork, rows: Number) -> Number:
    """Expected share of the experts that at least one of ``rows`` tokens picks: 1 - (1 - k / E)^rows."""
    return 1.0 - exp(work.miss_log * rows)


def expert_s(work: ExpertWork, rows: Number) -> Number:
    """Seconds of the expert layers for ``rows`` tokens of this rank's own batch."""
    reaching = rows * work.rows_factor
    touched = touched_share(work, reaching)
    read = work.read_s * touched
    compute = work.row_s * (reaching + work.padded_rows * touched)
    return sqrt(read * read + compute * compute) + work.exchange_s_per_row * rows
