"""Finding known lines in a text of any size in linear time.

A line is known by a literal marker: the text is searched for the marker, and a short pattern is matched at that place over
a bounded window. No pattern ever runs over the whole text, and hits of one marker are bounded, so hostile input costs no
more than its length.
"""

import re
from collections.abc import Iterable, Iterator

from service.domain.units import GIB, KIB, MIB

WINDOW = 600
"""Characters that one line's figures lie within."""
BEFORE = 160
"""Characters before a marker that a prefix (rank, device) is looked for in."""
LONGEST_LINE = 64 * KIB
"""Of a line that lists launch arguments; the longest seen has 12,000 characters."""
MOST_HITS = 4096
"""Of one marker: two lines for each of 2,048 ranks."""

NUMBER = r"(-?\d{1,6}(?:\.\d{1,9})?)"
COUNT = r"(\d{1,3}(?:,\d{3}){1,4}|\d{1,12})(?![\d,.]\d)"
SIZE = NUMBER + r" {0,2}([KMG]i?B)\b"
"""A number and its unit: two groups."""

_ANSI = re.compile(r"\x1b\[[0-9;?]{0,32}[@-~]")
_UNITS = {"K": KIB, "M": MIB, "G": GIB}


def plain(text: str) -> str:
    """``text`` without terminal colours."""
    return _ANSI.sub("", text) if "\x1b" in text else text


def size(number: str, unit: str) -> int:
    """Bytes of a printed size. All engines read here print powers of 1,024, whether they write GB or GiB."""
    return round(float(number) * _UNITS[unit[0]])


def count(number: str) -> int:
    """A whole number, with or without thousands separators."""
    return int(number.replace(",", ""))


def places(text: str, marker: str) -> Iterator[int]:
    """Where ``marker`` stands in ``text``."""
    at = text.find(marker)
    for _ in range(MOST_HITS):
        if at < 0:
            return
        yield at
        at = text.find(marker, at + len(marker))


def hits(text: str, marker: str, pattern: re.Pattern[str]) -> Iterator[re.Match[str]]:
    """Matches of ``pattern`` right behind each ``marker``."""
    for at in places(text, marker):
        start = at + len(marker)
        match = pattern.match(text, start, start + WINDOW)
        if match is not None:
            yield match


def sizes(text: str, marker: str, pattern: re.Pattern[str]) -> list[int]:
    """Sizes behind each ``marker``; the pattern's first two groups are number and unit."""
    return [size(match[1], match[2]) for match in hits(text, marker, pattern)]


def before(text: str, at: int) -> str:
    """What stands on the same line before ``at``."""
    start = max(at - BEFORE, 0)
    return text[max(text.rfind("\n", start, at) + 1, start) : at]


def line_after(text: str, at: int) -> str:
    """The rest of the line from ``at`` on."""
    end = text.find("\n", at, at + LONGEST_LINE)
    return text[at : end if end >= 0 else at + LONGEST_LINE]


def first(found: Iterable[re.Match[str]]) -> re.Match[str] | None:
    """The first match, if any."""
    return next(iter(found), None)
