"""The HTTP application around a set of operations: routing, problem documents, observation."""

import difflib
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

import msgspec
from litestar import Litestar, Request, Response
from litestar.datastructures import State
from litestar.handlers import HTTPRouteHandler

from service.api.call import Runtime
from service.api.document import openapi_document
from service.api.documentation import documentation_operations
from service.api.health import Check, health_operations
from service.api.metrics import Metrics
from service.api.observability import Observed, request_id_of
from service.api.problem_pages import PROBLEM_OPERATIONS
from service.api.problems import PROBLEM_MEDIA_TYPE, Refusal, problem_of, refusal_of
from service.text import negotiate

Lifespan = Callable[[Litestar], AbstractAsyncContextManager[None]]


def http_application(
    operations: Sequence[HTTPRouteHandler],
    runtime: Runtime,
    *,
    checks: Callable[[], dict[str, Check]],
    lifespan: Sequence[Lifespan] = (),
) -> Litestar:
    """An application that answers ``operations`` beside health, metrics, problems and documentation.

    Args:
        operations: Handlers made by ``service.api.operation.operation``.
        runtime: What the requests share: the snapshots held, the clock.
        checks: Asked at each readiness probe.
        lifespan: Entered when a worker starts and left when it ends.

    """
    metrics = Metrics()
    app: Litestar
    handlers: list[Any] = [
        *operations,
        *health_operations(checks, metrics),
        *PROBLEM_OPERATIONS,
        *documentation_operations(lambda: openapi_document(app)),
    ]
    app = Litestar(
        handlers,
        state=State({"runtime": runtime}),
        exception_handlers={Exception: _answer_problem},
        lifespan=list(lifespan),
        openapi_config=None,
        logging_config=None,
    )
    app.asgi_handler = Observed(app.asgi_handler, metrics)
    return app


def _answer_problem(request: Request[Any, Any, Any], error: Exception) -> Response[bytes]:
    language = negotiate(request.headers.get("accept-language"))
    path = request.scope["path"]
    refused = refusal_of(error, method=request.scope["method"], path=path, request_id=request_id_of(request.scope))
    if refused.code == "not_found":
        refused = _with_closest_paths(refused, path, request.app)
    headers = {
        "Cache-Control": "no-store",
        "Content-Language": language,
        "Vary": "Accept-Language",
        **refused.headers,
    }
    body = msgspec.json.encode(problem_of(refused, path, language))
    return Response(body, status_code=refused.status, media_type=PROBLEM_MEDIA_TYPE, headers=headers)


def _with_closest_paths(refused: Refusal, path: str, app: Litestar) -> Refusal:
    known = [route.path for route in app.routes if "{" not in route.path]
    suggestions = tuple(difflib.get_close_matches(path[:100], known, n=3, cutoff=0.7))
    faults = [msgspec.structs.replace(fault, suggestions=suggestions) for fault in refused.faults]
    return Refusal(faults, refused.status, refused.headers)
