"""What each problem ``type`` means, served at the path that the type names."""

from typing import Any

import msgspec

from service.api.call import Call
from service.api.fault import closest
from service.api.operation import operation
from service.api.problems import STATUS_OF
from service.domain.errors import UnknownId
from service.domain.message import Message


class ProblemKind(msgspec.Struct, frozen=True):
    """A kind of problem."""

    code: str
    """As in ``errors[].code``."""
    type: str
    """As in the problem document's ``type``."""
    status: int
    """The HTTP status it usually has."""
    title: Message
    description: Message


class ProblemKinds(msgspec.Struct, frozen=True):
    """Every kind of problem."""

    items: list[ProblemKind]
    total: int
    next_cursor: None = None


def _kind(code: str) -> ProblemKind:
    title, about = Message(f"problem_{code}_title"), Message(f"problem_{code}_about")
    return ProblemKind(code, f"/problems/{code}", STATUS_OF[code], title, about)


@operation("GET", "/problems", tag="operations")
def list_problems(call: Call[None]) -> ProblemKinds:
    """All kinds of problems."""
    del call
    return ProblemKinds([_kind(code) for code in STATUS_OF], len(STATUS_OF))


@operation("GET", "/problems/{code:str}", tag="operations")
def describe_problem(call: Call[None], code: str) -> ProblemKind:
    """What one kind of problem means and how to avoid it."""
    del call
    if code not in STATUS_OF:
        at = "/code"
        raise UnknownId(at, Message("fault_problem_unknown"), closest(code, STATUS_OF))
    return _kind(code)


PROBLEM_OPERATIONS: list[Any] = [list_problems, describe_problem]
