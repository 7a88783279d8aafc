"""``/openapi.json`` and ``/docs``: the document and a page that reads it, without any address outside this service.

The page is our own and small (``docs.html``): the packages that carry a documentation UI are years behind, re-published
by others, or bring 8 to 25 MB and a template engine, and a plain installation cannot fetch assets from anywhere else.
"""

import base64
from collections.abc import Callable
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
from litestar.handlers import HTTPRouteHandler

from service.api.call import Call
from service.api.operation import operation
from service.api.reply import Reply

_PAGE = Path(__file__).with_name("docs.html").read_text(encoding="utf-8")


def _hash_of(tag: str) -> str:
    content = _PAGE.partition(f"<{tag}>")[2].partition(f"</{tag}>")[0]
    return f"'sha256-{base64.b64encode(sha256(content.encode()).digest()).decode('ascii')}'"


PAGE_POLICY = (
    f"default-src 'none'; script-src {_hash_of('script')}; style-src {_hash_of('style')}; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""Only the page's own script and style run, and they may only ask this service."""


def documentation_operations(document: Callable[[], dict[str, object]]) -> list[HTTPRouteHandler]:
    """The operations of documentation; ``document`` is asked once, at the first request."""

    @cache
    def document_bytes() -> bytes:
        return msgspec.json.encode(document())

    @operation("GET", "/openapi.json", tag="operations", answer=dict[str, object])
    def read_openapi(call: Call[None]) -> Reply:
        """Read the API as an OpenAPI 3.1 document."""
        del call
        return Reply(document_bytes())

    @operation("GET", "/docs", tag="operations", answer=str, media_type="text/html; charset=utf-8")
    def read_docs(call: Call[None]) -> Reply:
        """Read and try the API on a page that needs nothing from outside."""
        del call
        return Reply(_PAGE.encode(), "text/html; charset=utf-8", headers={"Content-Security-Policy": PAGE_POLICY})

    handlers: list[Any] = [read_openapi, read_docs]
    return handlers
