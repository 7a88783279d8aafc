"""Names of models, cards, formats and versions, cut out of what a log prints.

A model is often a path. What is kept of it is the part that could be a public name, in a safe alphabet; the path is not.
"""

import re

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,119}")
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,95}/[A-Za-z0-9][A-Za-z0-9._+-]{0,119}")
_SHARD = re.compile(r"-\d{5}-of-\d{5}$")
_CACHE = re.compile(r"models--([A-Za-z0-9._+-]{1,96}?)--([A-Za-z0-9._+-]{1,120})$")
_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,63}")
_CARD = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._+()/-]{1,79}")

MOST_PARTS = 12
"""Path parts looked at, from the end."""


def model_names(printed: str | None) -> tuple[str, ...]:
    """Public names that a printed model, path or file may stand for, likeliest first."""
    if not printed:
        return ()
    parts = [part for part in printed[-600:].replace("\\", "/").split("/") if part][-MOST_PARTS:]
    for part in reversed(parts):
        cached = _CACHE.match(part)
        if cached is not None:
            return (f"{cached[1]}/{cached[2]}",)
    if not parts:
        return ()
    parts[-1] = _SHARD.sub("", parts[-1].removesuffix(".gguf"))
    if not _NAME.fullmatch(parts[-1]):
        return ()
    if _ID.fullmatch(printed) and len(parts) == 2:  # noqa: PLR2004 - owner and name; a folder of a path is no owner
        return (f"{parts[0]}/{parts[1]}", parts[1])
    return (parts[-1],)


def card_name(printed: str) -> tuple[str, ...]:
    """The name of a card, if it is one in a safe alphabet."""
    name = " ".join(printed.replace("_", " ").split())
    return (name,) if _CARD.fullmatch(name) else ()


def word(printed: str | None) -> str | None:
    """A flag's value that is one plain word; None for ``None`` and for all else."""
    if printed is None:
        return None
    value = printed.rsplit(".", maxsplit=1)[-1] if printed.startswith("torch.") else printed
    return value if value != "None" and _WORD.fullmatch(value) else None
