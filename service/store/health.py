"""How the store is doing, as the health endpoint tells it."""

from typing import Literal

import msgspec

from service.domain.message import Message
from service.store.base import Backend


class StoreHealth(msgspec.Struct, frozen=True, kw_only=True):
    """State of the store as one worker sees it; ``degraded`` never stops the worker from answering."""

    status: Literal["ok", "degraded"]
    backend: Backend
    since_s: float
    """Since when the status holds, seconds since the epoch."""
    revision: str | None
    """Published revision that this worker answers from; None: the packaged catalog alone."""
    why: Message | None = None
    """What is wrong, where something is."""
