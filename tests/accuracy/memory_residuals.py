"""Residuals of predicted KV pools by class of start-up logs, as the engine files hold them.

A class is engine x version band x kinds of layers x accelerators; fewer than ``FEWEST`` logs fall back on the class
around it. Over version bands that class is fitted on what the bands leave over: well-known releases say nothing on others.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

FEWEST = 20
QUANTILE = 0.9
BANDS: dict[str, tuple[str | None, ...]] = {
    "vllm": (None, "0.8.0", "0.17.0", "0.19.2.dev0", None),
    "sglang": (None, None),
    "tensorrt-llm": (None, None),
    "llama.cpp": (None, None),
}
"""Edges of the bands: vLLM's second engine, its sampler without a sort, CUDA graphs inside the budget."""


class Residual(NamedTuple):
    """One log: its class, and the error of the pool as a share of one accelerator's memory."""

    model: str
    engine: str
    band: int
    layers: str
    accelerators: str
    share: float


class Row(NamedTuple):
    """One class of an engine file, the narrowest first."""

    band: int | None
    layers: str
    accelerators: str
    share: float
    cases: int
    own: bool

    def holds(self, band: int, layers: str, accelerators: str) -> bool:
        """Whether a log belongs to the class."""
        return (
            self.band in {None, band} and self.layers in {layers, "any"} and self.accelerators in {accelerators, "any"}
        )


def quantile(values: Sequence[float], share: float = QUANTILE) -> float:
    """Order statistic that holds a new value of the same kind with this probability."""
    ordered = sorted(values)
    return ordered[min(math.ceil(share * (len(ordered) + 1)), len(ordered)) - 1]


def classes(residuals: Sequence[Residual], engine: str) -> list[Row]:
    """Classes of one engine, from all logs."""
    rows: list[Row] = []
    own = [each for each in residuals if each.engine == engine]
    bands = range(len(BANDS[engine]) - 1)
    steps: list[tuple[int | None, str, str]] = [
        *((band, layers, cards) for band in bands for layers in ("uniform", "hybrid") for cards in ("one", "several")),
        *((band, layers, "any") for band in bands for layers in ("uniform", "hybrid")),
        *((band, "any", "any") for band in bands),
        *((None, layers, "any") for layers in ("uniform", "hybrid")),
        (None, "any", "any"),
    ]
    left = own
    for band, layers, cards in steps:
        row = Row(band, layers, cards, 0.0, 0, own=True)
        # Inside a band the parent holds its children; over bands it is what no band stands for by itself.
        around = left if band is None else own
        inside = [each for each in around if row.holds(each.band, each.layers, each.accelerators)]
        if len(inside) >= FEWEST and any(each in left for each in inside):
            rows.append(row._replace(share=quantile([each.share for each in inside]), cases=len(inside)))
            left = [each for each in left if each not in inside]
    if not any(row[:3] == (None, "any", "any") for row in rows):
        named = [each for each in residuals if not _narrow(each, residuals)]
        rows.append(Row(None, "any", "any", quantile([each.share for each in named]), len(named), own=False))
    return rows


def _narrow(each: Residual, residuals: Sequence[Residual]) -> bool:
    """Whether a log belongs to a class of its own band, layers and accelerators that stands by itself."""
    alike = [other for other in residuals if other[1:5] == each[1:5]]
    return len(alike) >= FEWEST


def class_of(rows: Sequence[Row], each: Residual) -> Row:
    """The narrowest class that a log belongs to."""
    return next(row for row in rows if row.holds(each.band, each.layers, each.accelerators))


def held_out_coverage(residuals: Sequence[Residual]) -> list[tuple[Residual, Row, bool]]:
    """Each log against the classes fitted on all other models' logs."""
    found = []
    for model in sorted({each.model for each in residuals}):
        others = [each for each in residuals if each.model != model]
        tables = {engine: classes(others, engine) for engine in BANDS}
        for each in residuals:
            if each.model == model:
                row = class_of(tables[each.engine], each)
                found.append((each, row, each.share <= row.share))
    return found


def file_rows(residuals: Sequence[Residual], engine: str, as_of: str) -> list[dict[str, object]]:
    """Rows for the ``residuals`` of an engine file."""
    edges = BANDS[engine]
    rows = []
    for row in classes(residuals, engine):
        limits: dict[str, object] = {}
        if row.band is not None and edges[row.band] is not None:
            limits["from"] = edges[row.band]
        if row.band is not None and edges[row.band + 1] is not None:
            limits["until"] = edges[row.band + 1]
        rows.append(
            {
                "layers": row.layers,
                "accelerators": row.accelerators,
                **limits,
                "share_of_memory": round(row.share, 4),
                "cases": row.cases,
                "own": row.own,
                "as_of": as_of,
            }
        )
    return rows
