"""A request body: read within a limit, decoded strictly, refused with all its faults at once.

Why not the framework's own decoding: it converts ``"12"`` to 12, ignores the media type, fails on deep nesting and
reports one fault only. Why not msgspec's typed decoder: it refuses ``256.0`` for an integer, which JSON Schema (and
Python clients) call one. So a body is decoded to plain values, whole floats become integers, and msgspec converts
strictly.
"""

import math
from typing import TypeVar

import msgspec
from litestar.types import Receive

from service.api.fault_search import faults
from service.api.problems import Refusal, refusal
from service.domain.errors import SizingError
from service.domain.message import Message

T = TypeVar("T")

BODY_LIMIT_BYTES = 1024 * 1024
READ_BEYOND_LIMIT_BYTES = 4 * 1024 * 1024
DEEPEST_NESTING = 100
_LARGEST_EXACT_FLOAT = 2.0**53
"""Above it a float no longer tells neighbouring integers apart (IEEE 754 binary64)."""


def _number(text: str) -> float:
    value = float(text)
    if value.is_integer() and abs(value) <= _LARGEST_EXACT_FLOAT:
        return int(value)
    if math.isinf(value):
        msg = "beyond the range of a float"
        raise ValueError(msg)
    return value


_decoder = msgspec.json.Decoder(float_hook=_number)


async def read_body(receive: Receive, content_length: str | None, limit_bytes: int) -> bytes:
    """The whole body.

    One that is somewhat too large is read to its end and thrown away: many clients look for an answer only after they
    have sent all of it, and would see a broken connection instead of the refusal.

    Raises:
        Refusal: it is larger than ``limit_bytes`` (413), or ended early (400).

    """
    if content_length and content_length.isdecimal() and int(content_length) > limit_bytes + READ_BEYOND_LIMIT_BYTES:
        raise _too_large(limit_bytes)
    chunks: list[bytes] = []
    size = 0
    while True:
        event = await receive()
        if event["type"] != "http.request":
            raise refusal(Message("fault_bad_request", {"reason": "the connection was closed"}), "bad_request")
        chunk = event.get("body", b"")
        size += len(chunk)
        if size > limit_bytes + READ_BEYOND_LIMIT_BYTES:
            raise _too_large(limit_bytes)
        more = event.get("more_body", False)
        if size > limit_bytes:
            chunks.clear()
            if not more:
                raise _too_large(limit_bytes)
            continue
        if not more:
            return chunk if not chunks else b"".join((*chunks, chunk))
        chunks.append(chunk)


def check_media_type(content_type: str | None, content_encoding: str | None) -> None:
    """Accept JSON in UTF-8 only (415 otherwise)."""
    if content_encoding and content_encoding.lower() != "identity":
        raise refusal(Message("fault_content_encoding", {"actual": content_encoding[:80]}), "unsupported_media_type")
    if content_type == "application/json":
        return
    media_type, *parameters = (part.strip().lower() for part in (content_type or "").split(";"))
    is_json = media_type == "application/json" or (
        media_type.startswith("application/") and media_type.endswith("+json")
    )
    charset = next((p[8:].strip('"') for p in parameters if p.startswith("charset=")), "utf-8")
    if not is_json or charset not in {"utf-8", "utf8"}:
        message = Message("fault_media_type", {"actual": (content_type or "-")[:80]})
        raise refusal(message, "unsupported_media_type", {"Accept": "application/json"})


def decode(kind: type[T], raw: bytes) -> T:
    """``raw`` as a ``kind``.

    Raises:
        Refusal: it is not JSON or nests too deeply (400), or is JSON but not a ``kind`` (422, every fault listed).

    """
    value = _plain(raw)
    try:
        converted = msgspec.convert(value, kind, strict=True)
    except (msgspec.ValidationError, SizingError) as error:
        raise Refusal(faults(kind, value)) from error
    return converted


def _plain(raw: bytes) -> object:
    """JSON as dicts, lists, strings, numbers, booleans and None."""
    if not raw:
        raise refusal(Message("fault_empty_body"), "not_json")
    try:
        value = _decoder.decode(raw)
    except RecursionError as error:
        raise _too_deep() from error
    except msgspec.ValidationError as error:  # such as 1e999, or an integer of thousands of digits
        raise refusal(Message("fault_beyond_float_range"), "out_of_range") from error
    except msgspec.DecodeError as error:
        raise refusal(Message("fault_not_json", {"reason": str(error)}), "not_json") from error
    if raw.count(b"[") + raw.count(b"{") > DEEPEST_NESTING and _depth_exceeds(value, DEEPEST_NESTING):
        raise _too_deep()
    return value


def _depth_exceeds(value: object, limit: int) -> bool:
    level = [value] if isinstance(value, (dict, list)) else []
    for _ in range(limit):
        level = [
            member
            for container in level
            for member in (container.values() if isinstance(container, dict) else container)
            if isinstance(member, (dict, list))
        ]
        if not level:
            return False
    return True


def _too_deep() -> Refusal:
    return refusal(Message("fault_too_deep", {"limit": DEEPEST_NESTING}), "too_deep")


def _too_large(limit_bytes: int) -> Refusal:
    return refusal(Message("fault_too_large", {"limit": limit_bytes}), "too_large")
