"""Read the engine files: bands of versions into behaviours, and find the band of a version text.

A file holds rows ``{field, from, until, value, evidence, source, as_of}``: ``from`` is the first version with the
value, ``until`` the first without it. In every version exactly one row of each field holds, else the file is refused.
"""

import re
from bisect import bisect_right
from functools import lru_cache
from pathlib import Path
from typing import Literal

import msgspec
from packaging.version import Version

from service.domain.engine import EngineBehaviour, EngineName, ResidualClass, SupportRule
from service.domain.errors import CatalogError

Evidence = Literal["checked", "logs", "issue", "docs", "code", "fitted", "derived", "inferred", "recalled", "as_vllm"]
"""checked: recomputed from start-up logs. fitted: a coefficient fitted to logs. inferred, recalled: to be verified."""


class VersionRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A version known to exist."""

    version: str
    seen_by: str | None = None
    """A date on which it was in use; not the day of release."""


class BehaviourRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"since": "from"}):
    """One field's value in a band of versions."""

    field: str
    value: str | int | float | bool | tuple[str, ...]
    evidence: Evidence
    source: str
    as_of: str
    since: str | None = None
    until: str | None = None
    note: str | None = None


class SupportRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What an engine runs, from which version and on which cards."""

    what: Literal["vendor", "card", "model_type", "weights", "kv_cache"]
    ids: tuple[str, ...]
    """A trailing ``*`` stands for any ending."""
    evidence: Evidence
    source: str
    as_of: str
    vendors: tuple[str, ...] = ()
    min_compute_capability: float | None = None
    since: str | None = None
    until: str | None = None


class ResidualRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"since": "from"}):
    """Residuals of one class of start-up logs; ``tests/accuracy/memory_scorecard.py --residuals`` prints them."""

    layers: Literal["uniform", "hybrid", "any"]
    accelerators: Literal["one", "several", "any"]
    share_of_memory: float
    cases: int
    own: bool
    as_of: str
    since: str | None = None
    until: str | None = None


class EngineFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``<engine>.json``."""

    engine: EngineName
    versions: tuple[VersionRow, ...]
    behaviour: tuple[BehaviourRow, ...]
    support: tuple[SupportRow, ...]
    residuals: tuple[ResidualRow, ...]
    """Narrowest first: the first that holds is taken."""


class EngineTable(msgspec.Struct, frozen=True):
    """One engine: its file, and a behaviour for each band of versions."""

    file: EngineFile
    newest: str
    starts: tuple[Version, ...]
    """First version of each band, ascending."""
    bands: tuple[EngineBehaviour, ...]


def load_engines(folder: Path) -> dict[EngineName, EngineTable]:
    """All engines by name.

    Raises ``CatalogError`` naming file and field: unreadable data, unknown field, no value or two in a version.
    """
    tables: dict[EngineName, EngineTable] = {}
    for path in sorted(folder.glob("*.json")):
        try:
            file = msgspec.json.decode(path.read_bytes(), type=EngineFile)
        except (OSError, msgspec.DecodeError) as error:
            msg = f"{path}: {error}"
            raise CatalogError(msg) from error
        if path.stem != file.engine or file.engine in tables:
            msg = f"{path}: holds engine {file.engine!r}"
            raise CatalogError(msg)
        tables[file.engine] = _table(path, file)
    return tables


def behaviour(table: EngineTable, version_text: str | None = None) -> EngineBehaviour:
    """Behaviour of the version that leads ``version_text``; of the newest known where there is none.

    Any text is taken: ``v0.19.0``, ``0.19.2rc1.dev134+gfe9c3d6c5``, ``b5636``. Builds from a tree without tags call
    themselves ``0.1.dev1`` or ``0.0.0``; they count as the newest.
    """
    named = leading_version(version_text) if version_text else None
    text = named or table.newest
    band = table.bands[max(bisect_right(table.starts, Version(text)) - 1, 0)]
    return msgspec.structs.replace(band, version=shown_version(table.file.engine, text))


