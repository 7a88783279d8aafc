"""How an endpoint is declared: one decorator over one plain function.

::

    @operation("POST", "/v1/vram-budgets", tag="sizing", examples=("vram-budget",))
    def estimate_vram_budget(call: Call[Snapshot], body: VramBudgetRequest, query: SizingQuery) -> VramBudget:
        '''VRAM budget of one deployment.

        Longer description, shown in the OpenAPI document.
        '''

The annotations are the contract: ``body`` is the JSON body's Struct, ``query`` the Struct of the query parameters, any
other parameter is one of the path, the result is the answer's Struct. All of it is optional but ``call``. The name of
the function is the operation id, the docstring its summary and description. Handlers are synchronous and run on the
event loop: they compute for milliseconds and wait for nothing.
"""

import inspect
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, get_args, get_type_hints

import msgspec
from litestar import Request
from litestar.handlers import HTTPRouteHandler
from litestar.types import ASGIApp, Method

from service.api.body import BODY_LIMIT_BYTES, check_media_type, decode, read_body
from service.api.call import Call, Runtime
from service.api.conditional import conditional
from service.api.encoding import encode
from service.api.fault import Fault
from service.api.hub_models import missing_model
from service.api.listing import pinned_revision
from service.api.problems import Refusal
from service.api.query import NoQuery, QueryReader
from service.api.reply import Reply
from service.domain.errors import UnknownId
from service.text import negotiate


class Operation(msgspec.Struct, frozen=True, kw_only=True):
    """What an operation takes and gives: all that routing, checking and documentation need."""

    method: str
    path: str
    """Litestar's form, ``/v1/gpus/{id:path}``; ``path`` parameters may hold slashes."""
    name: str
    summary: str
    description: str
    tag: str
    body: Any = None
    query: Any = NoQuery
    answer: Any = Reply
    path_names: tuple[str, ...] = ()
    uses_catalog: bool = True
    status: int = 200
    media_type: str = "application/json"
    max_body_bytes: int = BODY_LIMIT_BYTES
    cacheable: bool = False
    """Answered with an ETag, and with 304 where the caller's copy is current."""
    errors: tuple[int, ...] = ()
    """Statuses beyond those that follow from body, query and path."""
    answers: dict[int, str] = {}
    """Further statuses that carry the same answer, with their description."""
    examples: tuple[str, ...] = ()
    """Names of files in ``openapi/examples``, without ``.json``."""

    @property
    def documented_path(self) -> str:
        """The path as OpenAPI writes it: ``/v1/gpus/{id}``."""
        return self.path.replace(":path}", "}").replace(":str}", "}")


def operation(  # noqa: PLR0913 - each is a line of the contract
    method: Method,
    path: str,
    *,
    tag: str,
    status: int = 200,
    media_type: str = "application/json",
    max_body_bytes: int = BODY_LIMIT_BYTES,
    cacheable: bool = True,
    errors: tuple[int, ...] = (),
    answers: dict[int, str] | None = None,
    examples: tuple[str, ...] = (),
    answer: object = None,
) -> Callable[[Callable[..., object]], HTTPRouteHandler]:
    """Make a Litestar route handler of a function (see the module's text).

    Args:
        method: GET, POST, PUT or DELETE; HEAD follows GET.
        path: The route, with ``{name:path}`` where a parameter may hold slashes.
        tag: Group in the documentation.
        status: Status of success.
        media_type: Media type of success.
        max_body_bytes: Largest body (413 beyond).
        cacheable: Whether a GET carries an ETag; off for what changes with every call.
        errors: Documented statuses beyond those that follow from the signature.
        answers: Further statuses with the same answer, each with its description.
        examples: Names of files in ``openapi/examples``.
        answer: The answer's type where the function returns a ``Reply``.

    """

    def declare(function: Callable[..., object]) -> HTTPRouteHandler:
        hints = get_type_hints(function, include_extras=True)
        summary, _, description = (inspect.getdoc(function) or "").partition("\n\n")
        declared = Operation(
            method=method,
            path=path,
            name=function.__name__,
            summary=" ".join(summary.split()).removesuffix("."),
            description=description.strip(),
            tag=tag,
            body=hints.get("body"),
            query=hints.get("query", NoQuery),
            answer=answer or hints["return"],
            path_names=tuple(name for name in hints if name not in {"call", "body", "query", "return"}),
            uses_catalog=get_args(hints["call"]) != (type(None),),
            status=status,
            media_type=media_type,
            max_body_bytes=max_body_bytes,
            cacheable=cacheable and method == "GET",
            errors=errors,
            answers=answers or {},
            examples=examples,
        )
        return HTTPRouteHandler(
            path, http_method=method, status_code=status, opt={"operation": declared}, include_in_schema=False
        )(_endpoint(function, declared))

    return declare


def _endpoint(function: Callable[..., object], declared: Operation) -> Callable[..., Any]:
    """The asynchronous function that Litestar calls: read, check, call, encode."""
    read_query = QueryReader(declared.query).read
    takes_query = declared.query is not NoQuery

    async def endpoint(request: Request[Any, Any, Any]) -> ASGIApp:
        scope, headers = request.scope, request.headers
        runtime: Runtime = request.app.state.runtime
        language = negotiate(headers.get("accept-language"))
        query = read_query(scope["query_string"])
        given: dict[str, object] = {"query": query} if takes_query else {}
        if declared.body is not None:
            raw = await read_body(request.receive, headers.get("content-length"), declared.max_body_bytes)
            if raw:
                check_media_type(headers.get("content-type"), headers.get("content-encoding"))
            given["body"] = decode(declared.body, raw)
        for name in declared.path_names:
            given[name] = scope["path_params"][name].removeprefix("/")
        snapshot = runtime.revisions.at(pinned_revision(query)) if declared.uses_catalog else None
        hub = None
        for look_up in runtime.look_ups:
            missing = missing_model(given.get("body"), snapshot)
            hub = None if missing is None else await look_up(missing)
        call: Call[Any] = Call(snapshot, language, runtime.today(), scope["path"], hub)
        try:
            value = function(call, **given)
        except UnknownId as error:
            if declared.path_names and (declared.body is None or error.pointer[1:] in declared.path_names):
                raise Refusal([Fault(error.code, "", error.message, error.suggestions)], status=404) from error
            raise
        reply = (
            value if isinstance(value, Reply) else Reply(encode(value, language), declared.media_type, declared.status)
        )
        reply.headers += [(b"content-language", language.encode("ascii")), (b"vary", b"accept-language")]
        if declared.cacheable and reply.status == HTTPStatus.OK:
            return conditional(reply, headers.get("if-none-match"))
        reply.headers.append((b"cache-control", b"no-store"))
        return reply

    return endpoint
