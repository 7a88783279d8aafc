"""The fleet as a struct of arrays: every accelerator x every layout, compiled once with the catalog snapshot.

A row is model-independent; the search multiplies it by weight formats and asks memory and performance about all rows at
once. Order is that of accelerator ids, then layouts, so that ties are decided the same way every time.
"""

from collections.abc import Sequence
from functools import lru_cache

import msgspec
import numpy as np
from numpy.typing import NDArray

from service.domain.accelerator import Accelerator
from service.domain.assembly import GIGA, TERA, wide_flops_per_s
from service.domain.numeric import FloatArray
from service.domain.quantization import Quantization, arithmetic_tflops, computes_natively

IntArray = NDArray[np.intp]

_TENSOR = (1, 2, 4, 8, 16)
_PIPELINE = (1, 2, 4, 8)
_MAX_GPUS_PER_REPLICA = 16
"""Above this a replica spans servers on nearly every product sold, which needs a stated cluster network."""


class Fleet(msgspec.Struct, frozen=True, eq=False):
    """Accelerators and the layouts each can hold; arrays have one element a row. Compared by identity."""

    accelerators: tuple[Accelerator, ...]
    formats: dict[str, Quantization]
    accelerator: IntArray
    """Index into ``accelerators``."""
    tensor: FloatArray
    pipeline: FloatArray
    data: FloatArray
    expert: FloatArray
    usable_memory_bytes: FloatArray
    bandwidth_bytes_per_s: FloatArray
    link_bytes_per_s: FloatArray
    flops_per_s: FloatArray
    """16-bit dense peak; 0 where no figure is known."""
    index: dict[str, int]
    """Accelerator id -> position in ``accelerators``."""

    @property
    def rows(self) -> int:
        """Number of rows."""
        return int(self.accelerator.size)


def layouts(gpus_max: int) -> list[tuple[int, int, int, int]]:
    """Every (tensor, pipeline, data, expert) of at most ``gpus_max`` accelerators that engines run in practice.

    Pipeline stages multiply tensor groups; data ranks (attention replicated, experts spread) come with single-card
    tensor groups, the "wide expert parallel" layout. Expert parallelism without data ranks is tensor x expert.
    """
    found: list[tuple[int, int, int, int]] = []
    for tensor in _TENSOR:
        found.extend((tensor, pipeline, 1, 0) for pipeline in _PIPELINE if tensor * pipeline <= gpus_max)
        if 1 < tensor <= gpus_max:
            found.append((tensor, 1, 1, 1))
            found.append((1, 1, tensor, 1))
    return found


def compile_fleet(accelerators: Sequence[Accelerator], formats: dict[str, Quantization]) -> Fleet:
    """Arrays of all accelerators (sorted by id) x layouts within one server."""
    ordered = tuple(sorted(accelerators, key=lambda a: a.id))
    rows = [
        (position, *layout)
        for position, accelerator in enumerate(ordered)
        for layout in layouts(min(accelerator.max_gpus_per_node, _MAX_GPUS_PER_REPLICA))
    ]
    table = np.array(rows, dtype=np.intp).reshape(-1, 5)
    chosen = table[:, 0]

    def column(values: Sequence[float]) -> FloatArray:
        return np.array(values, dtype=np.float64)[chosen]

    return Fleet(
        accelerators=ordered,
        formats=formats,
        accelerator=chosen,
        tensor=table[:, 1].astype(np.float64),
        pipeline=table[:, 2].astype(np.float64),
        data=table[:, 3].astype(np.float64),
        expert=table[:, 4].astype(np.float64),
        usable_memory_bytes=column([a.usable_memory_bytes for a in ordered]),
        bandwidth_bytes_per_s=column([a.memory_bandwidth_gb_per_s * GIGA for a in ordered]),
        link_bytes_per_s=column([a.interconnect.gb_per_s_per_direction * GIGA for a in ordered]),
        flops_per_s=column([wide_flops_per_s(a) for a in ordered]),
        index={a.id: i for i, a in enumerate(ordered)},
    )


class FormatSupport(msgspec.Struct, frozen=True, eq=False):
    """What one weight format means on each accelerator of a fleet (one element an accelerator)."""

    native: NDArray[np.bool_]
    """Where the matrix units compute in it."""
    weight_flops_per_s: FloatArray


@lru_cache(maxsize=512)
def format_support(fleet: Fleet, quantization_id: str) -> FormatSupport:
    """How fast a format's matrix products are on each accelerator; kept, since formats are few."""
    quantization = fleet.formats[quantization_id]
    return FormatSupport(
        native=np.array([computes_natively(a, quantization) for a in fleet.accelerators]),
        weight_flops_per_s=np.array([arithmetic_tflops(a, quantization) * TERA for a in fleet.accelerators]),
    )
