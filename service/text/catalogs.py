"""The message catalogs, read once at import from ``service/text/<language>/*.json``.

Each file is a flat object ``{"code": "Sentence with {param}."}`` about one subject. A language is offered only when it
has every code of English, so that no answer mixes two languages.
"""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TypeAlias

import msgspec

Catalog: TypeAlias = Mapping[str, str]

_FOLDER = Path(__file__).parent
_REFERENCE = "en"


def read_catalog(folder: Path) -> Catalog:
    """All sentences of one language's folder.

    Raises:
        ValueError: a code stands in two files, or a file is not a flat object of strings.

    """
    merged: dict[str, str] = {}
    for path in sorted(folder.glob("*.json")):
        try:
            sentences = msgspec.json.decode(path.read_bytes(), type=dict[str, str])
        except msgspec.DecodeError as error:
            msg = f"{folder.name}/{path.name}: {error}"
            raise ValueError(msg) from error
        if twice := sorted(merged.keys() & sentences.keys()):
            msg = f"{folder.name}/{path.name}: already in another file: {', '.join(twice)}"
            raise ValueError(msg)
        merged |= sentences
    return MappingProxyType(merged)


def _complete_catalogs() -> Mapping[str, Catalog]:
    reference = read_catalog(_FOLDER / _REFERENCE)
    found = {_REFERENCE: reference}
    for folder in sorted(_FOLDER.iterdir()):
        if folder.is_dir() and folder.name != _REFERENCE and any(folder.glob("*.json")):
            catalog = read_catalog(folder)
            if catalog.keys() >= reference.keys():
                found[folder.name] = catalog
    return MappingProxyType(found)


CATALOGS: Mapping[str, Catalog] = _complete_catalogs()
"""Sentences by language, then by code; only complete languages."""

LANGUAGES: tuple[str, ...] = tuple(CATALOGS)
"""Languages that the service can answer in."""
