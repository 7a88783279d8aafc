"""One mistake in a request, and where it is."""

import difflib
from collections.abc import Iterable

import msgspec

from service.domain.errors import SizingError
from service.domain.message import Message

_MOST_SUGGESTIONS = 3
_LEAST_LIKENESS = 0.5
_LONGEST_COMPARED = 64
"""Names longer than any of ours are not compared: the comparison's time grows with the square of the length."""
_LONGEST_QUOTED = 80


class Fault(msgspec.Struct, frozen=True):
    """A mistake of the caller: what kind, at which JSON pointer (RFC 6901), in words, and what would be right."""

    code: str
    pointer: str
    message: Message
    suggestions: tuple[str, ...] = ()


def fault_of(error: SizingError, under: str = "") -> Fault:
    """The fault of a mistake that the domain found; ``under`` is the pointer of the value that it was looking at."""
    return Fault(error.code, under + error.pointer, error.message, error.suggestions)


def closest(name: str, known: Iterable[str]) -> tuple[str, ...]:
    """The known names most like ``name``, best first, at most three."""
    wanted = name[:_LONGEST_COMPARED].lower()
    by_lower = {other.lower(): other for other in known}
    found = difflib.get_close_matches(wanted, by_lower, n=_MOST_SUGGESTIONS, cutoff=_LEAST_LIKENESS)
    return tuple(by_lower[lower] for lower in found)


def pointer_step(name: str | int) -> str:
    """One reference token of a JSON pointer, with its slash."""
    return "/" + str(name).replace("~", "~0").replace("/", "~1")


def quoted(text: str) -> str:
    """The caller's own text for a message, cut to a readable length."""
    return text if len(text) <= _LONGEST_QUOTED else text[:_LONGEST_QUOTED] + "…"
