"""A whole catalog folder as one sequence of bytes, as the store carries it between hosts."""

import tempfile
from pathlib import Path, PurePosixPath

import msgspec

from service.catalog.snapshot import Snapshot, load_snapshot
from service.domain.errors import CatalogError

_MOST_FILES = 2000


def bundle_of(folder: Path) -> bytes:
    """All JSON files of a catalog folder by their path in it."""
    files = {path.relative_to(folder).as_posix(): path.read_text() for path in sorted(folder.rglob("*.json"))}
    return msgspec.json.encode(files, order="deterministic")


def snapshot_of(bundle: bytes) -> Snapshot:
    """Read and check the catalogs of a bundle.

    Raises:
        CatalogError: It is no bundle, or one of its files is broken.

    """
    try:
        files = msgspec.json.decode(bundle, type=dict[str, str])
    except msgspec.DecodeError as error:
        msg = f"not a catalog bundle: {error}"
        raise CatalogError(msg) from error
    if len(files) > _MOST_FILES:
        msg = f"a catalog bundle of {len(files)} files"
        raise CatalogError(msg)
    with tempfile.TemporaryDirectory(prefix="catalog-") as name:
        folder = Path(name)
        for path, text in files.items():
            place = PurePosixPath(path)
            if place.is_absolute() or ".." in place.parts or place.suffix != ".json":
                msg = f"a catalog bundle may not hold {path!r}"
                raise CatalogError(msg)
            (folder / place.parent).mkdir(parents=True, exist_ok=True)
            (folder / place).write_text(text)
        return load_snapshot(folder)
