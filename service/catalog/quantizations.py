"""Read the quantization file and find formats by the names that people, checkpoints and engines use."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal

import msgspec

from service.domain.architecture import TensorClass
from service.domain.errors import CatalogError
from service.domain.quantization import Arithmetic, Quantization

AUTO = "auto"
"""What ``resolve_quantization`` gives for "as the checkpoint says": no id of the catalog."""
AUTO_NAMES = frozenset({"auto", "default", "checkpoint"})


class QuantizationRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One format as written in the file."""

    id: str
    bits_per_weight: float
    quantizes: str
    """Key of ``tensor_sets``."""
    arithmetic: Arithmetic
    weight_only: bool
    quality_risk: Literal["none", "low", "medium", "high"]
    source: str
    aliases: tuple[str, ...] = ()
    kv_bits: float | None = None
    made_by_engine: bool = False
    min_compute_capability: float | None = None
    max_compute_capability: float | None = None
    native_compute_capability: float | None = None
    vendors: tuple[str, ...] = ()
    architectures: tuple[str, ...] | None = None
    native_architectures: tuple[str, ...] | None = None
    note: str | None = None


class QuantizationFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``quantizations.json``."""

    as_of: str
    tensor_sets: dict[str, tuple[TensorClass, ...]]
    quantizations: tuple[QuantizationRow, ...]


def load_quantizations(path: Path) -> dict[str, Quantization]:
    """All formats by id, in the order of the file.

    Raises ``CatalogError`` naming file and row for unreadable data, an unknown tensor set or an id used twice.
    """
    try:
        file = msgspec.json.decode(path.read_bytes(), type=QuantizationFile)
    except (OSError, msgspec.DecodeError) as error:
        msg = f"{path}: {error}"
        raise CatalogError(msg) from error
    quantizations: dict[str, Quantization] = {}
    for row in file.quantizations:
        if row.id in quantizations:
            msg = f"{path}: {row.id}: id used twice"
            raise CatalogError(msg)
        if row.quantizes not in file.tensor_sets:
            msg = f"{path}: {row.id}: no tensor set {row.quantizes}"
            raise CatalogError(msg)
        fields = {**msgspec.structs.asdict(row), "quantizes": file.tensor_sets[row.quantizes], "as_of": file.as_of}
        quantizations[row.id] = Quantization(**fields)
    return quantizations


def build_quantization_index(quantizations: Iterable[Quantization]) -> dict[str, str]:
    """Ids by normalised id and alias. Raises ``CatalogError`` where two formats claim one name."""
    index: dict[str, str] = {}
    for quantization in quantizations:
        for name in (quantization.id, *quantization.aliases):
            claimed = index.setdefault(normalise(name), quantization.id)
            if claimed != quantization.id:
                msg = f"quantization name {name}: claimed by {claimed} and {quantization.id}"
                raise CatalogError(msg)
    return index


def resolve_quantization(name: str, index: Mapping[str, str]) -> str | None:
    """Id of the format a name means, ``AUTO`` for the checkpoint's own, None where nothing fits.

    ``gguf:q4_k_m``, ``Q4_K_M``, ``awq_marlin``, ``fp8_e4m3`` ... : case and separators do not matter, and llama.cpp's
    types need no ``gguf`` before them.
    """
    id_ = index.get(name)
    if id_ is not None:
        return id_
    key = normalise(name)
    if key in AUTO_NAMES:
        return AUTO
    return index.get(key) or index.get(f"gguf-{key.removeprefix('gguf-').removeprefix('ud-').removesuffix('-mix')}")


def normalise(name: str) -> str:
    """Lower case, with one dash for every run of other characters."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
