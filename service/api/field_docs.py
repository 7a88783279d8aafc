"""The docstring under each field of a Struct: public text is written once, beside the field, and OpenAPI shows it."""

import ast
import sys
from collections.abc import Iterator
from functools import cache
from inspect import getsource

from msgspec import inspect


@cache
def _docs_of_module(module: str) -> dict[str, dict[str, str]]:
    """Field docstrings by class and field."""
    found: dict[str, dict[str, str]] = {}
    try:
        source = getsource(sys.modules[module])
    except (OSError, KeyError):  # without sources at hand the document lacks these descriptions
        return found
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.ClassDef):
            continue
        docs = found.setdefault(node.name, {})
        for field, after in zip(node.body, node.body[1:], strict=False):
            if (
                isinstance(field, ast.AnnAssign)
                and isinstance(field.target, ast.Name)
                and isinstance(after, ast.Expr)
                and isinstance(after.value, ast.Constant)
                and isinstance(after.value.value, str)
            ):
                docs[field.target.id] = " ".join(after.value.value.split())
    return found


def field_docs(kind: type) -> dict[str, str]:
    """Docstrings by field name, those of the bases included."""
    docs: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        if base.__module__ not in {"builtins", "msgspec", "typing"}:
            docs |= _docs_of_module(base.__module__).get(base.__name__, {})
    return docs


def structs_in(kinds: list[object]) -> list[inspect.StructType]:
    """Every Struct that these types reach, each once."""
    found: dict[int, inspect.StructType] = {}
    for shape in inspect.multi_type_info(kinds):
        for struct in _structs(shape, found):
            found[id(struct)] = struct
    return list(found.values())


def _structs(shape: inspect.Type, seen: dict[int, inspect.StructType]) -> Iterator[inspect.StructType]:
    if isinstance(shape, inspect.StructType):
        if id(shape) in seen:
            return
        seen[id(shape)] = shape
        yield shape
        for field in shape.fields:
            yield from _structs(field.type, seen)
    for name in ("type", "item_type", "key_type", "value_type"):
        if isinstance(inner := getattr(shape, name, None), inspect.Type):
            yield from _structs(inner, seen)
    for name in ("types", "item_types"):
        for inner in getattr(shape, name, ()):
            yield from _structs(inner, seen)
