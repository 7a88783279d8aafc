"""Read the accelerator files into the domain's records, MIG slices included.

``shared.json`` holds what many cards share (texts, memory classes, MIG tables); each other file is one family of cards,
one row a card, raw figures with their units in the names. See ``data/accelerators/README.md``.
"""

from pathlib import Path
from typing import TypeVar

import msgspec

from service.domain.accelerator import Accelerator, Interconnect, LinkKind, MigProfile
from service.domain.errors import CatalogError
from service.domain.quantization import Arithmetic
from service.domain.units import GIB, MIB

SHARED_FILE = "shared.json"

File = TypeVar("File")


class MemoryClass(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Cards whose memory relates to its label alike: measured shares stand in where a card has no print of its own."""

    label_share: float
    """Median of what the driver reports over the label (GB taken as 2**30 bytes)."""
    usable_share: float
    """Median of what torch sees over what the driver reports."""
    label_prints: int
    """Cards that ``label_share`` rests on; with 0, ``basis`` says what stands in."""
    usable_prints: int
    basis: str | None = None


class MigRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One profile of a MIG table."""

    name: str
    max: int
    memory_slices: int
    memory_gib: float
    sm: int | None = None
    memory_basis: str | None = None


class MigSet(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The MIG table of one or several cards."""

    memory_slices: int
    compute_slices: int
    profiles: tuple[MigRow, ...]
    sm_count: int | None = None


class Shared(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``shared.json``."""

    texts: dict[str, str]
    memory_classes: dict[str, MemoryClass]
    mig_sets: dict[str, MigSet]


class CardRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One card as written in a file."""

    id: str
    architecture: str
    memory_label_gb: float
    memory_type: str
    memory_class: str
    bandwidth_gb_per_s: float
    dense_tflops: dict[Arithmetic, float]
    link: tuple[LinkKind, float]
    year: int
    sources: tuple[str, ...]
    aliases: tuple[str, ...] = ()
    shared_aliases: tuple[str, ...] = ()
    compute_capability: float | None = None
    memory_mib: int | None = None
    usable_gib: float | None = None
    max_gpus_per_node: int = 8
    tdp_w: float | None = None
    mig: str | None = None
    unverified: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


class CardFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A family of cards."""

    vendor: str
    as_of: str
    accelerators: tuple[CardRow, ...]


def load_accelerators(folder: Path) -> dict[str, Accelerator]:
    """All cards of a folder by id, each followed by its MIG slices (``<card>/<profile>``).

    Raises ``CatalogError`` naming the file and row for unreadable data, a reference to nothing or an id used twice.
    """
    shared = _read(folder / SHARED_FILE, Shared)
    accelerators: dict[str, Accelerator] = {}
    for path in sorted(folder.glob("*.json")):
        if path.name == SHARED_FILE:
            continue
        file = _read(path, CardFile)
        for row in file.accelerators:
            if row.id in accelerators:
                msg = f"{path}: {row.id}: id used twice"
                raise CatalogError(msg)
            try:
                card = _accelerator(row, file, shared)
            except KeyError as missing:
                msg = f"{path}: {row.id}: {missing} is not in {SHARED_FILE}"
                raise CatalogError(msg) from missing
            accelerators[card.id] = card
            for profile in card.mig:
                piece = slice_of(card, profile)
                accelerators[piece.id] = piece
    return accelerators


def slice_of(card: Accelerator, profile: MigProfile) -> Accelerator:
    """Make a MIG slice an accelerator of its own: scaled peaks and bandwidth, no links, no tensor parallelism."""
    return msgspec.structs.replace(
        card,
        id=f"{card.id}/{profile.name}",
        memory_bytes=profile.memory_bytes,
        usable_memory_bytes=profile.usable_memory_bytes,
        memory_label_gb=float(profile.name.partition(".")[2].removesuffix("gb")),
        memory_basis="reported" if profile.basis == "measured" else "estimated",
        memory_bandwidth_gb_per_s=card.memory_bandwidth_gb_per_s * profile.bandwidth_share,
        dense_tflops={number: peak * profile.compute_share for number, peak in card.dense_tflops.items()},
        interconnect=Interconnect("none", 0.0),
        max_gpus_per_node=1,
        tdp_w=None,
        mig=(),
        aliases=(),
        ambiguous_aliases=(),
    )


def _accelerator(row: CardRow, file: CardFile, shared: Shared) -> Accelerator:
    memory_class = shared.memory_classes[row.memory_class]
    reported = row.memory_mib is not None
    memory = (row.memory_mib or row.memory_label_gb * 1024 * memory_class.label_share) * MIB
    usable = memory * memory_class.usable_share if row.usable_gib is None else row.usable_gib * GIB
    notes = "; ".join(_expand(note, shared) for note in row.notes)
    return Accelerator(
        id=row.id,
        vendor=file.vendor,
        architecture=row.architecture,
        memory_bytes=round(memory),
        usable_memory_bytes=round(usable),
        memory_bandwidth_gb_per_s=row.bandwidth_gb_per_s,
        dense_tflops={str(number): peak for number, peak in row.dense_tflops.items()},
        interconnect=Interconnect(*row.link),
        max_gpus_per_node=row.max_gpus_per_node,
        compute_capability=row.compute_capability,
        memory_label_gb=row.memory_label_gb,
        memory_type=row.memory_type,
        memory_basis="reported" if reported else "estimated",
        tdp_w=row.tdp_w,
        launch_year=row.year,
        mig=_profiles(shared.mig_sets[row.mig]) if row.mig else (),
        aliases=row.aliases,
        ambiguous_aliases=row.shared_aliases,
        unverified=row.unverified,
        sources=tuple(_expand(source, shared) for source in row.sources),
        as_of=file.as_of,
        notes=notes or None,
    )


def _profiles(table: MigSet) -> tuple[MigProfile, ...]:
    """MIG profiles of a table; what torch sees of an instance is what ``nvidia-smi mig -lgip`` prints."""
    profiles = []
    for row in table.profiles:
        compute_slices = int(row.name.partition("g")[0])
        counted = row.sm is not None and table.sm_count is not None
        memory = round(row.memory_gib * GIB)
        profiles.append(
            MigProfile(
                name=row.name,
                memory_bytes=memory,
                usable_memory_bytes=memory,
                max_instances=row.max,
                compute_share=(row.sm or 0) / (table.sm_count or 1)
                if counted
                else compute_slices / table.compute_slices,
                bandwidth_share=row.memory_slices / table.memory_slices,
                basis="measured" if counted and row.memory_basis is None else "estimated",
            )
        )
    return tuple(profiles)


def _expand(text: str, shared: Shared) -> str:
    """``@key detail`` stands for a text of ``shared.json``, with the detail after a colon."""
    if not text.startswith("@"):
        return text
    key, _, detail = text[1:].partition(" ")
    return f"{shared.texts[key]}: {detail}" if detail else shared.texts[key]


def _read(path: Path, kind: type[File]) -> File:
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except (OSError, msgspec.DecodeError) as error:
        msg = f"{path}: {error}"
        raise CatalogError(msg) from error
