"""Which texts may be asked of a hub at all."""

import re

_PART = r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,94}[A-Za-z0-9_])?"
_HUB_ID = re.compile(f"{_PART}/{_PART}")
_FORBIDDEN = ("--", "..")


def is_hub_id(text: str) -> bool:
    """Tell whether the text is ``org/name`` by the hub's own rules, and nothing that a path could be bent with.

    Each part has 1 to 96 of ``A-Za-z0-9_.-`` and neither starts nor ends with ``.`` or ``-``; no ``--``, no ``..``, no
    ``.git`` at the end (``huggingface_hub.utils.validate_repo_id``; here the organisation is required).
    """
    return (
        _HUB_ID.fullmatch(text) is not None
        and not any(sequence in text for sequence in _FORBIDDEN)
        and not text.lower().endswith(".git")
    )
