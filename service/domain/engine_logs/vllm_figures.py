"""Memory figures in vLLM's lines, by the part that they belong to.

Line formats as seen in public logs: those behind the memory cases, vLLM pull requests 10511, 12126, 19312 and 30515, and
issues 53013, 55169 and 11251.
"""

import re
from collections import defaultdict

import msgspec

from service.domain.engine_logs.scan import NUMBER, SIZE, hits, places, size, sizes


class Line(msgspec.Struct, frozen=True):
    """A line with figures: its marker, the pattern behind it, and the groups of number and unit of each figure."""

    marker: str
    pattern: re.Pattern[str]
    figures: tuple[tuple[str, int, int], ...]


_SIZE = re.compile(rf"[ :=~]{{0,12}}{SIZE}")
_TAKES = re.compile(rf"[ \t]{{1,40}}(?:takes? {{1,4}})?{SIZE}")
_BEHIND = re.compile(rf"{SIZE}[^0-9\n]{{0,30}}$")
_PEAK = re.compile(rf"[^\n]{{0,200}}?{SIZE} for peak activation")


def _one(field: str, *markers: str, pattern: re.Pattern[str] = _SIZE) -> tuple[Line, ...]:
    return tuple(Line(marker, pattern, ((field, 1, 2),)) for marker in markers)


LINES = (
    *_one("weights_bytes", "Model loading took", "Loading model weights took", "odel weights take", "weights memory:"),
    *_one("activation_bytes", "PyTorch activation peak memory", pattern=_TAKES),
    *_one("activation_bytes", "torch peak memory increase:"),
    *_one("non_torch_bytes", " non_torch_memory", pattern=_TAKES),
    *_one("non_torch_bytes", "non-torch forward increase memory:"),
    *_one("kv_cache_bytes", "Available KV cache memory:", "reserved for KV Cache is"),
    *_one("kv_cache_bytes", "available_kv_cache_memory", pattern=_TAKES),
    *_one("fixed_pool", "reserved", pattern=re.compile(rf" {SIZE} memory for KV Cache as specified")),
    *_one("total_bytes", "total_memory="),
    *_one("total_bytes", "total_gpu_memory", pattern=_TAKES),
    *_one("free_bytes", "Initial free memory", " free_memory="),
    *_one("budget_bytes", "worker requested memory:"),
    *_one("taken_bytes", "Total non KV cache memory:"),
    *_one("graph_estimate_bytes", "Estimated CUDA graph memory:"),
    *_one("graph_pool", "CUDA graph pool memory:"),
    *_one(
        "cuda_graph_bytes",
        "Graph capturing finished",
        pattern=re.compile(rf" in [0-9.]{{1,12}} secs?, took {SIZE}"),
    ),
    Line(
        "total_gpu_memory",
        re.compile(rf" \({SIZE}\) x gpu_memory_utilization \({NUMBER}\) = {SIZE}"),
        (("total_bytes", 1, 2), ("budget_bytes", 4, 5)),
    ),
    Line("Requested memory:", re.compile(rf" {NUMBER} \(util\), {SIZE}"), (("budget_bytes", 2, 3),)),
    Line(
        "Free memory on device",
        re.compile(rf"(?: [a-z]+:\d+)? \({NUMBER}/{SIZE}\) on startup"),
        (("free_bytes", 1, 3), ("total_bytes", 2, 3)),
    ),
    Line(
        "Actual usage",
        re.compile(rf"[^0-9\n]{{0,60}}{SIZE} for weights?, {SIZE} for peak activation, {SIZE} for non-torch memory"),
        (("weights_bytes", 1, 2), ("activation_bytes", 3, 4), ("non_torch_bytes", 5, 6)),
    ),
)
"""Every line with sizes but two that need others to be read."""


def vllm_sizes(text: str) -> dict[str, list[int]]:
    """Sizes by field of ``Printed``, one for each rank and line.

    Beside those fields: ``fixed_pool``, ``graph_pool`` and ``taken_bytes`` (all but the pool).
    """
    found: dict[str, list[int]] = defaultdict(list)
    for line in LINES:
        for match in hits(text, line.marker, line.pattern):
            for field, number, unit in line.figures:
                found[field].append(size(match[number], match[unit]))
    weights = max(found["weights_bytes"], default=0)
    for at in places(text, "Memory profiling results: "):  # 0.6.4: the torch peak holds the weights
        line_text = text[at : at + 400].partition("\n")[0]
        found["activation_bytes"] += [
            max(peak - weights, 0) for peak in sizes(line_text, "peak_torch_memory=", _SIZE) if weights
        ]
        for field, marker in (
            ("non_torch_bytes", "non_torch_memory="),
            ("kv_cache_bytes", "kv_cache_size="),
            ("total_bytes", "total_gpu_memory="),
        ):
            found[field] += sizes(line_text, marker, _SIZE)
    for at in places(text, "(weights + non-torch"):  # 0.26 on: one figure for both
        both = _BEHIND.search(text, max(at - 60, 0), at)
        if both is None or not weights:
            continue
        found["non_torch_bytes"].append(max(size(both[1], both[2]) - weights, 0))
        after = text[at : at + 200]
        peak = _PEAK.match(after)
        peaks = sizes(after, "peak activation", _SIZE) if peak is None else [size(peak[1], peak[2])]
        found["activation_bytes"] += peaks
    return found
