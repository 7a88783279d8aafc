"""All faults of a value at once, where msgspec stops at the first.

Runs only after msgspec has refused a value. The type is walked together with the value, member by member; what this
walk does not know (a rule in ``__post_init__``, for one) is asked of msgspec for that member alone.
"""

import re
from collections.abc import Iterator
from functools import cache
from itertools import islice

import msgspec
from msgspec import inspect

from service.api.fault import Fault, closest, fault_of, pointer_step, quoted
from service.api.fault_values import kind_of, kinds, length_faults, number_faults, text_faults, wrong_type
from service.domain.errors import SizingError
from service.domain.message import Message

MOST_FAULTS = 50
"""Faults that one answer lists: enough to repair any honest request, and a bound on the work of a hostile one."""

_PLACE_IN_MESSAGE = re.compile(r"^(?P<reason>.*?)(?: - at `(?:key in )?\$(?P<path>[^`]*)`)?$", re.DOTALL)


@cache
def _shape(kind: object) -> inspect.Type:
    return inspect.type_info(kind)


def faults(kind: object, value: object) -> list[Fault]:
    """Every fault of ``value`` (plain JSON values) as a ``kind``, in document order, at most ``MOST_FAULTS``."""
    found = list(islice(_walk(_shape(kind), value, ""), MOST_FAULTS))
    return found or _refusal(kind, value, "")


def _refusal(kind: object, value: object, at: str) -> list[Fault]:
    """What msgspec itself, or a rule in ``__post_init__``, has against a value; nothing if it is accepted."""
    try:
        msgspec.convert(value, kind, strict=True)
    except SizingError as error:
        return [fault_of(error, at)]
    except msgspec.ValidationError as error:
        match = _PLACE_IN_MESSAGE.match(str(error))
        reason, path = (match["reason"], match["path"] or "") if match else (str(error), "")
        pointer = at + "".join(pointer_step(step) for step in re.findall(r"[^.\[\]]+", path))
        return [Fault("invalid_value", pointer, Message("fault_refused", {"reason": quoted(reason)}))]
    return []


def _walk(shape: inspect.Type, value: object, at: str) -> Iterator[Fault]:
    match shape:
        case inspect.Metadata():
            yield from _walk(shape.type, value, at)
        case inspect.UnionType():
            yield from _union(shape, value, at)
        case _ if kind_of(value) not in kinds(shape):
            yield wrong_type(kinds(shape), value, at)
        case inspect.StructType() if isinstance(value, dict):
            yield from _struct(shape, value, at)
        case inspect.DictType() if isinstance(value, dict):
            yield from _dict(shape, value, at)
        case inspect.ListType() | inspect.VarTupleType() | inspect.SetType() | inspect.FrozenSetType() if isinstance(
            value, list
        ):
            yield from _list(shape, value, at)
        case inspect.IntType() | inspect.FloatType() if isinstance(value, (int, float)):
            yield from number_faults(shape, value, at)
        case _:
            yield from text_faults(shape, value, at)


def _struct(shape: inspect.StructType, value: dict[str, object], at: str) -> Iterator[Fault]:
    fields = {field.encode_name: field for field in shape.fields}
    clean = True
    for name, member in value.items():
        field = fields.get(name)
        here = at + pointer_step(name)
        if field is not None:
            for fault in _walk(field.type, member, here):
                clean = False
                yield fault
        elif name == shape.tag_field:
            if member != shape.tag:
                clean = False
                yield _not_a_tag(member, (shape.tag,), here)
        elif shape.forbid_unknown_fields:
            clean = False
            message = Message("fault_unknown_field", {"field": quoted(name)})
            yield Fault("unknown_field", here, message, closest(name, fields))
    for field in shape.fields:
        if field.required and field.encode_name not in value:
            clean = False
            message = Message("fault_missing_field", {"field": field.encode_name})
            yield Fault("missing_field", at + pointer_step(field.encode_name), message)
    if clean and hasattr(shape.cls, "__post_init__"):
        yield from _refusal(shape.cls, value, at)


def _dict(shape: inspect.DictType, value: dict[str, object], at: str) -> Iterator[Fault]:
    yield from length_faults(shape, len(value), at, "items")
    for name, member in value.items():
        here = at + pointer_step(name)
        if not isinstance(shape.key_type, inspect.AnyType):
            yield from _walk(shape.key_type, name, here)
        yield from _walk(shape.value_type, member, here)


def _list(
    shape: inspect.ListType | inspect.VarTupleType | inspect.SetType | inspect.FrozenSetType,
    value: list[object],
    at: str,
) -> Iterator[Fault]:
    yield from length_faults(shape, len(value), at, "items")
    for index, member in enumerate(value):
        yield from _walk(shape.item_type, member, at + pointer_step(index))


def _union(shape: inspect.UnionType, value: object, at: str) -> Iterator[Fault]:
    """Walk the branch that the value means: the one of its JSON type, among tagged structs the one of its tag."""
    fitting = [branch for branch in shape.types if kind_of(value) in kinds(branch)]
    tagged = {branch.tag: branch for branch in fitting if isinstance(branch, inspect.StructType) and branch.tag_field}
    if not fitting:
        yield wrong_type(kinds(shape), value, at)
    elif len(tagged) > 1 and isinstance(value, dict):
        tag_field = next(iter(tagged.values())).tag_field or ""
        here = at + pointer_step(tag_field)
        if tag_field not in value:
            yield Fault("missing_field", here, Message("fault_missing_field", {"field": tag_field}))
        elif (tag := value[tag_field]) in [known for known in tagged if type(known) is type(tag)]:
            yield from _walk(tagged[tag], value, at)
        else:
            yield _not_a_tag(tag, tuple(tagged), here)
    else:
        least: list[Fault] | None = None
        for branch in fitting:
            found = list(islice(_walk(branch, value, at), MOST_FAULTS))
            if least is None or len(found) < len(least):
                least = found
        yield from least or ()


def _not_a_tag(tag: object, known: tuple[object, ...], at: str) -> Fault:
    choices = tuple(str(name) for name in known)
    suggestions = closest(tag, choices) if isinstance(tag, str) else ()
    return Fault("invalid_value", at, Message("fault_not_a_choice", {"choices": ", ".join(choices)}), suggestions)
