"""What the weight files of a repository add up to, from the hub's description, a file header or an index."""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from huggingface_hub import ModelInfo

_BITS = {
    "BOOL": 8, "U8": 8, "I8": 8, "U16": 16, "I16": 16, "U32": 32, "I32": 32, "U64": 64, "I64": 64,
    "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6, "F8_E4M3": 8, "F8_E5M2": 8, "F8_E8M0": 8, "F16": 16, "BF16": 16,
    "F32": 32, "F64": 64, "C64": 64,
}  # fmt: skip
"""Bits of an element of each safetensors dtype (``safetensors/src/tensor.rs``, ``Dtype::bitsize``)."""

_PACKED = frozenset({"U8", "U32", "I32", "U64", "I64"})
"""4-bit formats store several parameters in one such element (AWQ, GPTQ: I32; bitsandbytes, MXFP4, NVFP4: U8)."""

_WEIGHT_FILES = (
    re.compile(r"model(?:-\d{5}-of-\d{5})?\.safetensors"),
    re.compile(r"(?!consolidated|adapter)[^/]+\.safetensors"),
    re.compile(r"pytorch_model(?:-\d{5}-of-\d{5})?\.bin"),
)
"""Names of the files that an engine loads, the first kind that is there; a repository may hold its weights twice."""

_MOST = 10**15
"""Larger counts are no counts."""


class Weights(msgspec.Struct, frozen=True, kw_only=True):
    """Sums over the weight files; None or empty: not told."""

    parameters: int | None = None
    elements_by_dtype: dict[str, int] = {}
    checkpoint_bytes: int | None = None

    @property
    def known(self) -> bool:
        """Whether anything was told."""
        return self.parameters is not None or self.checkpoint_bytes is not None


class _Totals(msgspec.Struct):
    total_size: float | None = None
    """Some writers note it as ``1.6e10``."""
    total_parameters: float | None = None


class _Index(msgspec.Struct):
    metadata: _Totals


def weights_of_elements(elements: Mapping[str, int]) -> Weights:
    """Sum up elements by dtype; a checkpoint with packed elements tells bytes, but not how many parameters it has."""
    told = {dtype: count for dtype, count in elements.items() if isinstance(count, int) and 0 < count < _MOST}
    if len(told) != len(elements) or not told:
        return Weights()
    bits = [count * _BITS.get(dtype, 0) for dtype, count in told.items()]
    return Weights(
        parameters=None if _PACKED & told.keys() else sum(told.values()),
        elements_by_dtype=told,
        checkpoint_bytes=sum(bits) // 8 if all(bits) else None,
    )


def weights_of_info(info: "ModelInfo") -> Weights:
    """Take the hub's own sums, and the sizes of the files where it lists them."""
    told = getattr(info.safetensors, "parameters", None)
    weights = weights_of_elements(told if isinstance(told, dict) else {})
    files_bytes = _files_bytes(info)
    return msgspec.structs.replace(weights, checkpoint_bytes=files_bytes) if files_bytes else weights


def has_safetensors(info: "ModelInfo") -> bool:
    """Whether the repository lists weights whose header or index can be read."""
    return any(file.rfilename.startswith("model") and "safetensors" in file.rfilename for file in info.siblings or ())


def weights_of_index(text: bytes) -> Weights:
    """Take the sums that the writer of ``model.safetensors.index.json`` noted."""
    try:
        totals = msgspec.json.decode(text, type=_Index).metadata
    except (msgspec.MsgspecError, RecursionError):
        return Weights()
    return Weights(parameters=_count(totals.total_parameters), checkpoint_bytes=_count(totals.total_size))


def _count(value: float | None) -> int | None:
    return int(value) if value is not None and 0 < value < _MOST else None


def _files_bytes(info: "ModelInfo") -> int | None:
    files = {file.rfilename: file.size for file in info.siblings or () if isinstance(file.rfilename, str)}
    for names in _WEIGHT_FILES:
        sizes = [size for name, size in files.items() if names.fullmatch(name)]
        known = [size for size in sizes if isinstance(size, int) and 0 < size < _MOST]
        if sizes:
            return sum(known) if len(known) == len(sizes) else None
    return None
