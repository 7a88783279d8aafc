"""Take a GPU name apart: family, form factor, memory and MIG profile.

``NVIDIA A100-SXM4-80GB MIG 3g.40gb`` is the family ``100 a``, the form ``sxm``, 80 GiB and the profile ``3g.40gb``.
"""

import re
from collections.abc import Container

import msgspec

MAX_NAME_LENGTH = 120
"""Longer texts are no names: they are cut, so that reading one stays cheap."""

_PROFILE = re.compile(r"\b(\d+)g[.\-_ ](\d+)gb(?:[+\-][a-z.]+)?")
_MEMORY = re.compile(r"(?<![a-z0-9.])(\d+(?:\.\d+)?) ?(gib|gb|g|mib|mb)(?![a-z0-9])")
_FORM = re.compile(r"\b(sxm|pcie|nvl|max[ -]?q)(?: ?\d)?\b|\b(hgx|server|se|workstation|we|wk)\b")
_FORM_NAMES = {"hgx": "sxm", "se": "server", "we": "workstation", "wk": "workstation"}
_NOISE = re.compile(
    r"\(?\b\d+/\d+\b\)?"  # a fraction of a card: (1/6)
    r"|^\d+ ?x (?=\D)|^\d+x(?=[a-z])| x ?\d+$"  # a count: 8x H100
    r"|\b\d+-?core\b"  # Apple GPU cores
    r"|\bnvl(?:ink)? ?\d+\b|\bnvlink\b"  # NVL72, NVLink
    r"|\bhbm ?\d?e?\b|\bl?p?g?ddr ?\d?x?\b|\bgen ?\d\b"
)
_GLUED = (("tisuper", "ti super"), ("rtxpro", "rtx pro"), ("maxq", "max-q"), ("sxm", " sxm"), ("pcie", " pcie "))
_PIECES = re.compile(r"[a-z]+|\d+")
_MAKERS = ("nvidia", "geforce", "tesla", "amd", "instinct", "radeon", "intel", "google", "apple")
_SERIES = ("rtx", "gtx", "rx")
_FILLERS = (
    *("gpu", "gpus", "graphics", "card", "accelerator", "generation", "edition", "memory", "vram", "per", "the"),
    *("blackwell", "hopper", "lovelace", "aws", "cloud", "dgx", "oam"),
)
_NOT_FAMILY = frozenset((*_MAKERS, *_SERIES, *_FILLERS))
_NOT_SPELLED = frozenset((*_MAKERS, *_FILLERS))
"""Words that spelling out a name leaves away; the series stays, for ``RTX 4090`` says more than ``4090``."""


class NameWords(msgspec.Struct, frozen=True):
    """A name read."""

    family: str
    """Letter and digit pieces that are neither form, memory nor vendor words, sorted: their order does not matter."""
    form: str | None
    memory_gib: float | None
    profile: str | None
    """MIG profile, e.g. ``1g.10gb``."""


def spell(name: str) -> str:
    """Letters and digits of a name without makers and fillers, so that case, spaces and dashes do not matter."""
    words = re.split(r"[^a-z0-9]+", name[:MAX_NAME_LENGTH].lower())
    spelled = "".join(word for word in words if word not in _NOT_SPELLED)
    for maker in _MAKERS:
        spelled = spelled.removeprefix(maker) or spelled
    return spelled


def read_words(name: str, families: Container[str] | None = None, vocabulary: Container[str] = ()) -> NameWords:
    """Take a name apart.

    With the known ``families``, plain words outside ``vocabulary`` (their pieces) are ignored and a bare number may be
    memory (``A100 80``); without, while these are being collected, every word counts.
    """
    text = name[:MAX_NAME_LENGTH].lower()
    profile = None
    sliced = _PROFILE.search(text)
    if sliced is not None:
        profile = f"{sliced[1]}g.{sliced[2]}gb"
        text = f"{text[: sliced.start()]} {text[sliced.end() :]}".replace("mig", " ")
    text = re.sub(r"[^a-z0-9./]+", " ", text)
    for glued, apart in _GLUED:
        text = text.replace(glued, apart)
    sizes = [float(size) / 1024.0 if unit.startswith("m") else float(size) for size, unit in _MEMORY.findall(text)]
    memory_gib = sizes[0] if sizes else None
    text = _NOISE.sub(" ", _MEMORY.sub(" ", text).strip())
    forms = ["".join(groups).replace(" ", "").replace("-", "") for groups in _FORM.findall(text)]
    form = _FORM_NAMES.get(forms[0], forms[0]) if forms else None
    pieces: list[str] = []
    for word in re.split(r"[ ./]+", _FORM.sub(" ", text)):
        if families is not None and word.isalpha() and word not in vocabulary:
            continue
        pieces += [piece for piece in _PIECES.findall(word) if piece not in _NOT_FAMILY]
    if families is not None and memory_gib is None and _family(pieces) not in families:
        memory_gib = _take_bare_memory(pieces, families)
    return NameWords(_family(pieces), form, memory_gib, profile)


def alternatives(name: str) -> list[str]:
    """Parts of a text that names several cards (``L4 / A5000``, ``RTX 5070 Ti + RTX 5090 D``); empty for one name."""
    parts = re.split(r"\s+/\s+|\s*\+\s*|\s*,\s*|\s+or\s+|\s+and\s+", name[:MAX_NAME_LENGTH].lower())
    return [part for part in parts if part] if len(parts) > 1 else []


def _family(pieces: list[str]) -> str:
    return " ".join(sorted(pieces))


def _take_bare_memory(pieces: list[str], families: Container[str]) -> float | None:
    """Take the number out of ``pieces`` without which they are a known family."""
    for position in range(len(pieces) - 1, 0, -1):
        if pieces[position].isdigit() and _family(pieces[:position] + pieces[position + 1 :]) in families:
            return float(pieces.pop(position))
    return None
