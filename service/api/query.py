"""The query string as a record: a Struct of an operation declares its parameters, and nothing else is accepted.

Values arrive as text. Each is read as the JSON value that its field's type asks for (``true``, ``12``, ``0.5``), then
the record is built as strictly as a body, so ranges, choices and unknown names give the same kinds of faults. A field
that is a tuple or list may be given several times; any other only once.
"""

from typing import TypeVar, cast
from urllib.parse import parse_qsl

import msgspec
from msgspec import inspect

from service.api.fault import Fault, closest, quoted
from service.api.fault_search import faults
from service.api.fault_values import kinds
from service.api.problems import Refusal, refusal
from service.domain.message import Message

Q = TypeVar("Q")

_BOOLEANS = {"true": True, "false": False}
_MOST_PARAMETERS = 100


class NoQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The query of an operation that takes no parameters."""


class QueryReader:
    """Reads query strings as one Struct type."""

    def __init__(self, kind: type[Q]) -> None:
        """Look at the fields of ``kind`` once."""
        shape = cast("inspect.StructType", inspect.type_info(kind))
        self.kind = kind
        self.fields = {field.encode_name: kinds(field.type) for field in shape.fields}
        self.default = None if any(field.required for field in shape.fields) else kind()

    def read(self, query_string: bytes) -> object:
        """The record.

        Raises:
            Refusal: an unknown or repeated parameter, or a value that its field does not accept (422, all listed).

        """
        if not query_string and self.default is not None:
            return self.default
        values, wrong = self._values(query_string)
        try:
            record = msgspec.convert(values, self.kind, strict=True)
        except msgspec.ValidationError:
            wrong += [
                Fault(fault.code, "?" + fault.pointer[1:], fault.message, fault.suggestions)
                for fault in faults(self.kind, values)
            ]
            raise Refusal(wrong) from None
        if wrong:
            raise Refusal(wrong)
        return record

    def _values(self, query_string: bytes) -> tuple[dict[str, object], list[Fault]]:
        try:
            pairs = parse_qsl(
                query_string.decode("latin-1"),
                keep_blank_values=True,
                errors="replace",
                max_num_fields=_MOST_PARAMETERS,
            )
        except ValueError as error:
            raise refusal(Message("fault_bad_request", {"reason": str(error)}), "bad_request") from error
        values: dict[str, object] = {}
        lists: dict[str, list[str]] = {}
        wrong: list[Fault] = []
        for name, text in pairs:
            accepted = self.fields.get(name)
            if accepted is None:
                message = Message("fault_unknown_query_parameter", {"parameter": quoted(name)})
                wrong.append(Fault("unknown_query_parameter", "?" + name, message, closest(name, self.fields)))
            elif "array" in accepted:
                lists.setdefault(name, []).append(text)
            elif name in values:
                message = Message("fault_repeated_query_parameter", {"parameter": name})
                wrong.append(Fault("invalid_value", "?" + name, message))
            else:
                values[name] = _native(text, accepted)
        return values | lists, wrong


def _native(text: str, accepted: frozenset[str]) -> object:
    """The JSON value that ``text`` spells, where the field accepts its type; else the text itself."""
    if "boolean" in accepted and text in _BOOLEANS:
        return _BOOLEANS[text]
    try:
        if "integer" in accepted and text.lstrip("-").isdecimal():
            return int(text)
        if "number" in accepted:
            return float(text)
    except ValueError:
        pass
    return text
