"""Problem documents (RFC 9457): the one shape of every error this service answers with.

Every exception that leaves a handler, and every refusal of the router, ends in ``problem_of`` and from there in one
document. Its ``type`` is a path of this service where the problem is described (``service/api/problem_pages.py``).
"""

import logging
from collections.abc import Mapping
from http import HTTPStatus
from types import MappingProxyType
from urllib.parse import quote

import msgspec
from litestar.exceptions import HTTPException

from service.api.fault import Fault, fault_of, quoted
from service.domain.errors import SizingError
from service.domain.message import Message
from service.text import render

PROBLEM_MEDIA_TYPE = "application/problem+json"

STATUS_OF: Mapping[str, int] = MappingProxyType(
    {
        "bad_request": 400,
        "not_json": 400,
        "too_deep": 400,
        "unauthorized": 401,
        "forbidden": 403,
        "not_found": 404,
        "method_not_allowed": 405,
        "revision_gone": 410,
        "too_large": 413,
        "uri_too_long": 414,
        "unsupported_media_type": 415,
        "invalid_request": 422,
        "unknown_field": 422,
        "unknown_query_parameter": 422,
        "wrong_type": 422,
        "out_of_range": 422,
        "missing_field": 422,
        "invalid_value": 422,
        "unknown_id": 422,
        "impossible_combination": 422,
        "too_many_requests": 429,
        "internal": 500,
        "unavailable": 503,
        "http_error": 400,
    }
)
"""Every code with the status it is answered with; ``unknown_id`` in a path is a 404, ``http_error`` keeps its own."""

_CODE_OF_STATUS = {
    400: "bad_request",
    401: "unauthorized",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    413: "too_large",
    414: "uri_too_long",
    415: "unsupported_media_type",
    429: "too_many_requests",
    503: "unavailable",
}

_log = logging.getLogger("service.errors")


class ProblemError(msgspec.Struct, frozen=True):
    """One fault of the request."""

    code: str
    """What kind of fault; each code is described at ``/problems/{code}``."""
    pointer: str
    """JSON pointer (RFC 6901) into the body, e.g. ``/traffic/input_tokens``; ``?name`` is a query parameter; empty is
    the request as a whole."""
    message: str
    """The fault in words, in the language of the answer."""
    suggestions: list[str]
    """Values or names that would be right, the closest first."""


class Problem(msgspec.Struct, frozen=True):
    """Why a request was refused (RFC 9457)."""

    type: str
    """Path of this service that describes the problem: ``/problems/{code}``."""
    title: str
    """The problem in a few words; the same for all occurrences."""
    status: int
    """The HTTP status."""
    detail: str
    """This occurrence in a sentence."""
    instance: str
    """The path that was asked for."""
    errors: list[ProblemError]
    """The faults, at least one and at most 50, in the order of the body."""


class Refusal(Exception):
    """A request that cannot be answered as asked; becomes a problem document."""

    def __init__(
        self, faults: list[Fault], status: int | None = None, headers: Mapping[str, str] | None = None
    ) -> None:
        """Refuse for ``faults`` (at least one); the status follows from their code unless given."""
        codes = {fault.code for fault in faults}
        self.code = codes.pop() if len(codes) == 1 else "invalid_request"
        super().__init__(self.code)
        self.faults = faults
        self.status = status or STATUS_OF.get(self.code, HTTPStatus.UNPROCESSABLE_ENTITY)
        self.headers = dict(headers or {})


def refusal(message: Message, code: str, headers: Mapping[str, str] | None = None) -> Refusal:
    """A refusal for one fault of the request as a whole."""
    return Refusal([Fault(code, "", message)], headers=headers)


def refusal_of(error: Exception, *, method: str, path: str, request_id: str) -> Refusal:
    """The refusal that stands for any exception; an unexpected one is logged and shows nothing of itself."""
    match error:
        case Refusal():
            return error
        case SizingError():
            return Refusal([fault_of(error)])
        case HTTPException() if error.status_code != HTTPStatus.INTERNAL_SERVER_ERROR:
            return _refusal_of_http(error, method, path)
    _log.error("request failed", exc_info=error, extra={"fields": {"request_id": request_id, "path": quoted(path)}})
    return refusal(Message("fault_internal", {"request_id": request_id}), "internal")


def _refusal_of_http(error: HTTPException, method: str, path: str) -> Refusal:
    status, headers = error.status_code, {name.lower(): value for name, value in (error.headers or {}).items()}
    allowed = allowed_methods(headers["allow"]) if "allow" in headers else []
    code = _CODE_OF_STATUS.get(status, "http_error")
    match code:
        case "not_found":
            message = Message("fault_no_such_path", {"path": quoted(path)})
        case "method_not_allowed":
            headers["allow"] = ", ".join(allowed)
            message = Message("fault_method", {"method": quoted(method), "allowed": headers["allow"]})
        case "bad_request":
            message = Message("fault_bad_request", {"reason": quoted(error.detail)})
        case _:
            message = Message("fault_http", {"status": str(status)})
    return Refusal([Fault(code, "", message, tuple(allowed))], status, headers)


def allowed_methods(allow: str) -> list[str]:
    """The methods of an ``Allow`` header as this service answers them: sorted, and HEAD wherever there is GET."""
    methods = {method.strip() for method in allow.split(",")}
    return sorted(methods | {"HEAD"} if "GET" in methods else methods)


def problem_of(refused: Refusal, path: str, language: str) -> Problem:
    """The document of a refusal, in the caller's language."""
    errors = [
        ProblemError(fault.code, fault.pointer, render(fault.message, language), list(fault.suggestions))
        for fault in refused.faults
    ]
    first = refused.faults[0].message
    detail = first if len(errors) == 1 else Message("fault_many", {"count": len(errors), "first": first})
    return Problem(
        type=f"/problems/{refused.code}",
        title=render(Message(f"problem_{refused.code}_title"), language),
        status=int(refused.status),
        detail=render(detail, language),
        instance=quote(path, safe="/", errors="replace"),
        errors=errors,
    )