def shown_version(engine: EngineName, number: str) -> str:
    """A version as the engine writes it: builds of llama.cpp begin with a b."""
    return f"b{number}" if engine == "llama.cpp" else number


_VERSION = re.compile(
    r"""\s*v?b?(\d+(?:\.\d+)*
        (?:[-_.]?(?:alpha|beta|preview|pre|rc|a|b|c)[-_.]?\d*)?
        (?:[-_.]?(?:post|rev|r)[-_.]?\d*)?
        (?:[-_.]?dev[-_.]?\d*)?)""",
    re.IGNORECASE | re.VERBOSE,
)


@lru_cache(maxsize=1024)
def leading_version(text: str) -> str | None:
    """PEP 440 version (or build number) that ``text`` starts with; None where it starts with none."""
    match = _VERSION.match(text)
    if match is None:
        return None
    version = Version(match.group(1))
    untagged = (version.is_devrelease and version < Version("0.1.1")) or version == Version("0.0.0")
    return None if untagged else match.group(1)


def _table(path: Path, file: EngineFile) -> EngineTable:
    edges = {Version("0")}
    limits = [
        *((row.since, row.until) for row in file.behaviour),
        *((row.since, row.until) for row in file.support),
        *((row.since, row.until) for row in file.residuals),
    ]
    edges.update(Version(edge) for limit in limits for edge in limit if edge is not None)
    starts = tuple(sorted(edges))
    if not file.versions:
        msg = f"{path}: no versions"
        raise CatalogError(msg)
    newest = max((_number(row.version) for row in file.versions), key=Version)
    return EngineTable(
        file=file,
        newest=newest,
        starts=starts,
        bands=tuple(_band(path, file, start) for start in starts),
    )


def _number(version: str) -> str:
    return version.removeprefix("b")


def _holds(since: str | None, until: str | None, version: Version) -> bool:
    return (since is None or version >= Version(since)) and (until is None or version < Version(until))


_NOT_IN_ROWS = frozenset({"engine", "version", "support", "residuals"})


def _band(path: Path, file: EngineFile, start: Version) -> EngineBehaviour:
    values: dict[str, object] = {"engine": file.engine, "version": str(start)}
    fields = [each for each in msgspec.structs.fields(EngineBehaviour) if each.name not in _NOT_IN_ROWS]
    known = {field.name for field in fields}
    for row in file.behaviour:
        if row.field not in known:
            msg = f"{path}: unknown field {row.field!r}"
            raise CatalogError(msg)
        if not _holds(row.since, row.until, start):
            continue
        if row.field in values:
            msg = f"{path}: {row.field} has two values in {start}"
            raise CatalogError(msg)
        values[row.field] = row.value
    missing = {field.name for field in fields if field.required} - values.keys()
    if missing:
        msg = f"{path}: {', '.join(sorted(missing))} have no value in {start}"
        raise CatalogError(msg)
    try:
        band = msgspec.convert(values, EngineBehaviour, strict=True)
    except msgspec.ValidationError as error:
        msg = f"{path}: {start}: {error}"
        raise CatalogError(msg) from error
    classes = tuple(
        ResidualClass(row.layers, row.accelerators, row.share_of_memory, row.cases, row.own)
        for row in file.residuals
        if _holds(row.since, row.until, start)
    )
    return msgspec.structs.replace(band, residuals=classes, support=tuple(_rule(row, start) for row in file.support))


def _rule(row: SupportRow, version: Version) -> SupportRule:
    return SupportRule(
        what=row.what,
        ids=tuple(name for name in row.ids if not name.endswith("*")),
        prefixes=tuple(name[:-1] for name in row.ids if name.endswith("*")),
        vendors=row.vendors,
        min_compute_capability=row.min_compute_capability,
        absent=not _holds(row.since, row.until, version),
        since=row.since,
    )
