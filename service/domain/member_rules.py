"""JSON Schema of which members of an object are given, with null as not given: what types alone cannot say.

The rules document what the code refuses; the code stays the judge and says in words what would be right.
"""

Rule = dict[str, object]

_NULL: Rule = {"type": "null"}
_NOT_NULL: Rule = {"not": _NULL}


def given(*members: str, without: tuple[str, ...] = (), **ruled: Rule) -> Rule:
    """All of these members are given, those by keyword under a rule of their own, and none of ``without``."""
    needed = dict.fromkeys(members, _NOT_NULL) | ruled
    return {"type": "object", "required": list(needed), "properties": needed | dict.fromkeys(without, _NULL)}


def exactly_one(*groups: tuple[str, ...]) -> Rule:
    """Exactly one of these groups of members is given."""
    return {"oneOf": [given(*group) for group in groups]}


def at_least_one(*groups: tuple[str, ...]) -> Rule:
    """At least one of these groups of members is given."""
    return {"anyOf": [given(*group) for group in groups]}
