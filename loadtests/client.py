"""One keep-alive HTTP/1.1 connection that costs the machine less than the server it asks.

It knows only what this service sends: a status line, headers with ``Content-Length``, a body.
"""

import asyncio
import re
from typing import NamedTuple, cast

LOOPBACK = "127.0.0.1"
"""The only address that load is sent to."""

_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)\r\n", re.IGNORECASE)
_STATUS = slice(9, 12)


class Answer(NamedTuple):
    """One response."""

    status: int
    body: bytes


class Connection(asyncio.Protocol):
    """A connection that carries one exchange at a time."""

    def __init__(self) -> None:
        """Start without a socket."""
        self._transport: asyncio.Transport | None = None
        self._received = b""
        self._waiting: asyncio.Future[Answer] | None = None
        self._loop = asyncio.get_running_loop()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the socket."""
        self._transport = cast("asyncio.Transport", transport)  # a stream's; uvloop's are of no common class

    def data_received(self, data: bytes) -> None:
        """Collect bytes until the answer is whole."""
        self._received = self._received + data if self._received else data
        end = self._received.find(b"\r\n\r\n")
        if end < 0:
            return
        length = _LENGTH.search(self._received, 0, end + 2)
        size = end + 4 + (int(length[1]) if length else 0)
        if len(self._received) < size:
            return
        answer = Answer(int(self._received[_STATUS]), self._received[end + 4 : size])
        self._received = self._received[size:]
        waiting, self._waiting = self._waiting, None
        if waiting is not None and not waiting.done():
            waiting.set_result(answer)

    def connection_lost(self, exc: Exception | None) -> None:
        """Fail the exchange that waits."""
        self._transport = None
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_exception(exc or ConnectionError("the server closed the connection"))

    async def exchange(self, request: bytes) -> Answer:
        """Send a whole request and wait for its answer. Raises ``ConnectionError`` where the server hangs up."""
        if self._transport is None:
            message = "the connection is closed"
            raise ConnectionError(message)
        self._waiting = self._loop.create_future()
        self._transport.write(request)
        return await self._waiting

    def close(self) -> None:
        """Hang up."""
        if self._transport is not None:
            self._transport.close()


async def connect(port: int) -> Connection:
    """Open a connection to a server of this machine."""
    _, connection = await asyncio.get_running_loop().create_connection(Connection, LOOPBACK, port)
    return connection


def post(path: str, body: bytes) -> bytes:
    """The bytes of a POST of JSON."""
    head = (
        f"POST {path} HTTP/1.1\r\nHost: {LOOPBACK}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def get(path: str) -> bytes:
    """The bytes of a GET."""
    return f"GET {path} HTTP/1.1\r\nHost: {LOOPBACK}\r\n\r\n".encode()
