"""What the domain says to people: a code with numbers, rendered per language at the edge.

``Message`` is a plain class, not a Struct, on purpose: an answer may hold one wherever its JSON has a sentence, and the
encoder's hook turns it into that sentence in the caller's language (``service/api/encoding.py``).
"""

from collections.abc import Mapping
from typing import TypeAlias

Param: TypeAlias = "str | int | float | Message"


class Message:
    """A sentence of the message catalogs (``service/text``) by its key, with the values to put in."""

    __slots__ = ("code", "params")

    def __init__(self, code: str, params: Mapping[str, Param] | None = None) -> None:
        """Name the sentence and its values; a value may itself be a message."""
        self.code = code
        self.params: dict[str, Param] = dict(params or {})

    def __eq__(self, other: object) -> bool:
        """Equal in code and values."""
        return isinstance(other, Message) and self.code == other.code and self.params == other.params

    def __hash__(self) -> int:
        """Hash of the code: messages of one code are few."""
        return hash(self.code)

    def __repr__(self) -> str:
        """Show code and values."""
        return f"Message({self.code!r}, {self.params!r})"
