"""Read a ``config.json`` that a stranger wrote."""

import json
import math

import msgspec

_LONGEST_INTEGER = 18
"""Digits that surely fit 64 bits; no count or size of a model needs more."""


def parse_config(text: bytes) -> dict[str, object] | None:
    """Return the object, or None where the text is no JSON object that every later reader can handle.

    Python writes ``Infinity`` and ``NaN`` into such files (Mamba-2's ``time_step_limit``), so those are read, as None.
    """
    try:
        config = json.loads(text, parse_constant=lambda _: None, parse_float=_finite, parse_int=_bounded)
        msgspec.json.encode(config)  # lone surrogates and the like
    except (ValueError, RecursionError):
        return None
    return config if isinstance(config, dict) and config else None


def _finite(digits: str) -> float | None:
    value = float(digits)
    return value if math.isfinite(value) else None


def _bounded(digits: str) -> int:
    if len(digits) > _LONGEST_INTEGER:
        message = "integer beyond 64 bits"
        raise ValueError(message)
    return int(digits)
