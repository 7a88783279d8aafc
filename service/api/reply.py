"""A finished answer: status, headers and bytes, sent as they are."""

from collections.abc import Iterable, Mapping

from litestar.types import Receive, Scope, Send

Headers = list[tuple[bytes, bytes]]


class Reply:
    """An ASGI application that sends one prepared answer.

    A handler returns one itself where its answer is not the JSON of a Struct: a page, metrics, another status.
    """

    __slots__ = ("body", "headers", "status")

    def __init__(
        self,
        body: bytes,
        media_type: str = "application/json",
        status: int = 200,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """Prepare the answer; ``Content-Length`` follows from the body."""
        self.body = body
        self.status = status
        self.headers: Headers = [
            (b"content-type", media_type.encode("latin-1")),
            (b"content-length", str(len(body)).encode("latin-1")),
        ]
        self.add((headers or {}).items())

    def add(self, headers: Iterable[tuple[str, str]]) -> None:
        """Add headers."""
        self.headers += [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it."""
        del scope, receive
        await send({"type": "http.response.start", "status": self.status, "headers": self.headers})
        await send({"type": "http.response.body", "body": self.body, "more_body": False})
