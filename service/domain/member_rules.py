"""JSON Schema of which members of an object are given, with null as not given: what types alone cannot say.

The rules document what the code refuses; the code stays the judge and says in words what would be right.
"""

Rule = dict[str, object]

_NOT_NULL = {"not": {"type": "null"}}


def given(*members: str, **ruled: Rule) -> Rule:
    """All of these members are given, those by keyword under a rule of their own."""
    properties = dict.fromkeys(members, _NOT_NULL) | ruled
    return {"type": "object", "required": list(properties), "properties": properties}


def exactly_one(*groups: tuple[str, ...]) -> Rule:
    """Exactly one of these groups of members is given."""
    return {"oneOf": [given(*group) for group in groups]}


def at_least_one(*groups: tuple[str, ...]) -> Rule:
    """At least one of these groups of members is given."""
    return {"anyOf": [given(*group) for group in groups]}
