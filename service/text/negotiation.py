"""The language of an answer, from the ``Accept-Language`` header (RFC 9110, 12.5.4)."""

from functools import lru_cache

from service.text.catalogs import LANGUAGES

DEFAULT_LANGUAGE = "en"

_LONGEST_HEADER = 200
"""Longer headers are not read: no browser sends them, and the cache below must stay small."""


@lru_cache(maxsize=256)
def _best(header: str) -> str:
    best, best_weight = DEFAULT_LANGUAGE, 0.0
    for part in header.split(","):
        tag, _, parameters = part.partition(";")
        primary = tag.strip().lower().partition("-")[0]
        name, _, value = parameters.partition("=")
        try:
            weight = float(value) if name.strip().lower() == "q" else 1.0
        except ValueError:
            continue
        if primary in LANGUAGES and best_weight < weight <= 1:
            best, best_weight = primary, weight
    return best


def negotiate(accept_language: str | None) -> str:
    """The offered language that the caller likes best; English where none is offered or the header is unreadable."""
    if not accept_language or len(accept_language) > _LONGEST_HEADER:
        return DEFAULT_LANGUAGE
    return _best(accept_language)
