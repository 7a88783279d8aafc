"""How a deployment behaves from idle to full: rate, latency and throughput at rising loads."""

import msgspec
import numpy as np

from service.domain.answer import significant
from service.domain.batching import Serving
from service.domain.latency import delays, load_at, tpot_s, ttft_s
from service.domain.units import MS_PER_S

FRACTIONS = (0.02, 0.1, 0.25, 0.5, 0.75, 0.95)
"""Of the batch's ceiling."""


class CurvePoint(msgspec.Struct, frozen=True, kw_only=True):
    """One load."""

    requests_per_second: float
    concurrency: float
    """Mean requests between arrival and last token."""
    ttft_ms_p95: float
    tpot_ms_p95: float | None
    """Null for models that only read."""
    output_tokens_per_second: float


def load_curve(service: Serving, fractions: tuple[float, ...] = FRACTIONS) -> tuple[CurvePoint, ...]:
    """Loads at fractions of the largest batch, in rising order (one deployment)."""
    reads_only = service.shape.rows_per_step <= 0.0
    load = load_at(service, service.limit.batch * np.array(fractions))
    parts = delays(service, load)
    stay_s = parts.ttft_mean_s + (service.shape.output.mean - 1.0) * parts.tpot_mean_s
    columns = (
        load.rate,
        load.rate * stay_s,
        ttft_s(service, load, parts, "p95") * MS_PER_S,
        tpot_s(parts, "p95") * MS_PER_S,
        load.rate * (0.0 if reads_only else service.shape.output.mean),
    )
    rows = np.stack([np.broadcast_to(column, len(fractions)) for column in columns], axis=1).tolist()
    return tuple(
        CurvePoint(
            requests_per_second=significant(rate),
            concurrency=significant(concurrency),
            ttft_ms_p95=significant(ttft_ms),
            tpot_ms_p95=None if reads_only else significant(tpot_ms),
            output_tokens_per_second=significant(output),
        )
        for rate, concurrency, ttft_ms, tpot_ms, output in rows
    )
