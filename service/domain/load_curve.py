"""How a deployment behaves from idle to full: rate, latency and throughput at rising loads."""

import msgspec

from service.domain.batching import Serving
from service.domain.latency import delays, load_at, tpot_s, ttft_s
from service.domain.numeric import as_float
from service.domain.units import MS_PER_S

FRACTIONS = (0.02, 0.1, 0.25, 0.4, 0.55, 0.7, 0.85, 0.95)
"""Of the batch's ceiling."""


class CurvePoint(msgspec.Struct, frozen=True, kw_only=True):
    """One load."""

    requests_per_second: float
    concurrency: float
    """Mean requests between arrival and last token."""
    ttft_ms_p95: float
    tpot_ms_p95: float
    output_tokens_per_second: float


def load_curve(service: Serving, fractions: tuple[float, ...] = FRACTIONS) -> tuple[CurvePoint, ...]:
    """Loads at fractions of the largest batch, in rising order (one deployment)."""
    points = []
    for fraction in fractions:
        load = load_at(service, service.limit.batch * fraction)
        parts = delays(service, load)
        rate = as_float(load.rate)
        stay_s = as_float(parts.ttft_mean_s) + (service.shape.output.mean - 1.0) * as_float(parts.tpot_mean_s)
        points.append(
            CurvePoint(
                requests_per_second=rate,
                concurrency=rate * stay_s,
                ttft_ms_p95=as_float(ttft_s(service, load, parts, "p95")) * MS_PER_S,
                tpot_ms_p95=as_float(tpot_s(parts, "p95")) * MS_PER_S,
                output_tokens_per_second=rate * service.shape.output.mean,
            )
        )
    return tuple(points)
