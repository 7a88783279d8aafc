"""Prometheus metrics of the HTTP layer; the workers of one host are summed (``PROMETHEUS_MULTIPROC_DIR``).

prometheus-client decides at import whether its values live in the process or in shared files, so the variable must be
set before: ``deploy/gunicorn.conf.py`` does.
"""

import os
from functools import cache

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

from service import __version__

METRICS_MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_BUCKETS_S = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
"""From the floor of an empty request (0.2 ms) to far beyond a full recommendation (25 ms)."""


class Metrics:
    """Requests by route, method and status, and their duration by route and method."""

    def __init__(self) -> None:
        """Create the metrics in a registry of their own, so that applications do not share them by accident."""
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "http_requests", "Requests answered.", ("method", "route", "status"), registry=self._registry
        )
        self._duration = Histogram(
            "http_request_duration_seconds",
            "Time from the request's head to the end of the answer.",
            ("method", "route"),
            registry=self._registry,
            buckets=_BUCKETS_S,
        )
        Gauge(
            "service_info", "Version of the service.", ("version",), registry=self._registry, multiprocess_mode="max"
        ).labels(__version__).set(1)
        # Looking a child up by its labels costs more than the increment; there are few, and they live for ever.
        self._request_child = cache(self._requests.labels)
        self._duration_child = cache(self._duration.labels)

    def observe(self, method: str, route: str, status: int, duration_s: float) -> None:
        """Count one answered request; ``route`` is the template, never the path, to keep the labels few."""
        self._request_child(method, route, str(status)).inc()
        self._duration_child(method, route).observe(duration_s)

    def exposition(self) -> bytes:
        """All metrics in Prometheus' text format, of all workers where they share a folder."""
        if not os.environ.get("PROMETHEUS_MULTIPROC_DIR"):
            return generate_latest(self._registry)
        shared = CollectorRegistry()
        MultiProcessCollector(shared)  # type: ignore[no-untyped-call]
        return generate_latest(shared)
