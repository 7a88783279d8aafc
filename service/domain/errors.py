"""Exceptions of the domain and the catalogs.

SizingError                    any mistake of the caller, rendered as a problem document at the edge
├── UnknownId                  an id that no catalog holds (422 in a body, 404 in a path)
└── ImpossibleCombination      values that are each legal but contradict each other (422)
CatalogError                   broken data shipped with the service or in an overlay: the service does not start on it
"""

from service.domain.message import Message


class SizingError(Exception):
    """A caller's mistake at a place of the body."""

    code = "invalid"

    def __init__(self, pointer: str, message: Message, suggestions: tuple[str, ...] = ()) -> None:
        """Keep where (JSON pointer), what (message) and which values would be right."""
        super().__init__(f"{pointer}: {message.code}")
        self.pointer = pointer
        self.message = message
        self.suggestions = suggestions


class UnknownId(SizingError):
    """An id that the catalog does not hold; ``suggestions`` are the closest that it does."""

    code = "unknown_id"


class ImpossibleCombination(SizingError):
    """Values that contradict each other; ``message`` says what would fix it."""

    code = "impossible_combination"


class CatalogError(Exception):
    """A catalog file is wrong; the text names file and place."""
