"""Composition root: settings to application."""

from datetime import UTC, date, datetime
from typing import Any

from litestar import Litestar

from service.api.application import http_application
from service.api.call import Runtime
from service.api.health import Check
from service.api.revisions import Revisions
from service.settings import Settings


def today() -> date:
    """The current day in UTC: the only clock that an answer depends on."""
    return datetime.now(UTC).date()


def create_app(settings: Settings) -> Litestar:
    """The service, ready to be served by an ASGI server."""
    del settings  # the store and the hub, opened in the lifespan, will read them
    revisions: Revisions[Any] = Revisions()

    def checks() -> dict[str, Check]:
        snapshot = revisions.current
        if snapshot is None:
            return {"catalog": Check("starting")}
        return {"catalog": Check("ready", {"catalog_revision": snapshot.catalog_revision})}

    return http_application([], Runtime(revisions, today), checks=checks)
