"""Composition root: settings to application."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, date, datetime

from litestar import Litestar

from service.api.application import http_application
from service.api.call import LookUp, Runtime
from service.api.catalogs import CATALOG_OPERATIONS
from service.api.engine_logs import ENGINE_LOG_OPERATIONS
from service.api.health import Check
from service.api.recommendations import RECOMMENDATION_OPERATIONS
from service.api.revisions import Revisions
from service.api.sizing import SIZING_OPERATIONS
from service.catalog.bundle import snapshot_of
from service.catalog.snapshot import Snapshot, load_snapshot
from service.hub import HubResolver
from service.settings import Settings
from service.store import Follower, StoreHealth, following, open_store

CATALOG = "catalog"
"""Kind under which the store keeps published catalogs."""

log = logging.getLogger(__name__)


def today() -> date:
    """The current day in UTC: the only clock that an answer depends on."""
    return datetime.now(UTC).date()


def create_app(settings: Settings) -> Litestar:
    """The service, ready to be served by an ASGI server.

    It answers from the packaged catalogs at once, and from a published revision as soon as the store has one; no request
    waits for the store.
    """
    revisions: Revisions[Snapshot] = Revisions()
    followers: list[Follower] = []
    look_ups: list[LookUp] = []

    async def take_over(revision: str, payload: bytes) -> None:
        revisions.publish(snapshot_of(payload))
        log.info("catalog revision %s taken over", revision)

    @asynccontextmanager
    async def state(_: Litestar) -> AsyncIterator[None]:
        revisions.publish(load_snapshot())
        store = open_store(settings.redis_url, settings.store_path)
        hub = None
        if settings.hub_enabled:
            hub = HubResolver(store, endpoint=settings.hub_endpoint, token=settings.hub_token)
            look_ups.append(hub.resolve)
        try:
            async with following(store, CATALOG, take_over) as follower:
                followers.append(follower)
                yield
        finally:
            followers.clear()
            look_ups.clear()
            if hub is not None:
                await hub.aclose()
            await store.aclose()

    def checks() -> dict[str, Check]:
        snapshot = revisions.current
        if snapshot is None:
            return {"catalog": Check("starting")}
        found = {"catalog": Check("ready", {"catalog_revision": snapshot.catalog_revision})}
        for follower in followers:
            found["store"] = _store_check(follower.health)
        return found

    operations = (*SIZING_OPERATIONS, *ENGINE_LOG_OPERATIONS, *RECOMMENDATION_OPERATIONS, *CATALOG_OPERATIONS)
    return http_application(operations, Runtime(revisions, today, look_ups), checks=checks, lifespan=[state])


def _store_check(health: StoreHealth) -> Check:
    facts = {"backend": health.backend, "revision": health.revision or ""}
    return Check("ready" if health.status == "ok" else "degraded", facts, health.why)
