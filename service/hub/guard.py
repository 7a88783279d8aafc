"""The HTTP client that ``huggingface_hub`` is given: it talks to one origin, for a bounded time, in bounded bodies.

``huggingface_hub`` has one client per process, so the bounds of the lookup in progress travel in a context variable.
This module imports what ``huggingface_hub`` needs: import it only where a hub is enabled.
"""

import time
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass

import httpx2
import huggingface_hub


class OutOfBounds(httpx2.TransportError):
    """The hub did not keep the lookup's bounds in time, or sent it to another host."""


class TooLarge(OutOfBounds):
    """The hub sent more than the lookup takes."""


@dataclass
class Bounds:
    """What one lookup may do. ``body_bytes`` is set before each request."""

    endpoint: str
    deadline: float
    """On ``time.monotonic``."""
    body_bytes: int

    def left_s(self) -> float:
        """Seconds left; raises ``OutOfBounds`` where none are."""
        left_s = self.deadline - time.monotonic()
        if left_s <= 0:
            message = "the lookup's time is over"
            raise OutOfBounds(message)
        return left_s


current: ContextVar[Bounds | None] = ContextVar("hub_bounds", default=None)


class _Bounded(httpx2.SyncByteStream):
    """A body that ends in an error when it grows or lasts beyond the bounds."""

    def __init__(self, stream: httpx2.SyncByteStream, bounds: Bounds) -> None:
        self._stream = stream
        self._bounds = bounds
        self._body_bytes = bounds.body_bytes

    def __iter__(self) -> Iterator[bytes]:
        total_bytes = 0
        for part in self._stream:
            total_bytes += len(part)
            if total_bytes > self._body_bytes:
                message = f"more than {self._body_bytes} bytes"
                raise TooLarge(message)
            self._bounds.left_s()
            yield part

    def close(self) -> None:
        self._stream.close()


def _origin(url: httpx2.URL) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port


def _before_request(request: httpx2.Request) -> None:
    bounds = current.get()
    if bounds is None or _origin(request.url) != _origin(httpx2.URL(bounds.endpoint)):
        message = "a request outside the lookup's origin"
        raise OutOfBounds(message)
    request.extensions = {**request.extensions, "timeout": httpx2.Timeout(bounds.left_s()).as_dict()}


def _after_response(response: httpx2.Response) -> None:
    bounds = current.get()
    if bounds is None or not isinstance(response.stream, httpx2.SyncByteStream):
        return
    if response.headers.get("content-encoding", "identity") != "identity":
        message = "a compressed body, whose size nobody knows"
        raise OutOfBounds(message)
    declared = response.headers.get("content-length", "")
    if declared.isdecimal() and int(declared) > bounds.body_bytes:
        message = f"more than {bounds.body_bytes} bytes"
        raise TooLarge(message)
    response.stream = _Bounded(response.stream, bounds)


def _client() -> httpx2.Client:
    return httpx2.Client(
        event_hooks={"request": [_before_request], "response": [_after_response]},
        follow_redirects=True,  # the hub redirects within itself: to the file's commit, and from a renamed repository
        headers={"accept-encoding": "identity"},
    )


def install() -> None:
    """Make ``huggingface_hub`` use the bounded client, in the whole process; once, for it closes the client before."""
    huggingface_hub.set_client_factory(_client)
