"""Start-up logs of llama.cpp, from b3216 on; also of programs that are built on it.

Line formats as seen in public logs: llama.cpp issues 8117, 8862, 9013, 11635, 12213, 14097, 14663, 14752, 19437 and 20431.
Sizes are MiB. The figures are those of the fullest device.
"""

import re
from collections import defaultdict

from service.domain.engine_logs.arguments import Listing, command_at, given
from service.domain.engine_logs.cards import cards_in
from service.domain.engine_logs.facts import Failure, Launched, LogFacts, Printed
from service.domain.engine_logs.names import model_names
from service.domain.engine_logs.scan import COUNT, SIZE, before, count, first, hits, places, size

START = "llama_model_loader: loaded meta data"
"""Printed once for each model file."""

_SIZE = re.compile(rf" {{0,12}}= {{0,12}}{SIZE}")
_EQUALS = re.compile(rf" {{0,12}}= {{0,12}}{COUNT}")
_DEVICE = re.compile(r"(\S{1,40}?)\s{0,4}$")
_ON_HOST = ("CPU", "CUDA_Host", "ROCm_Host", "Vulkan_Host", "SYCL_Host", "BLAS")
_BUILD = re.compile(r"[ =]{1,4}([0-9]{3,6}) \([0-9a-f]{6,40}\)")
_FILE = re.compile(r"[^\n]{0,120}? from ([^\n]{1,400}?) \(version")
_TYPE = re.compile(r" {0,12}= {0,4}([A-Za-z0-9_]{2,12})(?: - (Small|Medium|Large))?")
_GENERAL_NAME = re.compile(r" {0,40}(?:str {0,4})?= {0,4}([^\n]{1,120})")
_OFFLOADED = re.compile(r" (\d{1,4})/(\d{1,4}) layers to GPU")
_CACHED = re.compile(r" {0,3}\(([A-Za-z0-9_]{2,12})\)")
_TRIED = re.compile(rf" {SIZE} on device \d{{1,3}}: cudaMalloc failed")
_FREE = re.compile(rf"[^\n]{{1,160}} - {SIZE} free")
_FOUND = re.compile(r" (\d{1,3}) (?:CUDA|ROCm|Vulkan|SYCL) devices")
_VRAM = re.compile(rf"[^\n]{{1,160}}?VRAM: {SIZE}")
_BREAKDOWN = re.compile(
    r" ([A-Za-z]{2,8}\d{1,3}) ?\([^\n|]{1,80}\| {0,4}(\d{1,9}) = {0,4}(\d{1,9}) \+ \( {0,6}\d{1,9} = {1,6}"
    r"(\d{1,9}) \+ {1,8}(\d{1,9}) \+ {1,8}(\d{1,9})\)"
)
_SIZE_LETTERS = {"Small": "_S", "Medium": "_M", "Large": "_L"}


