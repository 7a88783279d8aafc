"""Answers to bytes: msgspec, with every ``Message`` rendered in the caller's language."""

from collections.abc import Callable
from functools import cache

import msgspec

from service.domain.message import Message
from service.text import render


def _hook(language: str) -> Callable[[object], object]:
    def encode(value: object) -> object:
        if isinstance(value, Message):
            return render(value, language)
        msg = f"cannot encode {type(value).__name__}"
        raise TypeError(msg)

    return encode


@cache
def encoder(language: str) -> msgspec.json.Encoder:
    """The JSON encoder of one language."""
    return msgspec.json.Encoder(enc_hook=_hook(language))


def encode(answer: object, language: str) -> bytes:
    """JSON of an answer; the same answer and language give the same bytes."""
    return encoder(language).encode(answer)


def schema_hook(kind: type) -> dict[str, object]:
    """JSON Schema of the two types that msgspec does not know (for ``msgspec.json.schema_components``)."""
    if kind is Message:
        return {"type": "string"}
    if kind is object:
        return {"description": "Any JSON value."}
    msg = f"no schema for {kind!r}"
    raise TypeError(msg)
