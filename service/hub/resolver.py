"""Look up a model id on the hub once, however many ask, and remember the answer for all workers."""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from hashlib import sha256
from urllib.parse import urlsplit

import msgspec

from service.hub.ids import is_hub_id
from service.hub.records import HubAnswer, HubFailure, HubModel
from service.store.base import Store, StoreUnavailable
from service.store.breaker import Breaker

LOOKUP_S = 3.0
FRESH_S = 6 * 3600.0
"""A repository's config changes rarely; after this the hub is asked again."""
KEPT_S = 30 * 86400.0
"""An old answer still serves while the hub cannot be reached."""
FAILURE_FRESH_S = 600.0
"""So long a repository that was missing, gated or broken is not asked for again."""

_THREADS = 4
_REMEMBERED = 64
_REMEMBERED_BYTES = 65_536
"""Answers beyond this size are read from the store each time, to keep the worker small."""
_KEY_VERSION = 1

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(HubModel | HubFailure).decode


class HubResolver:
    """One hub, asked by ``huggingface_hub`` in worker threads; that library (32 MB, 0.6 s) is imported at first need.

    Only the id leaves the service, to the endpoint's origin alone, and with the token if one is given.
    """

    def __init__(
        self,
        store: Store,
        *,
        endpoint: str,
        token: str | None = None,
        limit_s: float = LOOKUP_S,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """``endpoint``: an http(s) origin, may have a path; else ``ValueError``. ``clock``: seconds since the epoch."""
        parts = urlsplit(endpoint)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.query:
            message = "the hub's endpoint must be an http or https URL without credentials or query"
            raise ValueError(message)
        self._store = store
        self._endpoint = endpoint.rstrip("/")
        self._token = token
        self._limit_s = limit_s
        self._clock = clock
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="hub")
        self._breaker = Breaker(failures_to_open=3, cooldown_s=5.0)
        self._underway: dict[str, asyncio.Task[HubAnswer]] = {}
        self._remembered: OrderedDict[str, HubAnswer] = OrderedDict()
        self._prefix = f"hub:v{_KEY_VERSION}:{_digest(self._endpoint)}:{'with' if token else 'without'}-token"

    async def resolve(self, model_id: str) -> HubAnswer:
        """Return the model or why there is none; at most ``limit_s`` seconds and a little, mostly microseconds.

        Nobody's cancellation ends a lookup that others wait for.
        """
        if not is_hub_id(model_id):
            return HubFailure(id=model_id, kind="refused", fetched_at_s=self._clock())
        key = f"{self._prefix}:{model_id.lower()}"
        remembered = self._remembered.get(key)
        if remembered is not None and self._is_fresh(remembered):
            return remembered
        task = self._underway.get(key)
        if task is None:
            task = self._underway[key] = asyncio.create_task(self._look_up(key, model_id))
            task.add_done_callback(lambda _: self._underway.pop(key, None))
        return await asyncio.shield(task)

    async def aclose(self) -> None:
        """Stop the lookups; a thread still waiting for the hub ends with its time limit."""
        for task in list(self._underway.values()):
            task.cancel()
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _is_fresh(self, answer: HubAnswer) -> bool:
        age_s = self._clock() - answer.fetched_at_s
        return age_s < (FRESH_S if isinstance(answer, HubModel) else FAILURE_FRESH_S)

    async def _look_up(self, key: str, model_id: str) -> HubAnswer:
        stored = await self._stored(key)
        if stored is not None and self._is_fresh(stored):
            return stored
        answer = await self._ask(model_id)
        if isinstance(answer, HubFailure) and answer.kind == "unreachable":
            return stored if isinstance(stored, HubModel) else answer
        await self._keep(key, answer)
        return answer

    async def _ask(self, model_id: str) -> HubAnswer:
        unreachable = HubFailure(id=model_id, kind="unreachable", fetched_at_s=self._clock())
        if not self._breaker.admits():
            return unreachable
        loop = asyncio.get_running_loop()
        fetch = await loop.run_in_executor(self._threads, _load)
        work = partial(fetch, model_id, endpoint=self._endpoint, token=self._token, limit_s=self._limit_s)
        try:
            async with asyncio.timeout(self._limit_s):
                answer = await loop.run_in_executor(self._threads, partial(work, clock=self._clock))
        except TimeoutError:
            answer = unreachable
        if isinstance(answer, HubFailure) and answer.kind == "unreachable":
            self._breaker.failed()
        else:
            self._breaker.succeeded()
        return answer

    async def _stored(self, key: str) -> HubAnswer | None:
        try:
            payload = await self._store.cache_get(key)
        except StoreUnavailable:
            return None
        if payload is None:
            return None
        try:
            answer = _decode(payload)
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            return None  # written by another version
        self._remember(key, answer, len(payload))
        return answer

    async def _keep(self, key: str, answer: HubAnswer) -> None:
        payload = _encode(answer)
        self._remember(key, answer, len(payload))
        try:
            await self._store.cache_put(key, payload, KEPT_S if isinstance(answer, HubModel) else FAILURE_FRESH_S)
        except StoreUnavailable:
            return  # the next worker asks the hub itself

    def _remember(self, key: str, answer: HubAnswer, answer_bytes: int) -> None:
        self._remembered.pop(key, None)
        if answer_bytes <= _REMEMBERED_BYTES:
            self._remembered[key] = answer
        if len(self._remembered) > _REMEMBERED:
            self._remembered.popitem(last=False)


def _load() -> Callable[..., HubAnswer]:
    from service.hub.fetch import fetch_model  # noqa: PLC0415 - heavy, and only of use where a hub is enabled

    return fetch_model


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:12]
