"""Faults of single values: JSON type, range, length, choice."""

import math
import re
from collections.abc import Iterator, Sized
from datetime import date

import msgspec
from msgspec import inspect

from service.api.fault import Fault, closest
from service.domain.message import Message

_KINDS: dict[type[inspect.Type], frozenset[str]] = {
    inspect.NoneType: frozenset({"null"}),
    inspect.BoolType: frozenset({"boolean"}),
    inspect.IntType: frozenset({"integer"}),
    inspect.FloatType: frozenset({"integer", "number"}),
    inspect.DecimalType: frozenset({"integer", "number", "string"}),
    inspect.ListType: frozenset({"array"}),
    inspect.VarTupleType: frozenset({"array"}),
    inspect.TupleType: frozenset({"array"}),
    inspect.SetType: frozenset({"array"}),
    inspect.FrozenSetType: frozenset({"array"}),
    inspect.DictType: frozenset({"object"}),
    inspect.StructType: frozenset({"object"}),
}
_ANY = frozenset({"null", "boolean", "integer", "number", "string", "array", "object"})
_MOST_CHOICES_SHOWN = 40


def kind_of(value: object) -> str:  # noqa: PLR0911 - JSON has seven types
    """The JSON type of a plain value; whole numbers are ``integer``."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
        case _:
            return "object"


def kinds(shape: inspect.Type) -> frozenset[str]:
    """The JSON types that a type accepts."""
    match shape:
        case inspect.UnionType():
            return frozenset().union(*(kinds(branch) for branch in shape.types))
        case inspect.Metadata():
            return kinds(shape.type)
        case inspect.LiteralType():
            return frozenset(kind_of(choice) for choice in shape.values)
        case inspect.EnumType():
            return frozenset(kind_of(member.value) for member in shape.cls)
        case inspect.AnyType() | inspect.RawType() | inspect.CustomType():
            return _ANY
        case _:
            return _KINDS.get(type(shape), frozenset({"string"}))


def wrong_type(expected: frozenset[str], value: object, at: str) -> Fault:
    """The fault of a value whose JSON type is none of the expected."""
    names = expected - {"null"} or expected
    if "number" in names:
        names -= {"integer"}
    params = {"expected": " | ".join(sorted(names)), "actual": kind_of(value)}
    return Fault("wrong_type", at, Message("fault_wrong_type", params))


def number_faults(shape: inspect.IntType | inspect.FloatType, value: float, at: str) -> Iterator[Fault]:
    """Faults of a number against its bounds; a number that no float can hold is one too."""
    try:
        as_float = float(value)
    except OverflowError:
        as_float = math.inf
    if isinstance(shape, inspect.FloatType):
        value = as_float
    if not math.isfinite(as_float):
        yield _out_of_range("fault_beyond_float_range", {}, at)
        return
    if shape.ge is not None and value < shape.ge:
        yield _out_of_range("fault_at_least", {"limit": shape.ge}, at)
    if shape.gt is not None and value <= shape.gt:
        yield _out_of_range("fault_above", {"limit": shape.gt}, at)
    if shape.le is not None and value > shape.le:
        yield _out_of_range("fault_at_most", {"limit": shape.le}, at)
    if shape.lt is not None and value >= shape.lt:
        yield _out_of_range("fault_below", {"limit": shape.lt}, at)
    if shape.multiple_of is not None and value % shape.multiple_of:
        yield _out_of_range("fault_multiple_of", {"factor": shape.multiple_of}, at)


def length_faults(shape: inspect.Type, length: int, at: str, counted: str) -> Iterator[Fault]:
    """Faults of a count of ``items`` or of the ``length`` of a text."""
    least, most = getattr(shape, "min_length", None), getattr(shape, "max_length", None)
    if least is not None and length < least:
        yield _out_of_range(f"fault_{counted}_at_least", {"limit": least}, at)
    if most is not None and length > most:
        yield _out_of_range(f"fault_{counted}_at_most", {"limit": most}, at)


def text_faults(shape: inspect.Type, value: object, at: str) -> Iterator[Fault]:
    """Faults of texts, choices and dates."""
    match shape:
        case inspect.LiteralType():
            yield from _choice(shape.values, value, at)
        case inspect.EnumType():
            yield from _choice(tuple(member.value for member in shape.cls), value, at)
        case inspect.StrType():
            yield from length_faults(shape, len(value) if isinstance(value, Sized) else 0, at, "length")
            if shape.pattern is not None and not re.search(shape.pattern, str(value)):
                yield Fault("invalid_value", at, Message("fault_pattern", {"pattern": shape.pattern}))
        case inspect.DateType():
            try:
                msgspec.convert(value, date)
            except msgspec.ValidationError:
                yield Fault("invalid_value", at, Message("fault_not_a_date"))


def _choice(choices: tuple[object, ...], value: object, at: str) -> Iterator[Fault]:
    if any(choice == value and type(choice) is type(value) for choice in choices):
        return
    names = tuple(str(choice) for choice in choices)
    shown = ", ".join(names[:_MOST_CHOICES_SHOWN])
    suggestions = closest(value, names) if isinstance(value, str) else ()
    yield Fault("invalid_value", at, Message("fault_not_a_choice", {"choices": shown}), suggestions)


def _out_of_range(code: str, params: dict[str, int | float], at: str) -> Fault:
    return Fault("out_of_range", at, Message(code, params))
