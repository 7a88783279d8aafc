"""What the domain says to people: a code with numbers, rendered per language at the edge."""

import msgspec

Param = str | int | float


class Message(msgspec.Struct, frozen=True):
    """A sentence of the message catalogs (``service/text``) by its key, with the values to put in."""

    code: str
    params: dict[str, Param] = {}
