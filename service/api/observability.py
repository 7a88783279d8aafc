"""Around every request: its id, one access log line, its metrics, the security headers, and HEAD.

One pure-ASGI layer with one ``send`` wrapper, outermost, so that what the router itself refuses (404, 405) is seen too.
Query strings and bodies are never logged.
"""

import logging
import re
import secrets
from http import HTTPStatus
from time import perf_counter

import msgspec
from litestar.enums import ScopeType
from litestar.types import ASGIApp, HTTPScope, Message, Receive, Scope, Send

from service.api.fault import quoted
from service.api.metrics import Metrics
from service.api.problems import PROBLEM_MEDIA_TYPE, allowed_methods, problem_of, refusal, refusal_of
from service.api.reply import Reply
from service.domain.message import Message as Text
from service.text import DEFAULT_LANGUAGE

UNMATCHED_ROUTE = "unmatched"
TARGET_LIMIT_BYTES = 32 * 1024
"""Longest path and query: twice what the longest legal query takes with every character percent-encoded."""

_REQUEST_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"})
_ALWAYS = ((b"x-content-type-options", b"nosniff"), (b"referrer-policy", b"no-referrer"))
_NOTHING_LOADS = (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'")

_log = logging.getLogger("service.access")


def request_id_of(scope: Scope) -> str:
    """The id of the request in hand, as sent back in ``X-Request-Id``."""
    return str(scope["state"]["request_id"])


def _request_id(scope: HTTPScope) -> bytes:
    """The caller's own id if it is harmless, else a new one."""
    for name, value in scope["headers"]:
        if name == b"x-request-id" and _REQUEST_ID.fullmatch(value):
            return value
    return secrets.token_hex(8).encode("ascii")


class _Exchange:
    """One request under way: its ``send``, watched and completed."""

    __slots__ = ("_request_id", "_send", "_without_body", "sent_bytes", "status")

    def __init__(self, send: Send, request_id: bytes, *, without_body: bool) -> None:
        self._send = send
        self._request_id = request_id
        self._without_body = without_body
        self.status = 0
        self.sent_bytes = 0

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            message["headers"] = self._completed(list(message["headers"]))
        elif message["type"] == "http.response.body":
            if self._without_body:
                message["body"] = b""
            self.sent_bytes += len(message["body"])
        await self._send(message)

    def _completed(self, headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
        names = {name for name, _ in headers}
        headers += (*_ALWAYS, (b"x-request-id", self._request_id))
        if b"content-security-policy" not in names:
            headers.append(_NOTHING_LOADS)
        if self.status == HTTPStatus.NO_CONTENT and b"allow" in names:  # the framework's answer to OPTIONS
            return [(name, _with_head(value) if name == b"allow" else value) for name, value in headers]
        return headers


def _with_head(allow: bytes) -> bytes:
    return ", ".join(allowed_methods(allow.decode("latin-1"))).encode("latin-1")


def _check_target(scope: HTTPScope) -> None:
    """Refuse a path and query that no legal request needs (414)."""
    if len(scope["raw_path"]) + len(scope["query_string"]) > TARGET_LIMIT_BYTES:
        raise refusal(Text("fault_uri_too_long", {"limit": TARGET_LIMIT_BYTES}), "uri_too_long")


class Observed:
    """The application with everything that surrounds a request."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        """Wrap ``app``."""
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != ScopeType.HTTP:
            await self._app(scope, receive, send)
            return
        started_at = perf_counter()
        http = scope
        method, path = str(http["method"]), http["path"]
        request_id = _request_id(http)
        http.setdefault("state", {})["request_id"] = request_id.decode("ascii")
        exchange = _Exchange(send, request_id, without_body=method == "HEAD")
        if method == "HEAD":
            http["method"] = "GET"
        try:
            _check_target(http)
            await self._app(scope, receive, exchange.send)
        except Exception as error:
            refused = refusal_of(error, method=method, path=path, request_id=request_id_of(scope))
            if exchange.status:
                raise
            instance = path if len(path) <= TARGET_LIMIT_BYTES else quoted(path)
            problem = msgspec.json.encode(problem_of(refused, instance, DEFAULT_LANGUAGE))
            headers = {"Content-Language": DEFAULT_LANGUAGE, "Cache-Control": "no-store"}
            await Reply(problem, PROBLEM_MEDIA_TYPE, refused.status, headers)(scope, receive, exchange.send)
        finally:
            self._record(http, method if method in _METHODS else "other", path, exchange, perf_counter() - started_at)

    def _record(self, scope: HTTPScope, method: str, path: str, exchange: _Exchange, duration_s: float) -> None:
        route = str(scope.get("path_template") or UNMATCHED_ROUTE)
        self._metrics.observe(method, route, exchange.status, duration_s)
        if _log.isEnabledFor(logging.INFO):
            fields = {
                "request_id": request_id_of(scope),
                "method": method,
                "route": route,
                "path": quoted(path),
                "status": exchange.status,
                "duration_ms": round(duration_s * 1000, 3),
                "sent_bytes": exchange.sent_bytes,
            }
            # Made by hand: finding the caller's line, which is always this one, would cost more than all the rest.
            record = logging.LogRecord(_log.name, logging.INFO, __file__, 0, "request", None, None)
            record.fields = fields
            _log.handle(record)