def read_llama_cpp(text: str, whole_text: str) -> LogFacts:
    """Facts of one start; ``whole_text`` also holds what was printed before it (devices, build, launch line)."""
    weights = _buffers(text, ("model buffer size",), again=False)
    if not weights:
        weights = _buffers(text, (" buffer size",), again=False, only="load_tensors:")
    caches = _buffers(text, ("KV buffer size", "RS buffer size"), again=True)
    compute = _buffers(text, ("compute buffer size",), again=None)
    totals, breakdown_free = _breakdown(text, weights, caches, compute)
    vram = [size(match[1], match[2]) for match in hits(whole_text, "Device 0:", _VRAM)]
    fullest = max(weights, key=lambda name: weights[name], default=None)
    context = first(hits(text, "n_ctx ", _EQUALS))
    slots = first(hits(text, "n_seq_max ", _EQUALS))
    batch = first(hits(text, "n_batch ", _EQUALS))
    offloaded = first(hits(text, "offloaded", _OFFLOADED))
    free = [size(match[1], match[2]) for match in hits(text, "using device ", _FREE)] or breakdown_free
    found = first(hits(whole_text, "found", _FOUND))
    tried = first(hits(text, "allocating", _TRIED))
    failed = tried is not None or "unable to allocate" in text
    command = Listing((), command_at(whole_text, whole_text.rfind("llama-server ")))
    file = first(hits(text, "loaded meta data", _FILE))
    general = first(hits(text, "general.name", _GENERAL_NAME))
    kind = first(hits(text, "file type ", _TYPE)) or first(hits(text, "model ftype ", _TYPE))
    cached = first(hits(text, "seqs), K", _CACHED)) or first(hits(text, " MiB, K", _CACHED))
    build = None
    for marker in ("build:", "build ", "version:"):
        build = build or first(hits(whole_text, marker, _BUILD))
    printed = Printed(
        total_bytes=min(totals or vram, default=None),
        free_bytes=min(free, default=None),
        weights_bytes=None if fullest is None else weights[fullest],
        activation_bytes=max(compute.values(), default=None),
        kv_cache_bytes=_of(caches, fullest),
        capacity_tokens=None if context is None or not caches else count(context[1]),
        layers_on_card=None if offloaded is None else int(offloaded[1]),
        layers=None if offloaded is None else int(offloaded[2]),
    )
    return LogFacts(
        launched=Launched(
            engine="llama.cpp",
            version=None if build is None else f"b{build[1]}",
            models=(*model_names(None if file is None else file[1]), *_titled(general)),
            gpus=cards_in(whole_text),
            weights=None if kind is None else kind[1] + _SIZE_LETTERS.get(kind[2] or "", ""),
            kv_cache=None if cached is None else cached[1],
            pipeline=len(weights) or (None if found is None else int(found[1])) or None,
            settings=given(
                {
                    "ctx_size": None if context is None else count(context[1]),
                    "parallel": command.whole("parallel", "np") or (None if slots is None else count(slots[1])),
                    "max_num_batched_tokens": None if batch is None else count(batch[1]),
                }
            ),
        ),
        printed=printed,
        failure=Failure(code="out_of_memory", tried_bytes=None if tried is None else size(tried[1], tried[2]))
        if failed
        else None,
        started=False if failed else True if compute or "server is listening" in text else None,
    )


def _of(buffers: dict[str, int], device: str | None) -> int | None:
    if not buffers:
        return None
    return buffers[device] if device in buffers and device is not None else max(buffers.values())


def _titled(general: re.Match[str] | None) -> tuple[str, ...]:
    return () if general is None else model_names("-".join(general[1].split()))


def _buffers(text: str, markers: tuple[str, ...], *, again: bool | None, only: str = "") -> dict[str, int]:
    """Buffers by device, those in host memory left out.

    ``again``: several lines of one device are added up (True), added up where they differ (False: a file is sometimes
    loaded twice), or the largest is taken (None: the reserve is printed anew).
    """
    found: dict[str, list[int]] = defaultdict(list)
    for marker in markers:
        for at in places(text, marker):
            match = _SIZE.match(text, at + len(marker), at + len(marker) + 60)
            line = before(text, at)
            device = _DEVICE.search(line)
            if match is None or device is None or only not in line or device[1].startswith(_ON_HOST):
                continue
            found[device[1].removesuffix("-REPACK")].append(size(match[1], match[2]))
    if again is None:
        return {name: max(values) for name, values in found.items()}
    return {name: sum(values if again else dict.fromkeys(values)) for name, values in found.items()}


def _breakdown(
    text: str, weights: dict[str, int], caches: dict[str, int], compute: dict[str, int]
) -> tuple[list[int], list[int]]:
    """Totals and free memory of the exit table; its parts fill in what no other line gave."""
    totals: list[int] = []
    free: list[int] = []
    rows = {match[1]: match for match in hits(text, "|   -", _BREAKDOWN)}
    for name, match in rows.items():
        totals.append(size(match[2], "MiB"))
        free.append(size(match[3], "MiB"))
        for buffers, printed in ((weights, match[4]), (caches, match[5]), (compute, match[6])):
            buffers.setdefault(name, size(printed, "MiB"))
    return totals, free
