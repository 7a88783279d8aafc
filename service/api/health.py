"""Liveness, readiness and metrics."""

from collections.abc import Callable
from typing import Any, Literal

import msgspec
from litestar.handlers import HTTPRouteHandler

from service.api.call import Call
from service.api.encoding import encode
from service.api.metrics import METRICS_MEDIA_TYPE, Metrics
from service.api.operation import operation
from service.api.reply import Reply
from service.domain.message import Message

Status = Literal["ready", "degraded", "starting"]


class Check(msgspec.Struct, frozen=True):
    """One thing that readiness depends on."""

    status: Status
    """ready: as it should be; degraded: answers still come, from the last good state; starting: no answers yet."""
    facts: dict[str, str] = {}
    """What an operator wants to know, by name."""
    why: Message | None = None
    """What is wrong, where something is."""


class Readiness(msgspec.Struct, frozen=True):
    """Whether this worker should be sent requests."""

    status: Status
    """The worst of the checks."""
    checks: dict[str, Check]


class Liveness(msgspec.Struct, frozen=True):
    """The process answers."""

    status: Literal["alive"] = "alive"


def readiness_of(checks: dict[str, Check]) -> Readiness:
    """Sum the checks up."""
    found = {check.status for check in checks.values()}
    worst: Status = "starting" if "starting" in found else "degraded" if "degraded" in found else "ready"
    return Readiness(worst, checks)


def health_operations(checks: Callable[[], dict[str, Check]], metrics: Metrics) -> list[HTTPRouteHandler]:
    """The operations of health, given where to learn it from."""

    @operation("GET", "/health/live", tag="operations", cacheable=False)
    def is_alive(call: Call[None]) -> Liveness:
        """Liveness probe.

        Restart the process when this fails.
        """
        del call
        return Liveness()

    @operation(
        "GET",
        "/health/ready",
        tag="operations",
        cacheable=False,
        answer=Readiness,
        answers={503: "Starting: no snapshot of the catalogs is loaded yet."},
    )
    def is_ready(call: Call[None]) -> Reply:
        """Readiness probe.

        `ready` and `degraded` are 200: a degraded worker still answers, from its last good snapshot. `starting` is 503.
        """
        readiness = readiness_of(checks())
        return Reply(encode(readiness, call.language), status=503 if readiness.status == "starting" else 200)

    @operation("GET", "/metrics", tag="operations", cacheable=False, answer=str, media_type=METRICS_MEDIA_TYPE)
    def read_metrics(call: Call[None]) -> Reply:
        """Metrics of all workers of this host.

        Prometheus' text format.
        """
        del call
        return Reply(metrics.exposition(), METRICS_MEDIA_TYPE)

    handlers: list[Any] = [is_alive, is_ready, read_metrics]
    return handlers
