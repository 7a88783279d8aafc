"""Read the instance types of the clouds (``data/instances.json``): one line a type, shared texts in the head."""

from pathlib import Path
from typing import Annotated, Literal

import msgspec

from service.domain.errors import CatalogError
from service.domain.instance_type import InstanceType

Positive = Annotated[float, msgspec.Meta(gt=0)]


class InstanceSource(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Where types were read, and which part of a row rests on what."""

    source: str
    evidence: str


class InstanceRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One type as written in the file; ``type`` is its name at the cloud, ``on`` the key of its source."""

    type: str
    gpu: str | None
    gpu_name: str
    on: str
    candidates: tuple[str, ...] = ()
    gpus: Annotated[int, msgspec.Meta(ge=1)] | None = 1
    fraction: Annotated[float, msgspec.Meta(gt=0, le=1)] = 1.0
    memory_gb: Positive | None = None
    vendor: str = "nvidia"
    kind: Literal["gpu", "accelerator"] = "gpu"
    vcpu: Positive | None = None
    ram_gib: Positive | None = None
    notes: str | None = None


class InstanceFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """All instance types, by cloud."""

    format: Literal[1]
    sources: dict[str, InstanceSource]
    clouds: dict[str, tuple[InstanceRow, ...]]


def load_instances(path: Path) -> tuple[InstanceType, ...]:
    """All instance types, sorted by cloud and name.

    Raises ``CatalogError`` naming the file and row for unreadable data, an unknown source or a type named twice.
    """
    try:
        file = msgspec.json.decode(path.read_bytes(), type=InstanceFile)
    except (OSError, msgspec.DecodeError) as error:
        msg = f"{path}: {error}"
        raise CatalogError(msg) from error
    found: dict[tuple[str, str], InstanceType] = {}
    for cloud, rows in file.clouds.items():
        for row in rows:
            where = f"{path}: clouds/{cloud}/{row.type}"
            if row.on not in file.sources:
                msg = f"{where}: on: {row.on} is not among the sources"
                raise CatalogError(msg)
            key = instance_key(cloud, row.type)
            if key in found:
                msg = f"{where}: type named twice"
                raise CatalogError(msg)
            found[key] = _instance(cloud, row, file.sources[row.on])
    return tuple(found[key] for key in sorted(found))


def instance_key(cloud: str, instance_type: str) -> tuple[str, str]:
    """Key under which a type is looked up: clouds do not mind its case."""
    return cloud, instance_type.casefold()


def _instance(cloud: str, row: InstanceRow, source: InstanceSource) -> InstanceType:
    return InstanceType(
        cloud=cloud,
        instance_type=row.type,
        gpu=row.gpu,
        gpu_candidates=row.candidates,
        gpu_name=row.gpu_name,
        gpus=row.gpus,
        gpu_fraction=row.fraction,
        gpu_memory_gb=row.memory_gb,
        vendor=row.vendor,
        kind=row.kind,
        vcpu=row.vcpu,
        ram_gib=row.ram_gib,
        source=source.source,
        evidence=source.evidence,
        notes=row.notes,
    )
