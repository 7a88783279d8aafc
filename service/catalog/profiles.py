"""Read the profile files: kernels by class of cards, collectives by link, host costs by engine, spreads of errors."""

from pathlib import Path
from typing import TypeVar

import msgspec

from service.domain.calibration import CardClass, EngineHost, LinkClass, Profiles, Spread, release
from service.domain.errors import CatalogError

Row = TypeVar("Row")


def load_profiles(folder: Path) -> Profiles:
    """All tables of ``data/profiles``. Raises ``CatalogError`` naming the file that is wrong."""
    profiles = Profiles(
        classes=_rows(folder / "cards.json", CardClass),
        links=_rows(folder / "links.json", LinkClass),
        engines=_rows(folder / "engines.json", EngineHost),
        spreads=_rows(folder / "spreads.json", Spread),
    )
    for known in profiles.classes:
        shares = [share for kernel in known.kernels.values() for share in (kernel.peak_share, kernel.read_share)]
        shares += [known.kv_read_share, known.attention_peak_share]
        _check(all(0.0 < share <= _MOST_SHARE for share in shares), folder / "cards.json", f"{known.id}: share")
        missing = _KERNELS - set(known.kernels)
        _check(not missing, folder / "cards.json", f"{known.id}: no kernel {sorted(missing)}")
    for link in profiles.links:
        _check(all(0.0 < share <= 1.0 for share in link.bandwidth_share), folder / "links.json", link.kind)
    for host in profiles.engines:
        _check(bool(release(host.from_version)), folder / "engines.json", f"{host.engine}: version")
    _check(
        {spread.basis for spread in profiles.spreads} >= {"calibrated", "analytic"}, folder / "spreads.json", "basis"
    )
    return profiles


_MOST_SHARE = 1.2
"""A share may pass 1 where a data sheet understates (GeForce boost clocks)."""
_KERNELS = frozenset({"16bit", "fp8", "int8", "fp4", "w8a16", "w4a16", "gguf16", "gguf8", "gguf4"})


def _rows(path: Path, kind: type[Row]) -> tuple[Row, ...]:
    try:
        rows: tuple[Row, ...] = msgspec.json.decode(path.read_bytes(), type=tuple[kind, ...])  # type: ignore[valid-type]
    except (OSError, msgspec.DecodeError) as error:
        message = f"{path.name}: {error}"
        raise CatalogError(message) from error
    _check(bool(rows), path, "no rows")
    return rows


def _check(holds: bool, path: Path, what: str) -> None:  # noqa: FBT001 - the condition is the point
    if not holds:
        message = f"{path.name}: {what}"
        raise CatalogError(message)
